//! A machine: the host's knowledge, its vCPUs, and how moves become effective.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use pv_arch::sync::atomic::{AtomicBool, Ordering};
use pv_arch::{CpuCount, CpuId, Nanos, PlatformCall, Reply, Yielded};

use crate::core::{Core, Owed, cpu_id};
use crate::platform::{Board, Effect, HostView};
use crate::script::Probe;
use crate::settings::{Engine, Settings};
use crate::signal;
use crate::stepped::Stepper;
use crate::tables::GuestTables;
use crate::timeline::Phase;
use crate::vcpu::Vcpu;

/// One machine. It is never freed: a host may write to registered guest memory
/// for as long as it likes, as on real hardware.
pub(crate) struct Vm {
    pub settings: Settings,
    pub count: CpuCount,
    pub vcpus: Vec<Vcpu>,
    pub board: Box<dyn Board>,
    pub guest: GuestTables,
    core: Mutex<Core>,
    /// Something changed that the controller should look at before its timer.
    pub changed: Condvar,
    /// The run is over; guest programs look at this.
    pub stopping: AtomicBool,
    epoch: Instant,
    powered_on: OnceLock<Nanos>,
    stepper: Option<Stepper>,
}

impl Vm {
    pub fn new(settings: Settings, count: CpuCount, is_owed: Owed) -> Self {
        let stepper = match settings.engine {
            Engine::Live => None,
            Engine::Stepped { seed } => Some(Stepper::new(seed, &settings)),
        };
        Self {
            count,
            vcpus: count.cpus().map(Vcpu::new).collect(),
            board: crate::platform::board(settings.platform, count),
            guest: GuestTables::new(count),
            core: Mutex::new(Core::new(&settings, is_owed)),
            changed: Condvar::new(),
            stopping: AtomicBool::new(false),
            epoch: Instant::now(),
            powered_on: OnceLock::new(),
            stepper,
            settings,
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, Core> {
        // Guest code never runs with this lock held, so a panic under it is the
        // harness's own; the run then fails by itself.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether time is virtual.
    pub fn is_stepped(&self) -> bool {
        self.stepper.is_some()
    }

    /// When the machine was powered on.
    pub fn powered_on(&self) -> Nanos {
        self.powered_on.get().copied().unwrap_or(Nanos::ZERO)
    }

    /// Real time since the machine was built.
    pub fn real_now(&self) -> Nanos {
        Nanos::new(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// All vCPUs start at once; their threads wait at their gates.
    pub fn power_on(&'static self) {
        let mut core = self.lock();
        let now = self.now_of_host();
        self.powered_on.get_or_init(|| now);
        for vcpu in 0..self.vcpus.len() {
            core.start(vcpu, now);
        }
        match &self.stepper {
            None => self.dispatch(&mut core, now),
            Some(stepper) => {
                let first = stepper.begin(&mut core);
                self.pass_baton(first);
            }
        }
    }

    /// Put waiting vCPUs on free host CPUs and let their threads go (live).
    pub fn dispatch(&self, core: &mut Core, now: Nanos) {
        while let Some((vcpu, _)) = core.dispatch(now) {
            self.vcpus[vcpu].gate.open();
        }
    }

    /// Make a move on behalf of a vCPU that is in host mode, and come back when
    /// that vCPU runs again.
    pub fn exit<R>(&self, vcpu: usize, work: impl FnOnce(&mut Core, Nanos) -> R) -> R {
        let mut core = self.lock();
        core.vcpus[vcpu].timeline.back_in_guest();
        self.serve(core, vcpu, work)
    }

    fn serve<R>(
        &self,
        mut core: MutexGuard<'_, Core>,
        vcpu: usize,
        work: impl FnOnce(&mut Core, Nanos) -> R,
    ) -> R {
        let now = self.now_of_running(&core, vcpu);
        let result = work(&mut core, now);
        match &self.stepper {
            None => self.settle(core, vcpu, now),
            Some(stepper) => {
                let next = stepper.step(&mut core, vcpu);
                self.settle_stepped(core, vcpu, next);
            }
        }
        result
    }

    /// Live: let others run, and wait for a host CPU if this vCPU has none.
    fn settle(&self, mut core: MutexGuard<'_, Core>, vcpu: usize, now: Nanos) {
        self.dispatch(&mut core, now);
        self.publish_stop(&core);
        let phase = core.vcpus[vcpu].timeline.phase();
        if phase == Phase::Running {
            return;
        }
        if phase == Phase::Away || core.sched.all_halted() {
            self.changed.notify_all();
        }
        drop(core);
        if phase != Phase::Away {
            self.vcpus[vcpu].gate.pass();
            self.enter(vcpu);
        }
    }

    /// Live: the thread of a dispatched vCPU has come to run.
    pub fn enter(&self, vcpu: usize) {
        let mut core = self.lock();
        let now = self.real_now();
        core.enter(vcpu, now);
    }

    /// Stepped: hand the baton on, and wait for it unless this vCPU is over.
    fn settle_stepped(&self, core: MutexGuard<'_, Core>, vcpu: usize, next: Option<usize>) {
        let is_over = core.vcpus[vcpu].timeline.phase() == Phase::Away;
        // Before anybody goes on.
        self.publish_stop(&core);
        if next != Some(vcpu) {
            self.pass_baton(next);
        }
        drop(core);
        if is_over {
            self.changed.notify_all();
        } else if next != Some(vcpu) {
            self.vcpus[vcpu].gate.pass();
        }
    }

    fn pass_baton(&self, next: Option<usize>) {
        if let Some(next) = next {
            self.vcpus[next].gate.open();
        }
    }

    /// Tell the guest if the run is over.
    pub fn publish_stop(&self, core: &Core) {
        if core.stopping {
            self.stopping.store(true, Ordering::Relaxed);
        }
    }

    /// The present of a vCPU that runs.
    pub fn now_of_running(&self, core: &Core, vcpu: usize) -> Nanos {
        match &self.stepper {
            None => self.real_now(),
            Some(stepper) => stepper.now(core, vcpu),
        }
    }

    /// The present of the host.
    pub fn now_of_host(&self) -> Nanos {
        match &self.stepper {
            None => self.real_now(),
            Some(stepper) => stepper.latest(),
        }
    }

    /// The host wants the CPU of `victim` back, as soon as possible.
    pub fn request_preempt(&self, core: &mut Core, victim: usize, now: Nanos) {
        if self.stepper.is_some() {
            // Its thread waits at a known point: nothing needs to be stopped.
            core.preempt(victim, now);
            return;
        }
        core.vcpus[victim].resched = true;
        self.vcpus[victim].resched.store(true, Ordering::Relaxed);
        if let Some(thread) = self.vcpus[victim].thread.get() {
            signal::send(*thread);
        }
    }
}

/// What vCPUs ask for.
impl Vm {
    /// The vCPU was told to make room, in guest mode or on its way back there.
    pub fn preempt(&self, vcpu: usize, was_in_guest: bool) {
        self.vcpus[vcpu].resched.store(false, Ordering::Relaxed);
        let mut core = self.lock();
        if was_in_guest {
            core.vcpus[vcpu].timeline.back_in_guest();
        }
        self.serve(core, vcpu, |core, now| {
            let wanted = core.vcpus[vcpu].resched;
            if wanted && (core.sched.somebody_waits(now) || core.sched.is_held(vcpu, now)) {
                core.preempt(vcpu, now);
            } else {
                core.vcpus[vcpu].resched = false;
            }
        });
    }

    pub fn halt(&self, vcpu: usize) {
        self.exit(vcpu, |core, now| core.halt(vcpu, now));
    }

    pub fn kick(&self, vcpu: usize, target: CpuId) {
        if self.count.check(target.get()).is_err() {
            return;
        }
        self.exit(vcpu, |core, now| {
            if let Some(victim) = core.kick(target.index(), now) {
                self.request_preempt(core, victim, now);
            }
        });
    }

    pub fn yield_to(&self, vcpu: usize, target: CpuId) -> Yielded {
        if self.count.check(target.get()).is_err() {
            return Yielded::NothingToGain;
        }
        let gone = self.exit(vcpu, |core, now| {
            let gone = core.yield_to(vcpu, target.index(), now);
            if gone {
                self.started_by_hand(core, target.index(), now);
            }
            gone
        });
        if gone {
            Yielded::Boosted
        } else {
            Yielded::NothingToGain
        }
    }

    pub fn probe(&self, vcpu: usize, probe: Probe) {
        self.exit(vcpu, |core, now| {
            if let Some(target) = core.probe(vcpu, probe, now) {
                if target == vcpu {
                    core.preempt(vcpu, now);
                } else {
                    self.request_preempt(core, target, now);
                }
                // The controller must know when the hold ends.
                self.changed.notify_all();
            }
        });
    }

    pub fn platform_call(&self, vcpu: usize, call: PlatformCall) -> Reply {
        self.exit(vcpu, |core, now| {
            let (reply, effect) = self.board.call(cpu_id(vcpu), call, &HostView { core, now });
            match effect {
                Effect::None => {}
                Effect::Attach(record) => core.attach(vcpu, Some(record), now),
                Effect::Detach => core.attach(vcpu, None, now),
            }
            reply
        })
    }

    /// A vCPU got a host CPU without a dispatch, by a directed yield.
    fn started_by_hand(&self, core: &mut Core, vcpu: usize, now: Nanos) {
        if self.stepper.is_some() {
            core.enter(vcpu, now);
        } else {
            self.vcpus[vcpu].gate.open();
        }
    }
}
