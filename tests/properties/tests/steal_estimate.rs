//! `StealEstimate` against the same average in floating point.

use proptest::collection::vec;
use proptest::prelude::*;
use pv_arch::Nanos;
use pv_properties::{config, nasty};
use pv_steal::{HalfLife, StealEstimate};

const MS: u64 = 1_000_000;

fn half_life() -> impl Strategy<Value = HalfLife> {
    (20..=36_u32).prop_map(|log2| HalfLife::from_log2(log2).unwrap())
}

/// An interval from a nanosecond to ten hours, each magnitude alike.
fn interval() -> impl Strategy<Value = u64> {
    (1_u64 << 44..1 << 45, 0..45_u32).prop_map(|(ns, shift)| ns >> shift)
}

/// Converting to a float rounds, far below any tolerance here.
#[expect(clippy::cast_precision_loss)]
fn float(ns: u64) -> f64 {
    ns as f64
}

/// The exact average, as far as floats are exact.
struct Exact {
    half_life: f64,
    stolen: f64,
    observed: f64,
}

impl Exact {
    fn new(half_life: HalfLife) -> Self {
        Self {
            half_life: float(half_life.get().get()),
            stolen: 0.0,
            observed: 0.0,
        }
    }

    fn limit(&self) -> f64 {
        self.half_life / core::f64::consts::LN_2
    }

    fn update(&mut self, stolen: u64, interval: u64) {
        let y = float(interval) / self.limit();
        // What is left of a nanosecond that is spread over the interval.
        let kept = -(-y).exp_m1() / y;
        self.skip(interval);
        self.stolen += float(stolen) * kept;
        self.observed += float(interval) * kept;
    }

    fn skip(&mut self, gap: u64) {
        let decay = (-float(gap) / self.limit()).exp();
        self.stolen *= decay;
        self.observed *= decay;
    }
}

/// Both sums within 1/100000 of their limit and a nanosecond (what the getters
/// round away).
fn close(estimate: &StealEstimate, exact: &Exact) -> Result<(), TestCaseError> {
    let tolerance = exact.limit() * 1e-5 + 1.0;
    let stolen = float(estimate.stolen().get());
    let observed = float(estimate.observed().get());
    prop_assert!(
        (stolen - exact.stolen).abs() <= tolerance,
        "stolen {stolen}, exactly {}",
        exact.stolen
    );
    prop_assert!(
        (observed - exact.observed).abs() <= tolerance,
        "observed {observed}, exactly {}",
        exact.observed
    );
    // The share, where it stands on more than the rounding of its parts.
    if exact.observed > 1e5 {
        let share = 1000.0 * exact.stolen / exact.observed;
        let said = f64::from(estimate.permille());
        prop_assert!((said - share).abs() <= 0.6, "said {said}, exactly {share}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn integers_do_as_well_as_floats(
        half_life in half_life(),
        steps in vec((interval(), 0..=100_u64, 0..8_u8), 1..60),
    ) {
        let mut estimate = StealEstimate::new(half_life);
        let mut exact = Exact::new(half_life);
        for (interval, percent, kind) in steps {
            if kind == 0 {
                estimate.skip(Nanos::new(interval));
                exact.skip(interval);
            } else {
                let stolen = interval / 100 * percent;
                estimate.update(Nanos::new(stolen), Nanos::new(interval));
                exact.update(stolen, interval);
            }
            close(&estimate, &exact)?;
        }
    }

    #[test]
    fn any_input_stays_within_0_and_1000_and_comparing_agrees_with_dividing(
        half_life in half_life(),
        steps in vec((nasty(), nasty(), any::<bool>()), 1..60),
        ask in 0..1100_u16,
    ) {
        let mut estimate = StealEstimate::new(half_life);
        for (stolen, interval, skip) in steps {
            if skip {
                estimate.skip(Nanos::new(interval));
            } else {
                estimate.update(Nanos::new(stolen), Nanos::new(interval));
            }
            let said = estimate.permille();
            prop_assert!(said <= 1000);
            prop_assert!(estimate.stolen() <= estimate.observed());
            // `permille` rounds, so the neighbour on either side is certain.
            if ask < said { prop_assert!(estimate.exceeds(ask)); }
            if ask > said { prop_assert!(!estimate.exceeds(ask)); }
        }
    }

    #[test]
    fn more_steal_never_gives_a_lower_estimate(
        half_life in half_life(),
        steps in vec((interval(), nasty(), nasty()), 1..60),
        ask in 0..1000_u16,
    ) {
        let mut lower = StealEstimate::new(half_life);
        let mut upper = StealEstimate::new(half_life);
        for (interval, one, other) in steps {
            let (one, other) = (one % (interval + 1), other % (interval + 1));
            lower.update(Nanos::new(one.min(other)), Nanos::new(interval));
            upper.update(Nanos::new(one.max(other)), Nanos::new(interval));
            prop_assert!(lower.stolen() <= upper.stolen());
            prop_assert!(lower.permille() <= upper.permille());
            prop_assert!(!lower.exceeds(ask) || upper.exceeds(ask));
        }
    }

    #[test]
    fn how_an_interval_is_cut_does_not_matter(
        half_life in half_life(),
        before in (interval(), 0..=100_u64),
        unit in 1..10 * MS,
        percent in 0..=100_u64,
        cuts in vec(1..100_u64, 1..40),
    ) {
        let (stolen, unit) = (unit * percent, unit * 100);
        let mut whole = StealEstimate::new(half_life);
        whole.update(Nanos::new(before.0 / 100 * before.1), Nanos::new(before.0));
        let mut cut = whole.clone();
        let units: u64 = cuts.iter().sum();
        whole.update(Nanos::new(stolen * units), Nanos::new(unit * units));
        for units in cuts {
            cut.update(Nanos::new(stolen * units), Nanos::new(unit * units));
        }
        let tolerance = float(half_life.get().get()) * 1e-6 + 1.0;
        for (one, other) in [
            (whole.stolen(), cut.stolen()),
            (whole.observed(), cut.observed()),
        ] {
            let off = float(one.get().abs_diff(other.get()));
            prop_assert!(off <= tolerance, "{one} whole, {other} cut");
        }
    }

    #[test]
    fn steal_that_ended_is_forgotten(
        half_life in half_life(),
        steps in vec((interval(), nasty()), 1..20),
        tick in 1000..10 * MS,
        idle in any::<bool>(),
    ) {
        let mut estimate = StealEstimate::new(half_life);
        for (interval, stolen) in steps {
            estimate.update(Nanos::new(stolen), Nanos::new(interval));
        }
        // In one gap or, where that is not for ever, in ticks.
        let long = half_life.get().get() * 64;
        if idle || long / tick > 20_000 {
            estimate.update(Nanos::ZERO, Nanos::new(long));
        } else {
            for _ in 0..=long / tick {
                estimate.update(Nanos::ZERO, Nanos::new(tick));
            }
        }
        prop_assert_eq!((estimate.stolen().get(), estimate.permille()), (0, 0));
        prop_assert!(!estimate.exceeds(0));
    }
}
