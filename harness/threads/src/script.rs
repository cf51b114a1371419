//! Preemptions at chosen moments: "stop the vCPU that holds the lock at its
//! n-th acquisition", "stop the middle waiter".
//!
//! Guest code under test says what it does with one watched lock by
//! [`probe`](crate::ThreadArch::probe); the host follows along and strikes.

use pv_arch::{CpuId, Nanos};

use crate::sched::Hold;

/// What a vCPU does with the watched lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It begins to wait for the lock.
    Waits,
    /// It has the lock.
    Acquired,
    /// It gave the lock back.
    Released,
}

/// When the host strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strike {
    /// Stop the vCPU that makes the n-th acquisition (counted from 1 over all
    /// vCPUs), and every n-th after it if `repeat`.
    Holder {
        /// Which acquisition.
        nth: u64,
        /// Do it again every `nth` acquisitions.
        repeat: bool,
    },
    /// The first time that at least this many vCPUs wait (3 or more make sense),
    /// stop the one in the middle, in order of arrival.
    MiddleWaiter {
        /// How many must wait.
        waiters: usize,
    },
}

/// One entry: when, for how long, and whether a directed yield ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// When.
    pub strike: Strike,
    /// How long the vCPU stays away.
    pub away: Nanos,
    /// Whether a directed yield to the vCPU brings it back at once, as on a host
    /// that merely ran somebody else.
    pub yields_end_it: bool,
}

/// All entries of a run.
pub type Script = Vec<Stop>;

/// The host's view of the watched lock.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    script: Script,
    struck: Vec<bool>,
    acquisitions: u64,
    /// In order of arrival. Its capacity is the number of vCPUs: nothing is
    /// allocated while vCPUs run.
    waiters: Vec<CpuId>,
}

impl Watch {
    pub fn new(script: Script, vcpus: usize) -> Self {
        Self {
            struck: vec![false; script.len()],
            script,
            acquisitions: 0,
            waiters: Vec::with_capacity(vcpus),
        }
    }

    pub fn acquisitions(&self) -> u64 {
        self.acquisitions
    }

    /// Follow one step of the guest; returns whom to stop now.
    pub fn follow(&mut self, cpu: CpuId, probe: Probe, now: Nanos) -> Option<(CpuId, Hold)> {
        match probe {
            Probe::Waits => {
                if !self.waiters.contains(&cpu) {
                    self.waiters.push(cpu);
                }
            }
            Probe::Acquired => {
                self.waiters.retain(|waiter| *waiter != cpu);
                self.acquisitions += 1;
            }
            Probe::Released => {}
        }
        let due = (0..self.script.len()).find(|entry| self.is_due(*entry, probe))?;
        self.struck[due] = true;
        let Stop {
            strike,
            away,
            yields_end_it,
        } = self.script[due];
        let target = match strike {
            Strike::Holder { .. } => cpu,
            Strike::MiddleWaiter { .. } => self.waiters[self.waiters.len() / 2],
        };
        let until = now.plus(away);
        Some((
            target,
            Hold {
                until,
                yields_end_it,
            },
        ))
    }

    fn is_due(&self, entry: usize, probe: Probe) -> bool {
        match self.script[entry].strike {
            Strike::Holder { nth, repeat } => {
                let n = self.acquisitions;
                probe == Probe::Acquired && nth > 0 && (n == nth || repeat && n.is_multiple_of(nth))
            }
            Strike::MiddleWaiter { waiters } => {
                probe == Probe::Waits && !self.struck[entry] && self.waiters.len() >= waiters.max(1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AWAY: Nanos = Nanos::from_millis(10);

    fn watch(strike: Strike) -> Watch {
        let stop = Stop {
            strike,
            away: AWAY,
            yields_end_it: false,
        };
        Watch::new(vec![stop], 8)
    }

    fn cpu(number: u32) -> CpuId {
        CpuId::new(number)
    }

    #[test]
    fn the_nth_holder_is_struck_once_or_repeatedly() {
        for (repeat, expected) in [(false, vec![3]), (true, vec![3, 6, 9])] {
            let mut watch = watch(Strike::Holder { nth: 3, repeat });
            let struck: Vec<u64> = (1..=10)
                .filter(|_| {
                    let struck = watch.follow(cpu(1), Probe::Acquired, Nanos::ZERO);
                    watch.follow(cpu(1), Probe::Released, Nanos::ZERO);
                    struck.is_some_and(|(target, hold)| target == cpu(1) && hold.until == AWAY)
                })
                .collect();
            assert_eq!(struck, expected);
        }
    }

    #[test]
    fn the_middle_waiter_is_struck_once() {
        let mut watch = watch(Strike::MiddleWaiter { waiters: 3 });
        assert_eq!(watch.follow(cpu(4), Probe::Waits, Nanos::ZERO), None);
        assert_eq!(watch.follow(cpu(2), Probe::Waits, Nanos::ZERO), None);
        let (target, _) = watch.follow(cpu(7), Probe::Waits, Nanos::ZERO).unwrap();
        assert_eq!(target, cpu(2));
        assert_eq!(watch.follow(cpu(5), Probe::Waits, Nanos::ZERO), None);
    }

    #[test]
    fn whoever_acquires_waits_no_more() {
        let mut watch = watch(Strike::MiddleWaiter { waiters: 3 });
        for number in 0..6 {
            watch.follow(cpu(number), Probe::Waits, Nanos::ZERO);
            assert_eq!(
                watch.follow(cpu(number), Probe::Acquired, Nanos::ZERO),
                None
            );
        }
        assert_eq!(watch.acquisitions(), 6);
    }
}
