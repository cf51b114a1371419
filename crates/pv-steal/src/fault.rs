//! What a [`StealClock`](crate::StealClock) refused to believe.

use core::fmt;

use pv_arch::Nanos;

use crate::ReadError;

/// Why a reading did not count, or not in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockFault {
    /// The record could not be read. The base stays where it was, so the next
    /// good reading covers this time as well.
    Unreadable(ReadError),
    /// Steal is less than it was: a migration, a restored snapshot, a torn read.
    SteppedBack {
        /// The steal read before.
        from: Nanos,
        /// The steal read now.
        to: Nanos,
    },
    /// Steal grew by more than the time that passed, by more than the carry
    /// bound: a migration, a torn read, junk.
    Jumped {
        /// The steal read before.
        from: Nanos,
        /// The steal read now.
        to: Nanos,
        /// The wall time between the two.
        elapsed: Nanos,
    },
    /// Steal keeps growing faster than wall time, each time by little. The
    /// reading counts up to the wall time; what no longer fits is dropped.
    Overran {
        /// What was dropped.
        dropped: Nanos,
    },
    /// The guest's own clock is behind an earlier reading.
    TimeWentBack {
        /// The time of the earlier reading.
        from: Nanos,
        /// The time of this reading.
        to: Nanos,
    },
}

impl fmt::Display for ClockFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "steal clock holds: {error}"),
            Self::SteppedBack { from, to } => {
                write!(f, "steal clock holds: steal went back from {from} to {to}")
            }
            Self::Jumped { from, to, elapsed } => write!(
                f,
                "steal clock holds: steal went from {from} to {to} within {elapsed}"
            ),
            Self::Overran { dropped } => write!(
                f,
                "steal clock: steal outran wall time, {dropped} were dropped"
            ),
            Self::TimeWentBack { from, to } => {
                write!(f, "steal clock holds: time went back from {from} to {to}")
            }
        }
    }
}

impl core::error::Error for ClockFault {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Unreadable(error) => Some(error),
            _ => None,
        }
    }
}

/// How often each [`ClockFault`] happened; a counter stays at its maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// [`ClockFault::Unreadable`].
    pub unreadable: u32,
    /// [`ClockFault::SteppedBack`].
    pub stepped_back: u32,
    /// [`ClockFault::Jumped`].
    pub jumped: u32,
    /// [`ClockFault::Overran`].
    pub overran: u32,
    /// [`ClockFault::TimeWentBack`].
    pub time_went_back: u32,
}

impl FaultCounts {
    /// No fault yet.
    pub const NONE: Self = Self {
        unreadable: 0,
        stepped_back: 0,
        jumped: 0,
        overran: 0,
        time_went_back: 0,
    };

    /// All faults.
    pub const fn sum(&self) -> u32 {
        self.unreadable
            .saturating_add(self.stepped_back)
            .saturating_add(self.jumped)
            .saturating_add(self.overran)
            .saturating_add(self.time_went_back)
    }

    #[cold]
    pub(crate) fn count(&mut self, fault: &ClockFault) {
        let counter = match fault {
            ClockFault::Unreadable(_) => &mut self.unreadable,
            ClockFault::SteppedBack { .. } => &mut self.stepped_back,
            ClockFault::Jumped { .. } => &mut self.jumped,
            ClockFault::Overran { .. } => &mut self.overran,
            ClockFault::TimeWentBack { .. } => &mut self.time_went_back,
        };
        *counter = counter.saturating_add(1);
    }
}

#[cfg(all(test, not(pv_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_counter_stays_at_its_maximum() {
        let mut counts = FaultCounts {
            overran: u32::MAX,
            jumped: 1,
            ..FaultCounts::NONE
        };
        let dropped = Nanos::new(1);
        counts.count(&ClockFault::Overran { dropped });
        assert_eq!(counts.overran, u32::MAX);
        assert_eq!(counts.sum(), u32::MAX);
    }

    #[test]
    fn a_fault_names_both_values() {
        let fault = ClockFault::Jumped {
            from: Nanos::new(1),
            to: Nanos::new(77),
            elapsed: Nanos::new(5),
        };
        let text = fault.to_string();
        assert!(text.contains("77 ns") && text.contains("within 5 ns"));
    }
}
