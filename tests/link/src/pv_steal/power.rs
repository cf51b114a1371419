//! POWER shared processors.

use core::hint::black_box;

use pv_arch::{CpuId, GuestAddr, Nanos};
use pv_steal::power::{
    VirtualProcessorArea, decode, nanos, register, registration, ticks, unregister,
};
use pv_steal::{HostRecord, Leave, StealSource};

use super::record::{guest_side, host_side, placement};
use crate::kernel::{Defaults, Kernel};

static AREA: VirtualProcessorArea = VirtualProcessorArea::new();

#[inline(never)]
fn registering() {
    black_box(register::<Kernel>(&AREA).is_ok());
    black_box(unregister::<Kernel>(&AREA).is_ok());
    black_box(register::<Defaults>(&AREA).is_ok());
    black_box(unregister::<Defaults>(&AREA).is_ok());
    let (cpu, addr) = (CpuId::new(black_box(1)), GuestAddr::new(black_box(0x1400)));
    black_box(registration(cpu, addr).is_ok());
    black_box(decode(black_box([1 << 45, 1, 0x1400]), black_box(640)).is_ok());
}

#[inline(never)]
fn converting() {
    black_box(nanos(black_box(u64::MAX)));
    black_box(ticks(black_box(Nanos::MAX)));
}

#[inline(never)]
fn reading(area: &VirtualProcessorArea) {
    black_box(area.steal().is_ok());
    black_box(area.preemption());
    black_box(area.dispatch_count());
    area.set_idle(black_box(true));
}

#[inline(never)]
fn writing(area: &VirtualProcessorArea) {
    area.enter(black_box(Nanos::ZERO), black_box(Nanos::MAX));
    area.leave(black_box(Nanos::ZERO), black_box(Leave::Preempted));
}

pub fn run() {
    let area = black_box(VirtualProcessorArea::new());
    registering();
    converting();
    reading(&area);
    writing(&area);
    guest_side(&area);
    host_side(&area);
    placement::<VirtualProcessorArea>();
}
