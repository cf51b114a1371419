//! The door, through both kernels.

use core::hint::black_box;

use pv_arch::{Arch, CpuId, PlatformCall};

use crate::kernel::{Defaults, Kernel};

#[inline(never)]
fn every_method<A: Arch>() {
    let cpu = CpuId::new(black_box(1));
    black_box(A::this_cpu());
    black_box(A::cpu_count());
    black_box(A::now());
    A::relax_bounded();
    A::relax_unbounded();
    let state = A::irq_save();
    A::irq_restore(state);
    A::halt_while(|| black_box(true));
    A::kick(cpu);
    black_box(A::yield_to(cpu));
    black_box(A::is_preempted(cpu));
    black_box(A::guest_addr(black_box(core::ptr::null()), black_box(64)));
    black_box(A::platform_call(black_box(PlatformCall::CpuTimer)));
    black_box(A::serialize(cpu));
}

pub fn run() {
    every_method::<Kernel>();
    every_method::<Defaults>();
}
