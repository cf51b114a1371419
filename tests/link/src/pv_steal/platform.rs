//! Platforms by name.

use core::hint::black_box;

use pv_steal::Platform;

#[inline(never)]
pub fn run() {
    for platform in black_box(Platform::ALL) {
        black_box(platform.name());
    }
    black_box(black_box("riscv").parse::<Platform>().is_ok());
}
