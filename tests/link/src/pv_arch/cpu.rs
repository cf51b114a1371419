//! CPU numbers.

use core::hint::black_box;

use pv_arch::{CpuCount, CpuId};

#[inline(never)]
pub fn run() {
    let cpu = CpuId::new(black_box(2));
    black_box(cpu.get());
    black_box(cpu.index());
    if let Some(count) = CpuCount::new(black_box(4)) {
        black_box(count.get());
        black_box(count.check(black_box(9)).is_ok());
        for cpu in count.cpus() {
            black_box(cpu);
        }
    }
    #[cfg(pv_seed_panic)]
    seeded_panic();
    #[cfg(pv_seed_overflow)]
    seeded_overflow();
}

/// An index that can be out of range: the check must find it.
#[cfg(pv_seed_panic)]
#[inline(never)]
fn seeded_panic() {
    let table = black_box([1_u32; 4]);
    black_box(table[CpuId::new(black_box(2)).index()]);
}

/// A number after the last one: the check must find it.
#[cfg(pv_seed_overflow)]
#[inline(never)]
fn seeded_overflow() {
    black_box(CpuId::new(black_box(2)).get() + 1);
}
