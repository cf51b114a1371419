//! The preempted hint against its readers.
//!
//! A hint may be stale, but it is one location: whoever has seen a newer value,
//! or knows otherwise that one was stored, does not see an older one again.

use std::sync::Arc;

use loom::thread;
use pv_arch::Nanos;
use pv_arch::sync::atomic::AtomicBool;
use pv_arch::sync::atomic::Ordering::{Acquire, Release};
use pv_steal::{HostRecord, Leave, Preemption, StealSource, kvm_x86};

use crate::model::{Ghost, Model};

pub const MODELS: &[Model] = &[Model {
    name: "kvm-x86-preempted",
    about: "a hint is late at most: never back to an older value, never against what is known",
    bound: 3,
    deep_bound: 5,
    min_executions: 500,
    paths: &["saw-preempted", "saw-it-end", "knew-it-ended"],
    bugs: &["kvm_x86.enter-keeps-preempted"],
    mutants: &[],
    why_survives: &[],
    body: set_and_cleared::<kvm_x86::StealTime>,
}];

/// A record with a preempted hint.
pub trait Hint: StealSource + HostRecord + Send + Sync + 'static {
    fn fresh() -> Self;
}

impl Hint for kvm_x86::StealTime {
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
        match record.preemption() {
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
