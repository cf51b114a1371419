//! Who pays for stolen time: the accounting that a scheduler does at each tick.
//!
//! Steal comes in lumps that do not fit the intervals of whoever accounts it.
//! Each consumer (the tick's statistics, the clock of a run queue, ..) keeps its
//! own cursor on one [`StealClock`](crate::StealClock) and takes from it as much
//! as its interval can hold; the remainder is a debt that the next intervals pay.
//!
//! Invariant: `charged + discarded + forgiven + debt` is exactly the growth of
//! the total since the cursor was made. Nothing is lost and nothing invented.

use pv_arch::Nanos;

/// The largest debt that is carried: one second.
///
/// The intervals of a consumer and the steal of its clock cover the same wall
/// time, so an honest debt is one wait that fell between the two readings, and
/// no host that schedules at all keeps a runnable vCPU waiting for a second.
/// What makes larger debts is a record that was unreadable for hours while the
/// consumer went on. Charging those hours to the tasks that run afterwards would
/// be wrong, so they are [forgiven](StealAccount::forgiven): one glitch makes at
/// most one second look stolen.
pub const DEBT_BOUND: Nanos = Nanos::from_secs(1);

/// A consumer's cursor on the total of a [`StealClock`](crate::StealClock).
///
/// ```
/// use pv_arch::Nanos;
/// use pv_steal::{Split, StealAccount};
///
/// let ms = Nanos::from_millis;
/// let mut account = StealAccount::new();
/// // A tick of 10 ms, of which 4 ms were stolen.
/// assert_eq!(account.split(ms(4), ms(10)), Split { stolen: ms(4), used: ms(6) });
/// // 15 ms of steal do not fit into a tick; the next one pays the rest.
/// assert_eq!(account.take(ms(19), ms(10)), ms(10));
/// assert_eq!(account.take(ms(19), ms(10)), ms(5));
/// // Idle: nobody is charged.
/// account.discard(ms(25));
/// assert_eq!(account.take(ms(25), ms(10)), ms(0));
/// ```
#[derive(Clone, Debug, Default)]
pub struct StealAccount {
    seen: Nanos,
    debt: Nanos,
    charged: Nanos,
    discarded: Nanos,
    forgiven: Nanos,
}

/// An interval, divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// What the host took.
    pub stolen: Nanos,
    /// What the guest had. The two add up to the interval exactly.
    pub used: Nanos,
}

impl StealAccount {
    /// A cursor on a clock at zero.
    pub const fn new() -> Self {
        Self::starting_at(Nanos::ZERO)
    }

    /// A cursor on a clock that already tells `total`, which is not this
    /// consumer's concern.
    pub const fn starting_at(total: Nanos) -> Self {
        Self {
            seen: total,
            debt: Nanos::ZERO,
            charged: Nanos::ZERO,
            discarded: Nanos::ZERO,
            forgiven: Nanos::ZERO,
        }
    }

    /// How much of the `interval` that ends with the clock at `total` was
    /// stolen: never more than the interval. The remainder is carried to the
    /// next intervals, up to [`DEBT_BOUND`].
    #[inline]
    pub fn take(&mut self, total: Nanos, interval: Nanos) -> Nanos {
        let owed = self.owed(total);
        let stolen = owed.at_most(interval);
        let rest = owed.since(stolen);
        self.debt = rest.at_most(DEBT_BOUND);
        self.charged = self.charged.plus(stolen);
        self.forgiven = self.forgiven.plus(rest.since(self.debt));
        stolen
    }

    /// [`take`](Self::take), with what is left of the interval: user, system or
    /// any other time that the guest really had.
    #[inline]
    pub fn split(&mut self, total: Nanos, interval: Nanos) -> Split {
        let stolen = self.take(total, interval);
        Split {
            stolen,
            used: interval.since(stolen),
        }
    }

    /// End an idle interval with the clock at `total`. By convention the steal
    /// of an idle CPU is dropped, and so is what was owed before: the task that
    /// owed it is gone.
    #[inline]
    pub fn discard(&mut self, total: Nanos) {
        self.discarded = self.discarded.plus(self.owed(total));
        self.debt = Nanos::ZERO;
    }

    /// Steal that is still to be charged.
    pub const fn debt(&self) -> Nanos {
        self.debt
    }

    /// Steal that intervals were charged with.
    pub const fn charged(&self) -> Nanos {
        self.charged
    }

    /// Steal that was dropped because the CPU was idle.
    pub const fn discarded(&self) -> Nanos {
        self.discarded
    }

    /// Steal that was dropped because the debt came to its bound.
    pub const fn forgiven(&self) -> Nanos {
        self.forgiven
    }

    /// Move the cursor to `total`; a total from before it counts for nothing.
    fn owed(&mut self, total: Nanos) -> Nanos {
        let new = total.since(self.seen);
        self.seen = self.seen.plus(new);
        self.debt.plus(new)
    }
}

#[cfg(all(test, not(pv_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_set_late_is_not_charged_for_what_came_before() {
        let hour = Nanos::from_secs(3600);
        let mut account = StealAccount::starting_at(hour);
        assert_eq!(account.take(hour, hour), Nanos::ZERO);
    }

    #[test]
    fn one_glitch_makes_at_most_a_second_look_stolen() {
        let mut account = StealAccount::new();
        let (tick, glitch) = (Nanos::from_millis(10), Nanos::from_secs(7200));
        let ticks = (0..1000)
            .filter(|_| account.take(glitch, tick) > Nanos::ZERO)
            .count();
        assert_eq!(ticks, 1 + 100, "the tick of the glitch and one second");
        let kept = tick.plus(DEBT_BOUND);
        assert_eq!(account.charged(), kept);
        assert_eq!(account.forgiven(), glitch.since(kept));
    }

    #[test]
    fn a_total_from_before_the_cursor_counts_for_nothing_and_moves_nothing() {
        let ms = Nanos::from_millis;
        let mut account = StealAccount::new();
        assert_eq!(account.take(ms(5), ms(10)), ms(5));
        assert_eq!(account.take(ms(3), ms(10)), ms(0));
        assert_eq!(account.take(ms(6), ms(10)), ms(1));
    }
}
