//! Nanoseconds.

use core::hint::black_box;

use pv_arch::Nanos;

#[inline(never)]
pub fn run() {
    let time = Nanos::new(black_box(1));
    black_box(time.get());
    black_box(Nanos::from_micros(black_box(1)));
    black_box(Nanos::from_millis(black_box(1)));
    black_box(Nanos::from_secs(black_box(1)));
    let other = black_box(Nanos::MAX);
    black_box(time.plus(other));
    black_box(time.since(other));
    black_box(time.at_most(other));
}
