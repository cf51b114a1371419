//! Reading a steal record that nobody writes at the moment.

use std::hint::black_box;

use pv_arch::sync::atomic::{AtomicU32, Ordering};
use pv_steal::StealSource;
use pv_steal::kvm_x86::StealTime;

use crate::{Group, Op, repeat};

pub const GROUP: Group = Group {
    name: "record",
    baseline: "plain-load",
    ops: &[
        Op {
            name: "empty-loop",
            run: |n| repeat(n, || ()),
        },
        Op {
            name: "volatile-read",
            run: volatile_read,
        },
        Op {
            name: "plain-load",
            run: plain_load,
        },
        Op {
            name: "is-preempted",
            run: |n| repeat(n, || record().is_preempted()),
        },
        Op {
            name: "steal",
            run: |n| repeat(n, || record().steal()),
        },
    ],
};

static RECORD: StealTime = StealTime::new();

/// The record, at an address that the compiler does not know.
#[inline(always)]
fn record() -> &'static StealTime {
    black_box(&RECORD)
}

/// A relaxed load of the record's first word.
fn plain_load(times: u64) {
    repeat(times, || {
        let word = std::ptr::from_ref(record()).cast::<AtomicU32>();
        // SAFETY: a record is `repr(C)` and begins with bytes that are only
        // reached through atomics of the shim; it is aligned to 64.
        unsafe { &*word }.load(Ordering::Relaxed)
    });
}

/// The same without an atomic: the floor.
fn volatile_read(times: u64) {
    repeat(times, || {
        let word = std::ptr::from_ref(record()).cast::<u32>();
        // SAFETY: aligned and inside the record; no thread writes it here.
        unsafe { word.read_volatile() }
    });
}
