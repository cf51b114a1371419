//! Answers of the platform.

use core::hint::black_box;

use pv_arch::Reply;

#[inline(never)]
pub fn run() {
    black_box(Reply::value(black_box(7)));
    black_box(Reply::registers(black_box([1, 2, 3, 4])));
    black_box(Reply::status(black_box(-1)));
}
