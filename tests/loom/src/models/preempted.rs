//! The preempted hint against its readers.
//!
//! A hint may be stale, but it is one location: whoever has seen a newer value,
//! or knows otherwise that one was stored, does not see an older one again.

use std::sync::Arc;

use loom::thread;
use pv_arch::Nanos;
use pv_arch::sync::atomic::AtomicBool;
use pv_arch::sync::atomic::Ordering::{Acquire, Release};
use pv_steal::xen::{RunState32, RunState64};
use pv_steal::{HostRecord, Leave, Preemption, StealSource, kvm_x86, loongarch, power, riscv};

use crate::model::{Ghost, Model};

pub const MODELS: &[Model] = &[
    Model {
        name: "kvm-x86-preempted",
        about: ABOUT,
        bound: 3,
        deep_bound: 5,
        min_executions: 500,
        paths: PATHS,
        bugs: &["kvm_x86.enter-keeps-preempted"],
        mutants: &[],
        why_survives: &[],
        body: set_and_cleared::<kvm_x86::StealTime>,
    },
    Model {
        name: "riscv-preempted",
        about: ABOUT,
        bound: 3,
        deep_bound: 5,
        min_executions: 500,
        paths: PATHS,
        bugs: &["preempted.enter-keeps-mark"],
        mutants: &[],
        why_survives: &[],
        body: set_and_cleared::<riscv::StealTime>,
    },
    Model {
        name: "loongarch-preempted",
        about: ABOUT,
        bound: 3,
        deep_bound: 5,
        min_executions: 500,
        paths: PATHS,
        bugs: &["preempted.enter-keeps-mark"],
        mutants: &[],
        why_survives: &[],
        body: set_and_cleared::<loongarch::StealTime>,
    },
    Model {
        name: "power-preempted",
        about: ABOUT,
        bound: 3,
        deep_bound: 5,
        min_executions: 420,
        paths: PATHS,
        bugs: &["power.enter-keeps-odd"],
        mutants: &[],
        why_survives: &[],
        body: set_and_cleared::<power::VirtualProcessorArea>,
    },
    Model {
        name: "xen-64-preempted",
        about: ABOUT,
        bound: 3,
        deep_bound: 5,
        min_executions: 270,
        paths: PATHS,
        bugs: &["xen.keep-state"],
        mutants: &[],
        why_survives: &[],
        body: set_and_cleared::<RunState64>,
    },
    Model {
        name: "xen-32-preempted",
        about: ABOUT,
        bound: 3,
        deep_bound: 5,
        min_executions: 270,
        paths: PATHS,
        bugs: &["xen.keep-state"],
        mutants: &[],
        why_survives: &[],
        body: set_and_cleared::<RunState32>,
    },
];

const ABOUT: &str =
    "a hint is late at most: never back to an older value, never against what is known";
const PATHS: &[&str] = &["saw-preempted", "saw-it-end", "knew-it-ended"];

/// A record with a preempted hint.
pub trait Hint: StealSource + HostRecord + Send + Sync + 'static {
    fn fresh() -> Self;

    /// The hint, to somebody who knows what the host offers.
    fn hint(&self) -> Preemption {
        self.preemption()
    }
}

impl Hint for kvm_x86::StealTime {
    fn fresh() -> Self {
        Self::new()
    }
}

impl Hint for riscv::StealTime {
    fn fresh() -> Self {
        Self::new()
    }
}

impl Hint for loongarch::StealTime {
    fn fresh() -> Self {
        Self::new()
    }
    fn hint(&self) -> Preemption {
        self.preemption_under(loongarch::Features::PREEMPT)
    }
}

impl Hint for power::VirtualProcessorArea {
    fn fresh() -> Self {
        Self::new()
    }
}

impl Hint for RunState64 {
    fn fresh() -> Self {
        Self::new()
    }
}

impl Hint for RunState32 {
    fn fresh() -> Self {
        Self::new()
    }
}

fn set_and_cleared<R: Hint>(ghost: &Ghost) {
    let record = Arc::new(R::fresh());
    let runs_again = Arc::new(AtomicBool::new(false));
    let host = {
        let (record, runs_again) = (Arc::clone(&record), Arc::clone(&runs_again));
        thread::spawn(move || {
            record.leave(Nanos::new(1), Leave::Preempted);
            record.enter(Nanos::new(2), Nanos::new(1));
            runs_again.store(true, Release);
        })
    };
    let (mut seen_preempted, mut seen_it_end) = (false, false);
    for _ in 0..3 {
        let knew = runs_again.load(Acquire);
        match record.hint() {
            Preemption::Preempted => {
                assert!(!seen_it_end, "preempted again, but it was only once");
                assert!(!knew, "preempted, but it is known to run again");
                seen_preempted = true;
                ghost.reached("saw-preempted");
            }
            Preemption::Running if seen_preempted => {
                seen_it_end = true;
                ghost.reached("saw-it-end");
            }
            Preemption::Running => {}
            Preemption::Unknown => panic!("this record can tell"),
        }
        if knew {
            ghost.reached("knew-it-ended");
            seen_it_end = true;
        }
    }
    host.join().expect("the host ended");
    record.leave(Nanos::new(3), Leave::Preempted);
    assert!(record.is_preempted(), "the last word is preempted");
}
