//! Arm PV time.

use core::hint::black_box;

use pv_arch::{GuestAddr, Nanos};
use pv_steal::arm::{StolenTime, host_reply, register, registration};
use pv_steal::{HostRecord, Leave, StealSource};

use super::record::{guest_side, host_side, placement};
use crate::kernel::{Defaults, Kernel};

#[inline(never)]
fn registering() {
    black_box(register::<Kernel>().is_ok());
    black_box(register::<Defaults>().is_ok());
    black_box(registration());
    let addr = GuestAddr::new(black_box(0x1040));
    for record in black_box([Some(addr), None]) {
        black_box(host_reply(black_box(0xc500_0021), black_box(0), record));
    }
}

#[inline(never)]
fn reading(record: &StolenTime) {
    black_box(record.check_revision().is_ok());
    black_box(record.steal().is_ok());
    black_box(record.preemption());
}

#[inline(never)]
fn writing(record: &StolenTime) {
    record.enter(black_box(Nanos::ZERO), black_box(Nanos::MAX));
    record.leave(black_box(Nanos::ZERO), black_box(Leave::Preempted));
}

pub fn run() {
    let record = black_box(StolenTime::new());
    registering();
    reading(&record);
    writing(&record);
    guest_side(&record);
    host_side(&record);
    placement::<StolenTime>();
}
