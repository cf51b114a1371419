//! A clock of steal that cannot be led astray by its record.
//!
//! State: a *base* (the raw steal and the wall time of the last reading that
//! counted), the *total* told so far, and a *carry* (steal that was read but
//! did not fit into the wall time yet, at most [`CARRY_BOUND`]).
//!
//! ```text
//!               first reading                       step <= elapsed + bound
//!  no base ------------------------> based -----+   total += min(carry + step, elapsed)
//!     ^                               | ^  ^----+   carry  = the rest, at most the bound
//!     +-------- rebase() -------------+ |
//!                                       +-- anything else: hold the total and
//!                                           report; re-base where the old base
//!                                           is no longer good
//! ```
//!
//! Invariants, whatever is fed in:
//!
//! 1. the total never goes back;
//! 2. it grows by no more than the wall time since the base, hence it never
//!    exceeds the wall time since the first reading (the sum of the steps
//!    forward, if the guest's own clock was set back in between);
//! 3. the carry never exceeds [`CARRY_BOUND`].
//!
//! A step is `raw - base` modulo 2^64, so a counter that wraps is no event.

use pv_arch::{Arch, Nanos};

use crate::fault::{ClockFault, FaultCounts};
use crate::{ReadError, StealSource};

/// How far steal may run ahead of wall time before it is not believed: one tick
/// of 100 Hz, the coarsest unit in which hosts are known to account steal. A
/// host that charges whole ticks is ahead by up to one of them; the skew
/// between a reading of steal and a reading of time is far below it.
///
/// It is also how far the guest's own clock may step back and count as skew:
/// then the steal of the time that is told twice still fits into the carry.
pub const CARRY_BOUND: Nanos = Nanos::from_millis(10);

/// How often [`StealClock::read`] looks for a pair of steal and time that no
/// preemption separates.
const PAIR_TRIES: u32 = 4;

/// The larger half of all steps is a step back.
const LARGEST_STEP: u64 = u64::MAX >> 1;

/// The steal of one vCPU as a monotonic clock, fed by that vCPU.
///
/// ```
/// use pv_arch::Nanos;
/// use pv_steal::{ClockFault, StealClock};
///
/// let ms = Nanos::from_millis;
/// let mut clock = StealClock::new();
/// clock.update(Ok(ms(3350)), ms(0)); // the first reading is the base
/// assert_eq!(clock.update(Ok(ms(3354)), ms(10)).total, ms(4));
///
/// // Migrated: the new host counts from somewhere else.
/// let reading = clock.update(Ok(ms(3120)), ms(20));
/// assert_eq!(reading.total, ms(4));
/// assert!(matches!(reading.fault, Some(ClockFault::SteppedBack { .. })));
///
/// assert_eq!(clock.update(Ok(ms(3125)), ms(30)).total, ms(9));
/// ```
#[derive(Clone, Debug)]
pub struct StealClock {
    base: Option<Base>,
    total: Nanos,
    carry: Nanos,
    faults: FaultCounts,
}

/// A reading from which the next one is measured.
#[derive(Clone, Copy, Debug)]
struct Base {
    raw: Nanos,
    now: Nanos,
}

/// What a [`StealClock`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Reading {
    /// Steal since the first reading, as far as it can be believed.
    pub total: Nanos,
    /// When the reading was made.
    pub at: Nanos,
    /// What was wrong with the reading, if anything.
    pub fault: Option<ClockFault>,
}

impl StealClock {
    /// A clock at zero that has seen nothing.
    pub const fn new() -> Self {
        Self {
            base: None,
            total: Nanos::ZERO,
            carry: Nanos::ZERO,
            faults: FaultCounts::NONE,
        }
    }

    /// Take a reading of `source`, the calling vCPU's own record.
    ///
    /// A preemption between reading steal and reading time would show in one of
    /// the two only, and make this step or the next one look like a jump. So
    /// steal is read on both sides of the time, until it did not change.
    pub fn read<A: Arch>(&mut self, source: &(impl StealSource + ?Sized)) -> Reading {
        let mut raw = source.steal();
        let mut now = A::now();
        for _ in 0..PAIR_TRIES {
            let again = source.steal();
            if again == raw || again.is_err() {
                break;
            }
            raw = again;
            now = A::now();
        }
        self.update(raw, now)
    }

    /// Take the reading `raw`, made at time `now`. The two should belong
    /// together; see [`read`](Self::read).
    #[inline]
    pub fn update(&mut self, raw: Result<Nanos, ReadError>, now: Nanos) -> Reading {
        let fault = match raw {
            Ok(raw) => self.advance(Base { raw, now }),
            Err(error) => Some(ClockFault::Unreadable(error)),
        };
        if let Some(fault) = &fault {
            self.faults.count(fault);
        }
        Reading {
            total: self.total,
            at: now,
            fault,
        }
    }

    /// Forget the base: the next reading only sets a new one. For a record that
    /// was unregistered and registered again, and for resume after suspend or
    /// migration. The total stays.
    pub fn rebase(&mut self) {
        self.base = None;
        self.carry = Nanos::ZERO;
    }

    /// The total of the last reading.
    #[inline]
    pub const fn total(&self) -> Nanos {
        self.total
    }

    /// How often which fault happened.
    pub const fn faults(&self) -> FaultCounts {
        self.faults
    }

    fn advance(&mut self, new: Base) -> Option<ClockFault> {
        let Some(old) = self.base else {
            self.base = Some(new);
            return None;
        };
        if new.now < old.now {
            return Some(self.hold_for_time(old, new));
        }
        let elapsed = new.now.since(old.now);
        let step = Nanos::new(new.raw.get().wrapping_sub(old.raw.get()));
        if step.get() > LARGEST_STEP || step > elapsed.plus(CARRY_BOUND) {
            return Some(self.refuse(old, new, elapsed, step));
        }
        self.base = Some(new);
        let owed = self.carry.plus(step);
        let grown = owed.at_most(elapsed);
        let rest = owed.since(grown);
        self.total = self.total.plus(grown);
        self.carry = rest.at_most(CARRY_BOUND);
        // More than the bound can only pile up over several readings. It is
        // dropped rather than the reading refused: a host whose clock runs a
        // little faster than the guest's must not stop this one.
        let dropped = rest.since(self.carry);
        (dropped > Nanos::ZERO).then_some(ClockFault::Overran { dropped })
    }

    /// The clock went back. By skew: keep the base, so no wall time counts
    /// twice. By more: the guest was given another clock, and waiting for it to
    /// catch up could take for ever.
    #[cold]
    fn hold_for_time(&mut self, old: Base, new: Base) -> ClockFault {
        if old.now.since(new.now) > CARRY_BOUND {
            self.rebase();
            self.base = Some(new);
        }
        ClockFault::TimeWentBack {
            from: old.now,
            to: new.now,
        }
    }

    #[cold]
    fn refuse(&mut self, old: Base, new: Base, elapsed: Nanos, step: Nanos) -> ClockFault {
        self.rebase();
        self.base = Some(new);
        let (from, to) = (old.raw, new.raw);
        if step.get() > LARGEST_STEP {
            ClockFault::SteppedBack { from, to }
        } else {
            ClockFault::Jumped { from, to, elapsed }
        }
    }
}

impl Default for StealClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(pv_loom)))]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    /// A clock whose base is steal `raw` at 1 s.
    fn based(raw: Nanos) -> StealClock {
        let mut clock = StealClock::new();
        let first = clock.update(Ok(raw), ms(1000));
        assert_eq!((first.total, first.fault), (Nanos::ZERO, None));
        clock
    }

    #[test]
    fn a_counter_that_wraps_is_no_event() {
        let mut clock = based(Nanos::new(u64::MAX - 9));
        let reading = clock.update(Ok(Nanos::new(90)), ms(1010));
        assert_eq!((reading.total.get(), reading.fault), (100, None));
    }

    #[test]
    fn a_tick_that_comes_early_is_told_when_its_time_has_passed() {
        let mut clock = based(ms(0));
        assert_eq!(clock.update(Ok(ms(10)), ms(1004)).total, ms(4));
        assert_eq!(clock.update(Ok(ms(10)), ms(1008)).total, ms(8));
        assert_eq!(clock.update(Ok(ms(10)), ms(1050)).total, ms(10));
        assert_eq!(clock.faults(), FaultCounts::NONE);
    }

    #[test]
    fn the_first_nanosecond_beyond_the_carry_bound_is_a_jump() {
        let edge = ms(4).plus(CARRY_BOUND);
        let mut clock = based(ms(0));
        assert_eq!(clock.update(Ok(edge), ms(1004)).fault, None);
        let mut clock = based(ms(0));
        let to = edge.plus(Nanos::new(1));
        let reading = clock.update(Ok(to), ms(1004));
        let jump = ClockFault::Jumped {
            from: ms(0),
            to,
            elapsed: ms(4),
        };
        assert_eq!((reading.total, reading.fault), (ms(0), Some(jump)));
        assert_eq!(clock.update(Ok(to), ms(1010)).total, ms(0));
    }

    #[test]
    fn a_host_clock_that_runs_fast_does_not_stop_this_one() {
        let mut clock = based(ms(0));
        for second in 1..=100 {
            let _ = clock.update(Ok(ms(1001 * second)), ms(1000 + 1000 * second));
        }
        assert_eq!(clock.total(), Nanos::from_secs(100));
        assert_eq!(clock.faults().overran, 90, "the first 10 ms were carried");
    }

    #[test]
    fn nothing_is_lost_over_an_unreadable_record() {
        let mut clock = based(ms(0));
        let error = ReadError::StuckInUpdate {
            version: 5,
            tries: 64,
        };
        let reading = clock.update(Err(error), ms(1010));
        assert_eq!(reading.fault, Some(ClockFault::Unreadable(error)));
        assert_eq!(reading.total, ms(0));
        assert_eq!(clock.update(Ok(ms(15)), ms(1020)).total, ms(15));
    }

    #[test]
    fn skew_of_the_guests_clock_costs_no_steal_and_counts_no_time_twice() {
        let mut clock = based(ms(0));
        let skewed = clock.update(Ok(ms(0)), ms(998));
        assert!(matches!(
            skewed.fault,
            Some(ClockFault::TimeWentBack { .. })
        ));
        assert_eq!(clock.update(Ok(ms(12)), ms(1010)).total, ms(10));
        assert_eq!(clock.update(Ok(ms(12)), ms(1020)).total, ms(12));
    }

    #[test]
    fn a_clock_that_is_set_back_for_good_does_not_stop_this_one() {
        let mut clock = based(ms(0));
        assert_eq!(clock.update(Ok(ms(3)), ms(5)).total, ms(0));
        assert_eq!(clock.update(Ok(ms(7)), ms(15)).total, ms(4));
    }

    #[test]
    fn a_rebased_clock_keeps_its_total_and_takes_any_reading() {
        let mut clock = based(ms(0));
        let _ = clock.update(Ok(ms(14)), ms(1010));
        clock.rebase();
        let reading = clock.update(Ok(ms(9999)), ms(2000));
        assert_eq!((reading.total, reading.fault), (ms(10), None));
        assert_eq!(clock.update(Ok(ms(9999)), ms(2010)).total, ms(10));
    }

    mod pairs {
        use std::cell::Cell;

        use pv_arch::CpuId;
        use pv_arch::mock::{Machine, MockArch};

        use super::*;
        use crate::Preemption;

        /// A record of a vCPU that is taken away for 50 ms right after its
        /// second look at the record.
        struct TakenAway<'a> {
            looks: Cell<u32>,
            steal: Cell<Nanos>,
            machine: &'a Machine,
        }

        impl StealSource for TakenAway<'_> {
            fn steal(&self) -> Result<Nanos, ReadError> {
                let seen = self.steal.get();
                self.looks.set(self.looks.get() + 1);
                if self.looks.get() == 3 {
                    self.machine.advance(ms(50));
                    self.steal.set(seen.plus(ms(50)));
                }
                Ok(seen)
            }

            fn preemption(&self) -> Preemption {
                Preemption::Unknown
            }
        }

        #[test]
        fn a_preemption_between_steal_and_time_is_not_a_jump() {
            let machine = Machine::new(1);
            let _cpu = machine.bind(CpuId::BOOT);
            let record = TakenAway {
                looks: Cell::new(0),
                steal: Cell::new(ms(0)),
                machine: &machine,
            };
            let mut clock = StealClock::new();
            let _ = clock.read::<MockArch>(&record); // two looks
            machine.advance(ms(1));
            let _ = clock.read::<MockArch>(&record);
            machine.advance(ms(1));
            let last = clock.read::<MockArch>(&record);
            assert_eq!((last.total, last.fault), (ms(50), None));
        }
    }
}
