//! What the host knows, and the moves it can make. Behind one mutex; every move
//! says at which time it happens.

use pv_arch::{CpuId, Nanos};
use pv_steal::{HostRecord, Leave};

use crate::error::RunError;
use crate::sched::{Sched, State};
use crate::script::{Probe, Watch};
use crate::settings::Settings;
use crate::timeline::{Phase, Timeline, Times};

pub(crate) type Record = &'static (dyn HostRecord + Sync);

/// What the program says of a halted vCPU: whether it should be awake.
pub(crate) type Owed = &'static (dyn Fn(CpuId) -> Option<bool> + Send + Sync);

/// What happened to one vCPU, counted by the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// It was taken off its host CPU while it wanted to run.
    pub preemptions: u64,
    /// It halted.
    pub halts: u64,
    /// It was kicked.
    pub kicks: u64,
    /// Others gave it their host CPU by directed yield.
    pub boosts: u64,
    /// It tried a directed yield.
    pub yields: u64,
    /// The host stopped it because the script said so.
    pub strikes: u64,
}

pub(crate) struct VcpuCore {
    pub timeline: Timeline,
    pub record: Option<Record>,
    /// A kick came while the vCPU was not halted.
    pub kick_pending: bool,
    /// The host wants its CPU back.
    pub resched: bool,
    pub counts: Counts,
}

pub(crate) struct PcpuCore {
    busy: Nanos,
    since: Nanos,
}

pub(crate) struct Core {
    pub sched: Sched,
    pub vcpus: Vec<VcpuCore>,
    pcpus: Vec<PcpuCore>,
    pub watch: Watch,
    pub stopping: bool,
    is_owed: Owed,
    watchdog: Nanos,
    pub failure: Option<RunError>,
    drop_kicks: Option<u64>,
    kicks: u64,
    pub kicks_dropped: u64,
    mark_halted: bool,
}

impl Core {
    pub fn new(settings: &Settings, is_owed: Owed) -> Self {
        let vcpus = settings.vcpus as usize;
        let pcpus = settings.pcpus as usize;
        let vcpu = || VcpuCore {
            timeline: Timeline::new(),
            record: None,
            kick_pending: false,
            resched: false,
            counts: Counts::default(),
        };
        let pcpu = || PcpuCore {
            busy: Nanos::ZERO,
            since: Nanos::ZERO,
        };
        Self {
            sched: Sched::new(vcpus, pcpus, settings.slice),
            vcpus: (0..vcpus).map(|_| vcpu()).collect(),
            pcpus: (0..pcpus).map(|_| pcpu()).collect(),
            watch: Watch::new(settings.script.clone(), vcpus),
            stopping: false,
            is_owed,
            watchdog: settings.watchdog,
            failure: None,
            drop_kicks: settings.drop_kicks.map(|n| u64::from(n.get())),
            kicks: 0,
            kicks_dropped: 0,
            mark_halted: settings.mark_halted,
        }
    }

    /// Times of one vCPU; the phase that is going on counts only once it ends.
    pub fn times(&self, vcpu: usize) -> Times {
        self.vcpus[vcpu].timeline.times()
    }

    /// Times of one vCPU, the phase that is going on included.
    pub fn times_now(&self, vcpu: usize, now: Nanos) -> Times {
        let mut timeline = self.vcpus[vcpu].timeline;
        timeline.turn(Phase::Away, now);
        timeline.times()
    }

    /// Time that host CPUs were given to vCPUs, all together.
    pub fn pcpu_busy(&self) -> Nanos {
        self.pcpus
            .iter()
            .fold(Nanos::ZERO, |sum, pcpu| sum.plus(pcpu.busy))
    }

    /// A vCPU comes to life, and waits for a host CPU.
    pub fn start(&mut self, vcpu: usize, now: Nanos) {
        self.sched.start(vcpu);
        self.vcpus[vcpu].timeline.turn(Phase::Waiting, now);
    }

    /// Give a free host CPU to whoever waits longest. Returns the pair.
    pub fn dispatch(&mut self, now: Nanos) -> Option<(usize, usize)> {
        let (vcpu, pcpu) = self.sched.dispatch(now)?;
        self.pcpus[pcpu].since = now;
        Some((vcpu, pcpu))
    }

    /// A dispatched vCPU begins to run guest code.
    pub fn enter(&mut self, vcpu: usize, now: Nanos) {
        self.sched.entered(vcpu, now);
        let entry = &mut self.vcpus[vcpu];
        entry.timeline.turn(Phase::Running, now);
        if let Some(record) = entry.record {
            record.enter(now, Nanos::new(entry.timeline.times().steal_ns));
        }
    }

    /// A running vCPU is taken off its host CPU.
    pub fn preempt(&mut self, vcpu: usize, now: Nanos) {
        self.put(vcpu, State::Runnable, now);
        self.left(vcpu, Phase::Waiting, Leave::Preempted, now);
        self.vcpus[vcpu].counts.preemptions += 1;
    }

    /// A running vCPU halts, unless a kick is pending, which it consumes.
    pub fn halt(&mut self, vcpu: usize, now: Nanos) {
        if self.stopping || std::mem::take(&mut self.vcpus[vcpu].kick_pending) {
            return;
        }
        self.put(vcpu, State::Halted, now);
        let why = if self.mark_halted {
            Leave::HaltedMarkedPreempted
        } else {
            Leave::Halted
        };
        self.left(vcpu, Phase::Idle, why, now);
        self.vcpus[vcpu].counts.halts += 1;
    }

    /// A running vCPU is over.
    pub fn finish(&mut self, vcpu: usize, now: Nanos) {
        self.put(vcpu, State::Absent, now);
        self.left(vcpu, Phase::Away, Leave::Offline, now);
        self.vcpus[vcpu].record = None;
    }

    /// Deliver a kick, or lose it if that fault is injected. Returns the vCPU
    /// that should make room for a woken one.
    pub fn kick(&mut self, vcpu: usize, now: Nanos) -> Option<usize> {
        self.kicks += 1;
        if self
            .drop_kicks
            .is_some_and(|n| self.kicks.is_multiple_of(n))
        {
            self.kicks_dropped += 1;
            return None;
        }
        self.vcpus[vcpu].counts.kicks += 1;
        if self.wake(vcpu, now) {
            self.sched.wake_up_victim(vcpu, now)
        } else {
            self.vcpus[vcpu].kick_pending = true;
            None
        }
    }

    /// A running vCPU offers its host CPU to another. Returns whether it is gone.
    pub fn yield_to(&mut self, from: usize, to: usize, now: Nanos) -> bool {
        self.vcpus[from].counts.yields += 1;
        let gone = self.sched.yield_to(from, to, now);
        if gone {
            // The host CPU stays given: only to somebody else.
            self.left(from, Phase::Waiting, Leave::Preempted, now);
            self.vcpus[to].counts.boosts += 1;
        }
        gone
    }

    /// Follow the watched lock. Returns a vCPU that must be stopped and runs.
    pub fn probe(&mut self, vcpu: usize, probe: Probe, now: Nanos) -> Option<usize> {
        if self.stopping {
            return None;
        }
        let (target, hold) = self.watch.follow(cpu_id(vcpu), probe, now)?;
        let target = target.index();
        self.sched.hold(target, hold);
        self.vcpus[target].counts.strikes += 1;
        matches!(self.sched.state(target), State::Running(_)).then_some(target)
    }

    /// End of the run: nobody stays held, and the guest is told. Halted vCPUs
    /// sleep on until the others are over: see [`Core::wake_the_rest`].
    pub fn stop(&mut self) {
        self.stopping = true;
        for vcpu in 0..self.vcpus.len() {
            self.sched.release(vcpu);
        }
    }

    /// End of the run because of a failure; the first one counts.
    pub fn fail(&mut self, failure: RunError) {
        self.failure.get_or_insert(failure);
        self.stop();
    }

    /// Whether the run is over but for vCPUs that have halted: every kick that
    /// was to come has come.
    pub fn is_over_but_for_sleepers(&self) -> bool {
        self.stopping && self.sched.all_halted()
    }

    /// Wake whoever is still halted at the end of the run. Who is owed a wake-up
    /// at that moment has lost it.
    pub fn wake_the_rest(&mut self, now: Nanos) {
        let owed = |vcpu: &usize| (self.is_owed)(cpu_id(*vcpu)) == Some(true);
        let loser = self.halted().find(owed);
        if let Some(vcpu) = loser {
            let failure = self.lost_wake_up(vcpu, now);
            self.failure.get_or_insert(failure);
        }
        for vcpu in 0..self.vcpus.len() {
            self.wake(vcpu, now);
        }
    }

    /// The watchdog: a vCPU that has been halted for too long, and is owed a
    /// wake-up as far as the program can tell.
    pub fn overslept(&self, now: Nanos) -> Option<RunError> {
        let vcpu = self.halted().find(|vcpu| {
            self.asleep(*vcpu, now) > self.watchdog && (self.is_owed)(cpu_id(*vcpu)) != Some(false)
        })?;
        Some(self.lost_wake_up(vcpu, now))
    }

    /// Every vCPU has halted, and the run is not over.
    pub fn nobody_is_awake(&self, at: Nanos) -> RunError {
        RunError::AllHalted {
            at,
            kicks_dropped: self.kicks_dropped,
        }
    }

    fn halted(&self) -> impl Iterator<Item = usize> {
        (0..self.vcpus.len()).filter(|vcpu| self.sched.state(*vcpu) == State::Halted)
    }

    fn asleep(&self, vcpu: usize, now: Nanos) -> Nanos {
        now.since(self.vcpus[vcpu].timeline.since())
    }

    fn lost_wake_up(&self, vcpu: usize, now: Nanos) -> RunError {
        RunError::LostWakeUp {
            cpu: cpu_id(vcpu),
            asleep: self.asleep(vcpu, now),
            watchdog: self.watchdog,
            kicks_dropped: self.kicks_dropped,
        }
    }

    /// Attach or detach the record that the guest registered for a vCPU.
    pub fn attach(&mut self, vcpu: usize, record: Option<Record>, now: Nanos) {
        if let Some(record) = record {
            record.enter(now, Nanos::new(self.times(vcpu).steal_ns));
        }
        self.vcpus[vcpu].record = record;
    }

    fn wake(&mut self, vcpu: usize, now: Nanos) -> bool {
        let woke = self.sched.wake(vcpu, now);
        if woke {
            let entry = &mut self.vcpus[vcpu];
            entry.timeline.turn(Phase::Waiting, now);
            if let Some(record) = entry.record {
                record.wake(now);
            }
        }
        woke
    }

    fn left(&mut self, vcpu: usize, phase: Phase, why: Leave, now: Nanos) {
        let entry = &mut self.vcpus[vcpu];
        entry.resched = false;
        entry.timeline.turn(phase, now);
        if let Some(record) = entry.record {
            record.leave(now, why);
        }
    }

    fn put(&mut self, vcpu: usize, to: State, now: Nanos) {
        let pcpu = self.sched.put(vcpu, to, now);
        let entry = &mut self.pcpus[pcpu];
        entry.busy = entry.busy.plus(now.since(entry.since));
    }
}

/// The guest's number of a vCPU.
#[expect(
    clippy::cast_possible_truncation,
    reason = "indices come from a u32 count"
)]
pub(crate) fn cpu_id(vcpu: usize) -> CpuId {
    CpuId::new(vcpu as u32)
}
