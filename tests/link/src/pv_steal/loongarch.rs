//! KVM on `LoongArch`.

use core::hint::black_box;

use pv_arch::{GuestAddr, Nanos};
use pv_steal::loongarch::{
    Features, HypercallError, StealTime, decode, detect, register, registration, unregister,
};
use pv_steal::{HostRecord, Leave, StealSource};

use super::record::{guest_side, host_side, placement};
use crate::kernel::{Defaults, Kernel};

static RECORD: StealTime = StealTime::new();

#[inline(never)]
fn registering() {
    black_box(detect::<Kernel>());
    black_box(register::<Kernel>(&RECORD).is_ok());
    black_box(unregister::<Kernel>(&RECORD).is_ok());
    black_box(register::<Defaults>(&RECORD).is_ok());
    black_box(unregister::<Defaults>(&RECORD).is_ok());
    black_box(registration(GuestAddr::new(black_box(0x1040))).is_ok());
    black_box(decode(black_box([4, 0x1041])).is_ok());
    black_box(black_box(HypercallError::InvalidCode).code());
}

#[inline(never)]
fn reading(record: &StealTime) {
    black_box(record.steal().is_ok());
    black_box(record.preemption());
    black_box(record.preemption_under(black_box(Features::PREEMPT)));
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
