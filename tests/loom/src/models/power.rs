//! POWER: the dispatch counter, which the host writes, beside the idle marker,
//! which the guest writes.

use std::sync::Arc;

use loom::thread;
use pv_arch::Nanos;
use pv_arch::sync::atomic::AtomicBool;
use pv_arch::sync::atomic::Ordering::{Acquire, Release};
use pv_steal::power::VirtualProcessorArea;
use pv_steal::{HostRecord, Leave, Preemption, StealSource};

use crate::model::{Ghost, Model, mutant};

pub const MODELS: &[Model] = &[
    Model {
        name: "power-cede",
        about: "a vCPU that ceded is not taken for preempted, not even while it comes and goes",
        bound: 3,
        deep_bound: 5,
        min_executions: 270,
        paths: &["saw-running"],
        bugs: &["power.ignore-idle", "power.no-second-look"],
        mutants: &[
            mutant("pv_steal::power::first_look", "Relaxed"),
            mutant("pv_steal::power::before_second_look", "Relaxed"),
            mutant("pv_steal::power::after_idle", "Relaxed"),
            mutant("pv_steal::power::clear_idle", "Relaxed"),
        ],
        why_survives: &[],
        body: cede,
    },
    Model {
        name: "power-cede-then-preempted",
        about: "an idle marker of an earlier halt does not hide a preemption from who knows of it",
        bound: 3,
        deep_bound: 5,
        min_executions: 185,
        paths: &["saw-running", "saw-preempted", "knew-preempted"],
        bugs: &["power.idle-stays"],
        mutants: &[],
        why_survives: &[],
        body: cede_then_preempted,
    },
];

/// The vCPU halts by itself and comes back: guest and host of one CPU.
fn halt_and_wake(area: &VirtualProcessorArea) {
    area.set_idle(true);
    area.leave(Nanos::ZERO, Leave::Halted);
    area.enter(Nanos::ZERO, Nanos::ZERO);
    area.set_idle(false);
}

fn cede(ghost: &Ghost) {
    let area = Arc::new(VirtualProcessorArea::new());
    let reader = {
        let (area, ghost) = (Arc::clone(&area), ghost.clone());
        thread::spawn(move || {
            assert_eq!(area.preemption(), Preemption::Running, "it only ceded");
            ghost.reached("saw-running");
        })
    };
    halt_and_wake(&area);
    halt_and_wake(&area);
    reader.join().expect("the reader ended");
}

fn cede_then_preempted(ghost: &Ghost) {
    let area = Arc::new(VirtualProcessorArea::new());
    let preempted = Arc::new(AtomicBool::new(false));
    let reader = {
        let (area, preempted, ghost) = (Arc::clone(&area), Arc::clone(&preempted), ghost.clone());
        thread::spawn(move || {
            let knew = preempted.load(Acquire);
            if area.is_preempted() {
                ghost.reached("saw-preempted");
            } else {
                assert!(!knew, "known to be preempted, and said to run");
                ghost.reached("saw-running");
            }
            if knew {
                ghost.reached("knew-preempted");
            }
        })
    };
    halt_and_wake(&area);
    area.leave(Nanos::ZERO, Leave::Preempted);
    preempted.store(true, Release);
    reader.join().expect("the reader ended");
}
