//! The two sides of a record, for any layout.

use core::hint::black_box;

use pv_arch::{GuestAddr, Nanos};
use pv_steal::{GuestRecord, HostRecord, Leave, StealSource};

/// What a guest reads.
#[inline(never)]
pub fn guest_side<R: StealSource>(record: &R) {
    black_box(record.steal().is_ok());
    black_box(record.preemption());
    black_box(record.is_preempted());
}

/// What a host writes.
#[inline(never)]
pub fn host_side<R: HostRecord>(record: &R) {
    record.enter(black_box(Nanos::ZERO), black_box(Nanos::MAX));
    for why in black_box([
        Leave::Preempted,
        Leave::Halted,
        Leave::HaltedMarkedPreempted,
        Leave::Offline,
    ]) {
        record.leave(black_box(Nanos::ZERO), why);
    }
    record.wake(black_box(Nanos::ZERO));
}

/// Where a record may lie.
#[inline(never)]
pub fn placement<R: GuestRecord>() {
    let layout = black_box(R::LAYOUT);
    black_box(layout.check(GuestAddr::new(black_box(0x1040))).is_ok());
}

pub fn run() {
    placement::<pv_steal::kvm_x86::StealTime>();
}
