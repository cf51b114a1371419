//! The deterministic engine: virtual time, and one thread at a time.
//!
//! Each host CPU has a local clock. The vCPU on the host CPU that is furthest
//! behind has the *baton*: its thread alone executes, up to its next call of the
//! architecture. The call takes effect at its local time; then the clock moves
//! by a random step (the code until the next call), and the baton goes to
//! whoever is furthest behind now. So moves happen in order of virtual time, as
//! in any discrete-event simulation, and the seed decides everything.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pv_arch::Nanos;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::core::Core;
use crate::sched::State;
use crate::settings::Settings;

/// A step is from this many nanoseconds ...
const SHORTEST_STEP: u64 = 500;
/// ... to this many more.
const STEP_SPREAD: u64 = 8192;

pub(crate) struct Stepper {
    clocks: Mutex<Clocks>,
    duration: Nanos,
}

struct Clocks {
    local: Vec<Nanos>,
    random: ChaCha8Rng,
}

impl Stepper {
    pub fn new(seed: u64, settings: &Settings) -> Self {
        Self {
            clocks: Mutex::new(Clocks {
                local: vec![Nanos::ZERO; settings.pcpus as usize],
                random: ChaCha8Rng::seed_from_u64(seed),
            }),
            duration: settings.duration,
        }
    }

    /// Local time of a vCPU that runs.
    pub fn now(&self, core: &Core, vcpu: usize) -> Nanos {
        let State::Running(pcpu) = core.sched.state(vcpu) else {
            panic!("vCPU {vcpu} executes without a host CPU");
        };
        self.clocks().local[pcpu]
    }

    /// The furthest that any host CPU has come.
    pub fn latest(&self) -> Nanos {
        self.clocks().latest()
    }

    /// Who has the first baton.
    pub fn begin(&self, core: &mut Core) -> Option<usize> {
        self.clocks().next(self.duration, core)
    }

    /// A call of `vcpu` took effect: time moves on. Returns who has the baton.
    pub fn step(&self, core: &mut Core, vcpu: usize) -> Option<usize> {
        let mut clocks = self.clocks();
        if let State::Running(pcpu) = core.sched.state(vcpu) {
            clocks.step(pcpu);
        }
        clocks.next(self.duration, core)
    }

    fn clocks(&self) -> MutexGuard<'_, Clocks> {
        self.clocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clocks {
    fn latest(&self) -> Nanos {
        self.local.iter().copied().max().unwrap_or(Nanos::ZERO)
    }

    fn step(&mut self, pcpu: usize) {
        let step = SHORTEST_STEP + self.random.next_u64() % STEP_SPREAD;
        self.local[pcpu] = self.local[pcpu].plus(Nanos::new(step));
    }

    /// Let the host do everything that is due, and choose who executes next;
    /// `None` once every vCPU is over.
    fn next(&mut self, duration: Nanos, core: &mut Core) -> Option<usize> {
        loop {
            let Some((now, pcpu, vcpu)) = self.furthest_behind(core) else {
                if core.sched.all_absent() {
                    return None;
                }
                self.wait_for_event(core);
                continue;
            };
            if self.dispatch(core, now) {
                continue;
            }
            if !core.stopping {
                if now >= duration {
                    core.stop();
                    continue;
                }
                if let Some(failure) = core.overslept(now) {
                    core.fail(failure);
                    continue;
                }
            }
            if core.sched.expired(pcpu, now).is_some() {
                core.preempt(vcpu, now);
                continue;
            }
            return Some(vcpu);
        }
    }

    /// Fill free host CPUs at `now`. Returns whether any got a vCPU.
    fn dispatch(&mut self, core: &mut Core, now: Nanos) -> bool {
        let mut any = false;
        while let Some((vcpu, pcpu)) = core.dispatch(now) {
            self.local[pcpu] = self.local[pcpu].max(now);
            core.enter(vcpu, self.local[pcpu]);
            any = true;
        }
        any
    }

    /// No vCPU runs. Go on at the time at which one can, or report that none
    /// ever will.
    fn wait_for_event(&mut self, core: &mut Core) {
        let latest = self.latest();
        if self.dispatch(core, latest) {
            return;
        }
        if let Some(then) = core.sched.next_event(latest) {
            self.dispatch(core, then);
            return;
        }
        if !core.stopping {
            core.fail(core.nobody_is_awake(latest));
        }
        core.wake_the_rest(latest);
    }

    fn furthest_behind(&self, core: &Core) -> Option<(Nanos, usize, usize)> {
        (0..self.local.len())
            .filter_map(|pcpu| {
                let vcpu = core.sched.running_on(pcpu)?;
                Some((self.local[pcpu], pcpu, vcpu))
            })
            .min()
    }
}
