//! RISC-V SBI steal-time accounting.

use core::hint::black_box;

use pv_arch::{GuestAddr, Nanos};
use pv_steal::riscv::{
    SbiError, StealTime, Xlen, decode, is_offered, register, registration, registration_for,
    unregister,
};
use pv_steal::{HostRecord, Leave, StealSource};

use super::record::{guest_side, host_side, placement};
use crate::kernel::{Defaults, Kernel};

static RECORD: StealTime = StealTime::new();

#[inline(never)]
fn registering() {
    black_box(is_offered::<Kernel>());
    black_box(register::<Kernel>(&RECORD).is_ok());
    black_box(unregister::<Kernel>(&RECORD).is_ok());
    black_box(register::<Defaults>(&RECORD).is_ok());
    black_box(unregister::<Defaults>(&RECORD).is_ok());
    let addr = GuestAddr::new(black_box(0x1040));
    black_box(registration(addr).is_ok());
    for xlen in black_box([Xlen::Rv32, Xlen::Rv64]) {
        black_box(registration_for(addr, xlen).is_ok());
        black_box(decode(black_box([0x1040, 0, 0]), xlen).is_ok());
    }
    black_box(black_box(SbiError::InvalidParam).code());
}

#[inline(never)]
fn reading(record: &StealTime) {
    black_box(record.steal().is_ok());
    black_box(record.preemption());
}

#[inline(never)]
fn writing(record: &StealTime) {
    record.enter(black_box(Nanos::ZERO), black_box(Nanos::MAX));
    record.leave(black_box(Nanos::ZERO), black_box(Leave::Preempted));
}

pub fn run() {
    let record = black_box(StealTime::new());
    registering();
    reading(&record);
    writing(&record);
    guest_side(&record);
    host_side(&record);
    placement::<StealTime>();
}
