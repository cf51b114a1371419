//! The clock of steal, on a record of a known type and on any.

use core::hint::black_box;

use pv_arch::{Arch, Nanos};
use pv_steal::kvm_x86::StealTime;
use pv_steal::{ReadError, StealClock, StealSource};

use crate::kernel::{Defaults, Kernel};

const GAVE_UP: ReadError = ReadError::StuckInUpdate {
    version: 1,
    tries: 2,
};

#[inline(never)]
fn reading<A: Arch>(clock: &mut StealClock, record: &StealTime) {
    let _ = black_box(clock.read::<A>(record));
    let any: &dyn StealSource = black_box(record);
    let _ = black_box(clock.read::<A>(any));
}

#[inline(never)]
fn feeding(clock: &mut StealClock) {
    for raw in black_box([Ok(Nanos::MAX), Err(GAVE_UP)]) {
        let _ = black_box(clock.update(raw, black_box(Nanos::ZERO)));
    }
    black_box(clock.total());
    black_box(clock.faults());
    clock.rebase();
}

pub fn run() {
    let mut clock = black_box(StealClock::new());
    let record = black_box(StealTime::new());
    reading::<Kernel>(&mut clock, &record);
    reading::<Defaults>(&mut clock, &record);
    feeding(&mut clock);
}
