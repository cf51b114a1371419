//! Guest-physical addresses.

use core::hint::black_box;

use pv_arch::GuestAddr;

#[inline(never)]
pub fn run() {
    let addr = GuestAddr::new(black_box(0x1000));
    black_box(addr.get());
    black_box(addr.is_aligned(black_box(64)));
    black_box(addr.stays_in_page(black_box(64), black_box(4096)));
}
