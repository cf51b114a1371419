//! What to believe of another CPU's `preempted`.
//!
//! A record's word is a hint, and some hosts give it wrongly in ways that last:
//! they never set the bit, they leave it set, or they never write the record at
//! all. A [`Belief`] looks at a record from outside, over time, and passes its
//! word on or answers [`Preemption::Unknown`]. It never says more than the
//! record: an unset bit never becomes `Preempted`.
//!
//! ```text
//!            steal is not 0, or grows,
//!            or the bit is seen set         SILENCE_HITS hits missed
//!   Unheard --------------------> Speaks --------------------> Silent
//!      ^                            ^                             |
//!      +-- reset()                  +------ the bit is seen set --+
//! ```
//!
//! | standing | the bit is unset | the bit is set |
//! | --- | --- | --- |
//! | `Unheard` | `Unknown` | (makes it `Speaks`) |
//! | `Speaks` | `Running` | `Preempted` for [`TRUST_BOUND`], then `Unknown` |
//! | `Silent` | `Unknown` | (makes it `Speaks`) |
//!
//! *Unheard.* The record was zero when it was registered, so anything else in it
//! was written by the host. Until then a record that the host cannot reach and
//! one of a vCPU that was never kept waiting look alike; nothing that a guest
//! can see from outside tells them apart, whatever the time. So there is no
//! time after which the record is called dead: [`Standing::Unheard`] tells for
//! how long it was watched, and `Unknown` costs a healthy host nothing, since a
//! lock takes it for no and a policy falls back to steal, which is 0.
//!
//! *Silent.* If a share `p` of the time between two looks was stolen, a look in
//! there meets a set bit with chance `p`: that is `p` expected hits. Only looks
//! that said `Running` when the time began are counted, in eighths, rounded
//! down to a power of two. After [`SILENCE_HITS`] expected hits without one,
//! a host that sets the bit would have gone unseen with chance `e^-16`. That
//! holds for looks that do not go by the host's schedule; looks that do (a host
//! that always runs the two CPUs together) see no bit either, and then it tells
//! them nothing: `Unknown` is right again. So it is for waits after a wake-up,
//! which are steal but not preemption.
//!
//! *Stale.* A vCPU that ran since has grown steal: it was waiting. So while
//! steal stands still and the bit stays set, this is one wait, or a bit that
//! nobody will clear. After [`TRUST_BOUND`] it is not believed until the bit is
//! unset or steal grows.

use pv_arch::Nanos;

use crate::{Preemption, ReadError};

/// For how long one wait is believed: one second. Hosts that schedule at all
/// let a runnable vCPU wait for a few slices (tens of milliseconds) or a period
/// of a bandwidth limit (100 ms, at most one second).
pub const TRUST_BOUND: Nanos = Nanos::from_secs(1);

/// How many expected hits may be missed before a host is taken for one that
/// does not publish `preempted`.
pub const SILENCE_HITS: u8 = 16;

/// Evidence counts eighths of an expected hit.
const EIGHTHS: u8 = 8;
/// The evidence that makes a record `Silent`.
const SILENCE: u8 = SILENCE_HITS * EIGHTHS;

/// What one observer believes of one other CPU's record.
///
/// Plain state, no atomics: it belongs to whoever looks (one for each observed
/// CPU, or one shared under the lock of a policy). It is for policies; a lock's
/// fast path reads the bare bit, and may ask [`standing`](Self::standing)
/// whether it is worth it.
///
/// ```
/// use pv_arch::Nanos;
/// use pv_steal::{Belief, Preemption};
///
/// let ms = Nanos::from_millis;
/// let mut belief = Belief::new();
/// let set = Preemption::Preempted;
/// assert_eq!(belief.look(set, Ok(ms(5)), ms(0)), Preemption::Preempted);
/// assert_eq!(belief.look(set, Ok(ms(5)), ms(900)), Preemption::Preempted);
/// // A second, and steal has not grown: this bit is stale.
/// assert_eq!(belief.look(set, Ok(ms(5)), ms(1100)), Preemption::Unknown);
/// // It ran, and was taken away again.
/// assert_eq!(belief.look(set, Ok(ms(9)), ms(1200)), Preemption::Preempted);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Belief {
    last: Option<Look>,
    heard: bool,
    /// For how long nothing was heard, or the bit has been seen set.
    lasted: Nanos,
    /// Eighths of expected hits that were missed since the last hit.
    missed: u8,
}

/// The look before this one.
#[derive(Clone, Copy, Debug)]
struct Look {
    said: Preemption,
    /// The last steal that could be read, and when it was read.
    steal: Option<(Nanos, Nanos)>,
    now: Nanos,
}

/// How far a record is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The host has written nothing into the record yet: either it had no
    /// reason to, or it cannot.
    Unheard {
        /// For how long the record was watched.
        watched: Nanos,
    },
    /// The host writes the record.
    Speaks,
    /// The host counts steal but does not set `preempted`, or not where this
    /// observer could see it.
    Silent,
}

impl Belief {
    /// Nothing heard yet.
    pub const fn new() -> Self {
        Self {
            last: None,
            heard: false,
            lasted: Nanos::ZERO,
            missed: 0,
        }
    }

    /// A look at the record at time `now`: its `said` word and its raw steal.
    /// What of it to believe.
    pub fn look(
        &mut self,
        said: Preemption,
        steal: Result<Nanos, ReadError>,
        now: Nanos,
    ) -> Preemption {
        let before = self.last;
        let known = before.and_then(|look| look.steal);
        let grown = match (steal, known) {
            (Ok(steal), Some((old, _))) => growth(old, steal),
            (Ok(_), None) | (Err(_), _) => Nanos::ZERO,
        };
        let was_heard = self.heard;
        self.heard |= said == Preemption::Preempted
            || grown > Nanos::ZERO
            || steal.is_ok_and(|steal| steal > Nanos::ZERO);

        let same_word = before.is_some_and(|look| look.said == said);
        let same_wait = same_word && grown == Nanos::ZERO;
        let goes_on = match said {
            Preemption::Preempted => same_wait,
            Preemption::Running | Preemption::Unknown => was_heard == self.heard,
        };
        let passed = before.map_or(Nanos::ZERO, |look| now.since(look.now));
        self.lasted = if goes_on {
            self.lasted.plus(passed)
        } else {
            Nanos::ZERO
        };

        match said {
            Preemption::Preempted => self.missed = 0,
            Preemption::Running if same_word => {
                let window = known.map_or(Nanos::ZERO, |(_, read)| now.since(read));
                self.missed = self.missed.saturating_add(expected_hit(grown, window));
            }
            Preemption::Running | Preemption::Unknown => {}
        }
        self.last = Some(Look {
            said,
            steal: steal.ok().map(|steal| (steal, now)).or(known),
            now,
        });
        self.judge(said)
    }

    /// How far the record is believed.
    pub const fn standing(&self) -> Standing {
        if !self.heard {
            Standing::Unheard {
                watched: self.lasted,
            }
        } else if self.missed >= SILENCE {
            Standing::Silent
        } else {
            Standing::Speaks
        }
    }

    /// Forget everything: the record was registered or unregistered, its CPU
    /// came or went, or the guest was migrated.
    pub fn reset(&mut self) {
        *self = Self::new();
    }

    fn judge(&self, said: Preemption) -> Preemption {
        match (said, self.standing()) {
            (Preemption::Preempted, _) if self.lasted <= TRUST_BOUND => Preemption::Preempted,
            (Preemption::Running, Standing::Speaks) => Preemption::Running,
            _ => Preemption::Unknown,
        }
    }
}

/// How much steal grew; a step back is no growth.
fn growth(old: Nanos, new: Nanos) -> Nanos {
    let step = new.get().wrapping_sub(old.get());
    Nanos::new(if step > u64::MAX >> 1 { 0 } else { step })
}

/// The chance that a look within `window` met a wait, when `grown` of it was
/// stolen: 0, 1, 2, 4 or 8 eighths, rounded down. A window without time says
/// nothing.
fn expected_hit(grown: Nanos, window: Nanos) -> u8 {
    if window == Nanos::ZERO {
        return 0;
    }
    [(1, 8), (2, 4), (4, 2), (8, 1)]
        .into_iter()
        .find(|(times, _)| grown.get().saturating_mul(*times) >= window.get())
        .map_or(0, |(_, eighths)| eighths)
}

#[cfg(all(test, not(pv_loom)))]
mod tests {
    use super::Preemption::{Preempted, Running, Unknown};
    use super::*;

    const fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    #[test]
    fn a_record_that_is_never_written_is_not_believed_and_says_for_how_long() {
        let mut belief = Belief::new();
        for now in 0..=5000 {
            assert_eq!(belief.look(Running, Ok(ms(0)), ms(now)), Unknown);
        }
        let watched = ms(5000);
        assert_eq!(belief.standing(), Standing::Unheard { watched });
        assert_eq!(belief.look(Running, Ok(ms(1)), ms(5001)), Running);
        assert_eq!(belief.standing(), Standing::Speaks);
    }

    #[test]
    fn steal_from_before_the_first_look_is_a_sign_of_life() {
        let mut belief = Belief::new();
        assert_eq!(belief.look(Running, Ok(ms(7)), ms(0)), Running);
    }

    /// A look each 10 ms at a vCPU that loses `lost` of them; at which look
    /// its host is taken for silent.
    fn silent_after(lost: Nanos) -> Option<u64> {
        let mut belief = Belief::new();
        (0..1000).find(|look| {
            let steal = Nanos::new(lost.get() * look);
            belief.look(Running, Ok(steal), ms(10 * look)) == Unknown
                && belief.standing() == Standing::Silent
        })
    }

    #[test]
    fn a_host_that_never_sets_the_bit_is_found_out_after_sixteen_expected_hits() {
        assert_eq!(silent_after(ms(10)), Some(16));
        assert_eq!(silent_after(ms(5)), Some(32));
        assert_eq!(silent_after(ms(3)), Some(64));
        assert_eq!(silent_after(ms(2)), Some(128));
        assert_eq!(silent_after(ms(1)), None, "under an eighth says nothing");
    }

    #[test]
    fn one_sight_of_the_bit_makes_up_for_all_that_was_missed() {
        let mut belief = Belief::new();
        for look in 0..=20 {
            let _ = belief.look(Running, Ok(ms(10 * look)), ms(10 * look));
        }
        assert_eq!(belief.standing(), Standing::Silent);
        assert_eq!(belief.look(Preempted, Ok(ms(200)), ms(201)), Preempted);
        assert_eq!(belief.look(Running, Ok(ms(210)), ms(211)), Running);
    }

    #[test]
    fn a_stale_bit_is_believed_for_a_second_and_again_once_it_changed() {
        let mut belief = Belief::new();
        assert_eq!(belief.look(Preempted, Ok(ms(5)), ms(10)), Preempted);
        assert_eq!(belief.look(Preempted, Ok(ms(5)), ms(1010)), Preempted);
        assert_eq!(belief.look(Preempted, Ok(ms(5)), ms(1011)), Unknown);
        assert_eq!(belief.look(Preempted, Ok(ms(5)), ms(9000)), Unknown);
        assert_eq!(belief.look(Running, Ok(ms(5)), ms(9001)), Running);
        assert_eq!(belief.look(Preempted, Ok(ms(5)), ms(9002)), Preempted);
    }

    #[test]
    fn steal_that_steps_back_does_not_renew_trust() {
        let mut belief = Belief::new();
        let _ = belief.look(Preempted, Ok(ms(5)), ms(0));
        assert_eq!(belief.look(Preempted, Ok(ms(4)), ms(1001)), Unknown);
    }

    #[test]
    fn a_record_that_cannot_tell_stays_unknown() {
        let mut belief = Belief::new();
        for look in 0..100 {
            assert_eq!(belief.look(Unknown, Ok(ms(look)), ms(look)), Unknown);
        }
        assert_eq!(belief.standing(), Standing::Speaks);
    }
}
