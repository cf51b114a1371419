//! The recent share of steal.

use core::hint::black_box;

use pv_arch::Nanos;
use pv_steal::{HalfLife, StealEstimate};

#[inline(never)]
fn updating(estimate: &mut StealEstimate) {
    estimate.update(black_box(Nanos::MAX), black_box(Nanos::MAX));
    estimate.skip(black_box(Nanos::MAX));
}

#[inline(never)]
fn asking(estimate: &StealEstimate) {
    black_box(estimate.exceeds(black_box(250)));
    black_box(estimate.permille());
    black_box(estimate.stolen());
    black_box(estimate.observed());
}

pub fn run() {
    let Some(half_life) = HalfLife::from_log2(black_box(30)) else {
        return;
    };
    let half_life = black_box(half_life);
    black_box(half_life.get());
    let mut estimate = black_box(StealEstimate::new(half_life));
    updating(&mut estimate);
    asking(&estimate);
}
