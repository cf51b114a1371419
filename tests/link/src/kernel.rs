//! Two guest kernels: one that answers everything itself, one that inherits all
//! that can be inherited.

use core::hint::black_box;

use pv_arch::{Arch, CpuCount, CpuId, GuestAddr, Nanos, PlatformCall, Reply, Yielded};

/// A kernel whose every answer the compiler has to take as it comes.
pub struct Kernel;

impl Arch for Kernel {
    type IrqState = u64;

    fn this_cpu() -> CpuId {
        black_box(CpuId::BOOT)
    }

    fn cpu_count() -> CpuCount {
        black_box(CpuCount::ONE)
    }

    fn now() -> Nanos {
        black_box(Nanos::ZERO)
    }

    fn irq_save() -> u64 {
        black_box(0)
    }

    fn irq_restore(state: u64) {
        black_box(state);
    }

    fn halt_while(mut still: impl FnMut() -> bool) {
        black_box(still());
    }

    fn kick(cpu: CpuId) {
        black_box(cpu);
    }

    fn yield_to(cpu: CpuId) -> Yielded {
        black_box(cpu);
        black_box(Yielded::NothingToGain)
    }

    fn is_preempted(cpu: CpuId) -> bool {
        black_box(black_box(cpu) == CpuId::BOOT)
    }

    fn guest_addr(object: *const u8, len: usize) -> Option<GuestAddr> {
        black_box((object, len));
        black_box(Some(GuestAddr::new(0x1000)))
    }

    fn platform_call(call: PlatformCall) -> Reply {
        black_box(call);
        black_box(Reply::value(0))
    }

    fn serialize(cpu: CpuId) -> bool {
        black_box(cpu);
        black_box(true)
    }
}

/// A kernel on bare metal.
pub struct Defaults;

impl Arch for Defaults {
    type IrqState = ();

    fn this_cpu() -> CpuId {
        black_box(CpuId::BOOT)
    }

    fn cpu_count() -> CpuCount {
        black_box(CpuCount::ONE)
    }

    fn now() -> Nanos {
        black_box(Nanos::ZERO)
    }

    fn irq_save() {}

    fn irq_restore((): ()) {}
}
