//! Counters of what was not believed.

use core::hint::black_box;

use pv_steal::FaultCounts;

#[inline(never)]
pub fn run() {
    black_box(black_box(FaultCounts::NONE).sum());
}
