//! Answers to "is that CPU preempted?", of any quality.

use crate::Nanos;

/// How well a mock machine answers
/// [`Arch::is_preempted`](crate::Arch::is_preempted).
///
/// Code under test must be *correct* with every one of them; with
/// [`Oracle::Exact`] it should also be fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Oracle {
    /// The truth at the moment of the question.
    #[default]
    Exact,
    /// The truth as it was this long ago.
    Late(Nanos),
    /// Nobody is ever preempted.
    AlwaysFalse,
    /// Everybody always is.
    AlwaysTrue,
    /// A coin, from this seed; the same seed gives the same answers.
    Random(u64),
}

impl Oracle {
    /// The answer for a CPU whose preemptions and resumptions were `history`
    /// (in order of time).
    pub(super) fn answer(&mut self, history: &[(Nanos, bool)], now: Nanos) -> bool {
        match self {
            Self::Exact => truth_at(history, now),
            Self::Late(delay) => {
                // Before the machine is `delay` old there is nothing to tell.
                now >= *delay && truth_at(history, now.since(*delay))
            }
            Self::AlwaysFalse => false,
            Self::AlwaysTrue => true,
            Self::Random(state) => split_mix_64(state) & 1 == 1,
        }
    }
}

fn truth_at(history: &[(Nanos, bool)], when: Nanos) -> bool {
    history
        .iter()
        .rev()
        .find(|(at, _)| *at <= when)
        .is_some_and(|(_, preempted)| *preempted)
}

/// The next number of the `SplitMix64` generator ("Fast splittable pseudorandom
/// number generators", OOPSLA 2014).
fn split_mix_64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
