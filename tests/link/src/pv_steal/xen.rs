//! Xen run states, in both layouts.

use core::hint::black_box;

use pv_arch::{CpuId, GuestAddr, Nanos};
use pv_steal::xen::{RunState32, RunState64, State, decode, register, registration, unregister};
use pv_steal::{HostRecord, Leave, StealSource};

use super::record::{guest_side, host_side, placement};
use crate::kernel::{Defaults, Kernel};

static RECORD64: RunState64 = RunState64::new();
static RECORD32: RunState32 = RunState32::new();

/// The same calls for both layouts.
macro_rules! layout {
    ($name:ident, $record:ident: $layout:ty) => {
        #[inline(never)]
        fn $name() {
            black_box(register::<Kernel, _>(&$record).is_ok());
            black_box(unregister::<Kernel, _>(&$record).is_ok());
            black_box(register::<Defaults, _>(&$record).is_ok());
            black_box(unregister::<Defaults, _>(&$record).is_ok());
            let (cpu, addr) = (CpuId::new(black_box(1)), GuestAddr::new(black_box(0x1040)));
            black_box(registration::<$layout>(cpu, addr).is_ok());
            black_box(decode::<$layout>(black_box(14), addr).is_ok());

            let record = black_box(<$layout>::new());
            black_box(record.state());
            black_box(record.times().is_ok());
            black_box(record.steal().is_ok());
            black_box(record.preemption());
            record.transition(black_box(State::Offline), black_box(Nanos::MAX));
            record.leave(black_box(Nanos::ZERO), black_box(Leave::Halted));
            record.wake(black_box(Nanos::ZERO));
            record.enter(black_box(Nanos::MAX), black_box(Nanos::MAX));
            guest_side(&record);
            host_side(&record);
            placement::<$layout>();
        }
    };
}

layout!(long, RECORD64: RunState64);
layout!(short, RECORD32: RunState32);

pub fn run() {
    long();
    short();
}
