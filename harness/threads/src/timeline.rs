//! Where the time of one vCPU or host CPU went.

use pv_arch::Nanos;
use serde::Serialize;

/// What a vCPU is doing, as the host sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not started, or over.
    Away,
    /// On a host CPU.
    Running,
    /// Runnable, and kept waiting.
    Waiting,
    /// Halted by itself.
    Idle,
}

/// Sums of time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    /// On a host CPU.
    pub run_ns: u64,
    /// Runnable, but not on a host CPU.
    pub steal_ns: u64,
    /// Halted.
    pub idle_ns: u64,
    /// The part of steal between a halt and the next guest instruction: one
    /// platform (s390) cannot tell it from halting.
    pub wake_ns: u64,
}

impl Times {
    /// All of it: run, steal and idle.
    pub fn total_ns(&self) -> u64 {
        self.run_ns + self.steal_ns + self.idle_ns
    }
}

impl std::ops::Sub for Times {
    type Output = Self;

    /// What was added since `earlier`.
    fn sub(self, earlier: Self) -> Self {
        Self {
            run_ns: self.run_ns.saturating_sub(earlier.run_ns),
            steal_ns: self.steal_ns.saturating_sub(earlier.steal_ns),
            idle_ns: self.idle_ns.saturating_sub(earlier.idle_ns),
            wake_ns: self.wake_ns.saturating_sub(earlier.wake_ns),
        }
    }
}

/// One vCPU's phases, added up as they end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeline {
    phase: Phase,
    since: Nanos,
    /// The vCPU has halted, and has not come back to guest code since.
    halting: bool,
    times: Times,
}

impl Timeline {
    pub fn new() -> Self {
        Self {
            phase: Phase::Away,
            since: Nanos::ZERO,
            halting: false,
            times: Times::default(),
        }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// When the present phase began.
    pub fn since(&self) -> Nanos {
        self.since
    }

    pub fn times(&self) -> Times {
        self.times
    }

    /// The vCPU has come back from its last call to guest code.
    pub fn back_in_guest(&mut self) {
        self.halting = false;
    }

    /// End the present phase at `now` and begin `next`.
    pub fn turn(&mut self, next: Phase, now: Nanos) {
        let spent = now.since(self.since).get();
        match self.phase {
            Phase::Away => {}
            Phase::Running => self.times.run_ns += spent,
            Phase::Waiting => {
                self.times.steal_ns += spent;
                self.times.wake_ns += if self.halting { spent } else { 0 };
            }
            Phase::Idle => self.times.idle_ns += spent,
        }
        self.halting |= next == Phase::Idle;
        self.phase = next;
        self.since = now;
    }
}
