//! How much was stolen *recently*: a decaying average in integers.
//!
//! State: two sums, of stolen and of observed time, in which time that lies `a`
//! in the past weighs `2^(-a / half-life)`. Their quotient is the share of
//! recent time that was stolen; it is never formed where it is only compared.
//!
//! Within an interval, steal is taken as spread evenly. An interval `d` with
//! `y = ln 2 * d / half-life` then means
//!
//! ```text
//!   sum <- sum * e^-y + part * (1 - e^-y) / y
//! ```
//!
//! for both sums, which needs neither a table nor a division: the half-life is a
//! power of two, so `y` is a shift and a multiplication; an interval is halved
//! (shifted) until it is below 1/64 of a half-life, where three terms of the
//! series are enough; and a result for `d` becomes one for `2 d` by
//!
//! ```text
//!   contribution <- contribution * (1 + e^-y)        e^-y <- (e^-y)^2
//! ```
//!
//! so a gap of any length costs at most 50 such steps and is exact like any
//! other.
//!
//! Invariants:
//!
//! 1. `stolen <= observed`: both go through the same steps, each of which is
//!    monotone in its operand. Hence 0 to 1000 permille, and more steal never
//!    gives a lower estimate.
//! 2. `observed <= half-life / ln 2 < 2^53` units: it is cut there. (The exact
//!    sum stays below, and rounding goes down; the cut makes the bound plain
//!    instead of proven.) A contribution is cut likewise,
//!    so no sum of two overflows, nor does a product with 1000.
//!
//! By these and the range of a half-life, nothing here overflows and no shift is
//! too far. The compiler does not see that; so the arithmetic is of the kinds
//! that cannot panic in a kernel built with overflow checks, and of those the
//! saturating kind for the sums, which stays monotone.
//!
//! Error: see `docs/steal-accounting.md`; below 1/10000 of the share.

use pv_arch::Nanos;

/// Fraction bits of the sums: they count in 1/65536 ns.
const FRACTION: u32 = 16;
/// `ln 2` as a fraction of 2^64.
const LN_2: u64 = 0xb172_17f7_d1cf_79ab;
/// `1 / ln 2` as a multiple of 2^-62.
const PER_LN_2: u64 = 0x5c55_1d94_ae0b_f85d;
/// The series is used for intervals below half-life / 2^6.
const SERIES_LOG2: u32 = 6;

/// The time after which an observation weighs half: a power of two of
/// nanoseconds, from 2^20 (1 ms) to 2^36 (69 s).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HalfLife {
    log2: u32,
}

impl HalfLife {
    /// 2^27 ns, 134 ms: several time slices of a host. For placing a task.
    pub const SHORT: Self = Self { log2: 27 };
    /// 2^32 ns, 4.3 s: what does not pass by itself. For deciding which CPUs to
    /// prefer.
    pub const LONG: Self = Self { log2: 32 };

    /// 2^`log2` ns, or `None` outside 20 to 36.
    pub const fn from_log2(log2: u32) -> Option<Self> {
        match log2 {
            20..=36 => Some(Self { log2 }),
            _ => None,
        }
    }

    /// As a time.
    pub const fn get(self) -> Nanos {
        Nanos::new(1_u64.wrapping_shl(self.log2))
    }

    /// What a sum comes to when the share is 1 for ever, in units.
    const fn limit(self) -> u64 {
        PER_LN_2.wrapping_shr((62 - FRACTION).wrapping_sub(self.log2))
    }
}

/// A decaying estimate of the share of time that is stolen.
///
/// ```
/// use pv_arch::Nanos;
/// use pv_steal::{HalfLife, StealEstimate};
///
/// let ms = Nanos::from_millis;
/// let mut recent = StealEstimate::new(HalfLife::SHORT);
/// for _ in 0..100 {
///     recent.update(ms(3), ms(10));
/// }
/// assert_eq!(recent.permille(), 300);
/// assert!(recent.exceeds(250) && !recent.exceeds(301));
///
/// recent.update(ms(0), HalfLife::SHORT.get()); // a half-life without steal
/// assert_eq!(recent.permille(), 150);
/// ```
#[derive(Clone, Debug)]
pub struct StealEstimate {
    half_life: HalfLife,
    stolen: u64,
    observed: u64,
}

impl StealEstimate {
    /// An estimate of 0 by no observation.
    pub const fn new(half_life: HalfLife) -> Self {
        Self {
            half_life,
            stolen: 0,
            observed: 0,
        }
    }

    /// `stolen` of the latest `interval` was stolen (more than all of it counts
    /// as all). Intervals follow each other: this one ends now, at the start of
    /// the next one.
    pub fn update(&mut self, stolen: Nanos, interval: Nanos) {
        self.advance(stolen.at_most(interval), interval, interval);
    }

    /// Time passed that says nothing of steal, as while the CPU was idle. The
    /// estimate stays, but weighs less against what comes next.
    pub fn skip(&mut self, gap: Nanos) {
        self.advance(Nanos::ZERO, Nanos::ZERO, gap);
    }

    /// Whether more than `permille` of recent time was stolen. Two
    /// multiplications; false where nothing was observed.
    #[inline]
    pub const fn exceeds(&self, permille: u16) -> bool {
        let permille = if permille < 1000 { permille } else { 1000 };
        self.stolen.saturating_mul(1000) > self.observed.saturating_mul(permille as u64)
    }

    /// The share of recent time that was stolen, 0 to 1000, rounded; 0 where
    /// nothing was observed. This divides: for reports.
    #[expect(clippy::cast_possible_truncation, reason = "at most 1000")]
    pub const fn permille(&self) -> u16 {
        let thousandfold = self.stolen.saturating_mul(1000);
        let rounded = thousandfold.saturating_add(self.observed / 2);
        match rounded.checked_div(self.observed) {
            Some(share) => share as u16,
            None => 0,
        }
    }

    /// The decayed sum of stolen time.
    pub const fn stolen(&self) -> Nanos {
        Nanos::new(self.stolen >> FRACTION)
    }

    /// The decayed sum of observed time: how much the estimate stands on. It
    /// comes to 1.44 half-lives.
    pub const fn observed(&self) -> Nanos {
        Nanos::new(self.observed >> FRACTION)
    }

    /// Let `gap` pass, of which `observed` (all or nothing) was observed.
    fn advance(&mut self, stolen: Nanos, observed: Nanos, gap: Nanos) {
        if gap == Nanos::ZERO {
            return;
        }
        let limit = self.half_life.limit();
        let mut decay = Decay::of(self.half_life, gap);
        let mut more_stolen = decay.contribution(stolen);
        let mut more_observed = decay.contribution(observed);
        for _ in 0..decay.halvings {
            more_stolen = more_stolen
                .saturating_add(less(more_stolen, decay.loss))
                .min(limit);
            more_observed = more_observed
                .saturating_add(less(more_observed, decay.loss))
                .min(limit);
            decay.double();
        }
        self.stolen = less(self.stolen, decay.loss)
            .saturating_add(more_stolen)
            .min(limit);
        self.observed = less(self.observed, decay.loss)
            .saturating_add(more_observed)
            .min(limit);
    }
}

/// What an interval, halved so often, does to the sums. Fractions of 2^64.
struct Decay {
    halvings: u32,
    /// `1 - e^-y`: what a sum loses.
    loss: u64,
    /// `1 - (1 - e^-y) / y`: what a contribution has lost by its end.
    lag: u64,
}

impl Decay {
    fn of(half_life: HalfLife, interval: Nanos) -> Self {
        let bits = u64::BITS - interval.get().leading_zeros();
        let halvings = bits.saturating_sub(half_life.log2.saturating_sub(SERIES_LOG2));
        // Below 2^(log2 - 6) ns, so the shifted value is below 2^58.
        let part = units(interval, halvings);
        let scale = (u64::BITS - FRACTION).wrapping_sub(half_life.log2);
        let y = product(part.wrapping_shl(scale), LN_2);
        let y2 = product(y, y);
        let y3 = product(y2, y);
        // y < 1/64, so each term is far below the one before it.
        Self {
            halvings,
            loss: y.wrapping_sub(y2 / 2).wrapping_add(y3 / 6),
            lag: (y / 2).wrapping_sub(y2 / 6).wrapping_add(y3 / 24),
        }
    }

    /// What `time` within the interval adds, for one of the halved parts.
    fn contribution(&self, time: Nanos) -> u64 {
        less(units(time, self.halvings), self.lag)
    }

    /// The loss of an interval twice as long: `1 - (1 - loss)^2`, which stays
    /// below 1.
    fn double(&mut self) {
        self.loss = self.loss.saturating_add(product(self.loss, !self.loss));
    }
}

/// `time`, halved `halvings` times, in units.
#[expect(
    clippy::cast_possible_truncation,
    reason = "halved to below 2^30 ns, so below 2^46 units"
)]
fn units(time: Nanos, halvings: u32) -> u64 {
    ((u128::from(time.get()) << FRACTION).wrapping_shr(halvings)) as u64
}

/// `value` times a fraction of 2^64, rounded down.
fn product(value: u64, fraction: u64) -> u64 {
    ((u128::from(value) * u128::from(fraction)) >> 64) as u64
}

/// `value` less its fraction of 2^64, rounded down, so that a sum that only
/// decays comes to 0.
fn less(value: u64, fraction: u64) -> u64 {
    product(value, !fraction)
}

#[cfg(all(test, not(pv_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_half_life_halves() {
        for log2 in 20..=36 {
            let half_life = HalfLife::from_log2(log2).unwrap();
            let mut estimate = StealEstimate::new(half_life);
            estimate.stolen = 2 << 34;
            estimate.skip(half_life.get());
            let off = estimate.stolen.abs_diff(1 << 34);
            assert!(off < 1 << 10, "half-life 2^{log2}: off by {off} of 2^34");
        }
        assert_eq!(HalfLife::from_log2(19), None);
        assert_eq!(HalfLife::from_log2(37), None);
    }

    #[test]
    fn the_longest_gap_leaves_nothing_and_the_longest_steal_everything() {
        for log2 in [20, 36] {
            let half_life = HalfLife::from_log2(log2).unwrap();
            let mut estimate = StealEstimate::new(half_life);
            estimate.update(Nanos::MAX, Nanos::MAX);
            assert_eq!(estimate.permille(), 1000);
            let whole = estimate.observed().get().abs_diff(half_life.limit() >> 16);
            assert!(whole < 1 << (log2 - 20), "off by {whole}");
            estimate.update(Nanos::ZERO, Nanos::MAX);
            assert_eq!((estimate.stolen, estimate.permille()), (0, 0));
            estimate.skip(Nanos::MAX);
            assert_eq!(estimate.observed, 0);
        }
    }

    #[test]
    fn no_observation_exceeds_nothing() {
        let mut estimate = StealEstimate::new(HalfLife::SHORT);
        estimate.update(Nanos::MAX, Nanos::ZERO);
        assert!(!estimate.exceeds(0));
        assert_eq!(estimate.permille(), 0);
    }

    #[test]
    fn nothing_is_above_the_whole() {
        let mut estimate = StealEstimate::new(HalfLife::SHORT);
        estimate.update(Nanos::MAX, Nanos::MAX);
        assert!(estimate.exceeds(999));
        assert!(!estimate.exceeds(1000) && !estimate.exceeds(u16::MAX));
    }
}
