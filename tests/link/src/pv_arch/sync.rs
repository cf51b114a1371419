//! The shim.

use core::hint::black_box;

use pv_arch::sync::atomic::{AtomicU32, Ordering, compiler_fence, fence};
use pv_arch::sync::cell::UnsafeCell;
use pv_arch::sync::hint;

pv_arch::orderings! {
    fn publish = Release;
}

struct Word(AtomicU32);

impl Word {
    pv_arch::const_new! {
        fn new(value: u32) -> Self { Self(AtomicU32::new(value)) }
    }
}

#[inline(never)]
pub fn run() {
    let word = Word::new(black_box(1));
    word.0.store(black_box(2), publish());
    fence(Ordering::SeqCst);
    compiler_fence(Ordering::SeqCst);
    hint::spin_loop();
    hint::relax_bounded();
    hint::relax_unbounded();
    black_box(pv_arch::seeded_bug!("link.none"));

    let cell = UnsafeCell::new(black_box(3_u32));
    // SAFETY: the cell is this function's own; nobody writes meanwhile.
    black_box(cell.with(|value| unsafe { *value }));
    // SAFETY: the cell is this function's own; nobody else reads or writes.
    cell.with_mut(|value| unsafe { *value = black_box(4) });
    black_box(cell.into_inner());
}
