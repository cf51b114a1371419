//! What a mock machine does for the CPU that asks.

use super::machine::{Machine, State};
use super::{Oracle, Step, Trigger, What};
use crate::sync::atomic::Ordering;
use crate::{CpuCount, CpuId, GuestAddr, Nanos, PlatformCall, Reply};

crate::orderings! {
    /// What the kicker wrote before comes before the kick.
    fn send_kick = Release;
    /// What the kicker wrote comes before the return from the halt.
    fn consume_kick = Acquire;
}

/// What [`super::MockArch`] calls, with the CPU of the calling thread.
impl Machine {
    pub(super) fn cpu_count(&self) -> CpuCount {
        self.count
    }

    pub(super) fn now(&self, cpu: CpuId) -> Nanos {
        let kicks = self.state().trigger(cpu, "now", Trigger::Now);
        self.deliver(&kicks);
        self.state().now
    }

    pub(super) fn relax(&self, cpu: CpuId) {
        let kicks = {
            let mut state = self.state();
            state.now = state.now.plus(state.per_relax);
            state.trigger(cpu, "relax", Trigger::Relax)
        };
        self.deliver(&kicks);
    }

    pub(super) fn irq_save(&self, cpu: CpuId) -> u32 {
        let mut state = self.state();
        let before = state.cpus[cpu.index()].irq_depth;
        state.cpus[cpu.index()].irq_depth = before + 1;
        state.log(cpu, What::IrqSave(before + 1));
        before
    }

    pub(super) fn irq_restore(&self, cpu: CpuId, before: u32) {
        let mut state = self.state();
        let depth = state.cpus[cpu.index()].irq_depth;
        assert_eq!(depth, before + 1, "{cpu}: interrupts restored out of order");
        state.cpus[cpu.index()].irq_depth = before;
        state.log(cpu, What::IrqRestore(before));
    }

    pub(super) fn halt_while(&self, cpu: CpuId, mut still: impl FnMut() -> bool) {
        if !still() && !crate::seeded_bug!("mock.halt-without-condition") {
            self.state().log(cpu, What::HaltRefused);
            return;
        }
        let kicks = {
            let mut state = self.state();
            state.log(cpu, What::Halt);
            state.trigger(cpu, "halt", Trigger::Halt)
        };
        self.deliver(&kicks);
        if crate::seeded_bug!("mock.halt-forgets-kick") {
            self.consume_kick(cpu);
        }
        let woke = self.await_kick(cpu);
        self.state().log(cpu, woke);
    }

    pub(super) fn kick(&self, cpu: CpuId, target: CpuId) {
        if self.count.check(target.get()).is_err() {
            return;
        }
        let kicks = {
            let mut state = self.state();
            state.log(cpu, What::Kicked(target));
            state.trigger(cpu, "kick", Trigger::Kick)
        };
        self.deliver(&[target]);
        self.deliver(&kicks);
    }

    pub(super) fn yield_to(&self, cpu: CpuId, target: CpuId) -> crate::Yielded {
        let mut state = self.state();
        let now = state.now;
        let preempted = state
            .cpus
            .get(target.index())
            .is_some_and(|cpu| Oracle::Exact.answer(&cpu.history, now));
        let result = match (state.has_yield, preempted) {
            (false, _) => crate::Yielded::Unsupported,
            (true, false) => crate::Yielded::NothingToGain,
            (true, true) => crate::Yielded::Boosted,
        };
        state.log(cpu, What::YieldedTo(target, result));
        if result == crate::Yielded::Boosted {
            state.step(Step::Resume(target));
        }
        result
    }

    pub(super) fn is_preempted(&self, cpu: CpuId, target: CpuId) -> bool {
        let mut state = self.state();
        let now = state.now;
        let State { oracle, cpus, .. } = &mut *state;
        match cpus.get(target.index()) {
            Some(target_cpu) if target != cpu => oracle.answer(&target_cpu.history, now),
            _ => false,
        }
    }

    pub(super) fn guest_addr(&self, object: *const u8, len: usize) -> Option<GuestAddr> {
        let start = object as usize;
        let end = start.checked_add(len)?;
        self.state()
            .mappings
            .iter()
            .find(|(at, size, _)| *at <= start && end <= at.saturating_add(*size))
            .map(|(at, _, addr)| GuestAddr::new(addr.get().wrapping_add((start - at) as u64)))
    }

    pub(super) fn platform_call(&self, cpu: CpuId, call: PlatformCall) -> Reply {
        let mut state = self.state();
        state.log(cpu, What::Called(call));
        match &mut state.on_call {
            Some(handler) => handler(cpu, call),
            None => Reply::REFUSED,
        }
    }

    pub(super) fn serialize(&self, cpu: CpuId, target: CpuId) -> bool {
        {
            let mut state = self.state();
            if !state.has_serialize {
                return false;
            }
            state.log(cpu, What::Serialized(target));
        }
        crate::sync::atomic::fence(Ordering::SeqCst);
        true
    }

    /// Make kicks pending and wake whoever waits for them.
    fn deliver(&self, targets: &[CpuId]) {
        for target in targets {
            let kick = &self.kicks[target.index()];
            if crate::seeded_bug!("mock.kick-by-store") {
                kick.store(true, send_kick());
            } else {
                // A read-modify-write, as the contract of `kick` asks.
                kick.swap(true, send_kick());
            }
        }
        if !targets.is_empty() {
            // Taken so that a waiter is either before its check or waiting.
            drop(self.state());
            self.kicked.notify_all();
        }
    }

    fn consume_kick(&self, cpu: CpuId) -> bool {
        self.kicks[cpu.index()].swap(false, consume_kick())
    }

    fn take_spurious_wake(&self, cpu: CpuId) -> bool {
        std::mem::take(&mut self.state().cpus[cpu.index()].spurious_wake)
    }

    #[cfg(pv_loom)]
    fn await_kick(&self, cpu: CpuId) -> What {
        loop {
            if self.consume_kick(cpu) {
                return What::Woke;
            }
            if self.take_spurious_wake(cpu) {
                return What::WokeSpuriously;
            }
            loom::thread::yield_now();
        }
    }

    #[cfg(not(pv_loom))]
    fn await_kick(&self, cpu: CpuId) -> What {
        use std::time::{Duration, Instant};

        /// How long a CPU may stay halted in real time before the mock calls it
        /// a lost wake-up and panics.
        const LOST_WAKE_UP_AFTER: Duration = Duration::from_secs(10);

        let give_up = Instant::now() + LOST_WAKE_UP_AFTER;
        loop {
            if self.consume_kick(cpu) {
                return What::Woke;
            }
            if self.take_spurious_wake(cpu) {
                return What::WokeSpuriously;
            }
            let state = self.state();
            if self.kicks[cpu.index()].load(Ordering::Relaxed) {
                continue;
            }
            let left = give_up.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "lost wake-up: {cpu} has been halted for {LOST_WAKE_UP_AFTER:?} and nobody kicked it; log: {:#?}",
                state.log
            );
            let waited = self.kicked.wait_timeout(state, left);
            drop(waited.unwrap_or_else(std::sync::PoisonError::into_inner));
        }
    }
}
