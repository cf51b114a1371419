//! Counters without a version: one word each, so that every read is of some
//! update and none goes back.

use std::sync::Arc;

use loom::thread;
use pv_arch::Nanos;
use pv_arch::sync::atomic::AtomicBool;
use pv_arch::sync::atomic::Ordering::{Acquire, Release};
use pv_steal::{HostRecord, StealSource, arm, power};

use crate::model::{Ghost, Model};

pub const MODELS: &[Model] = &[
    Model {
        name: "arm-counter",
        about: "a counter of one word is read whole, and never goes back",
        bound: 3,
        deep_bound: 5,
        min_executions: 130,
        paths: PATHS,
        bugs: &["arm.write-in-halves"],
        mutants: &[],
        why_survives: &[],
        body: two_updates::<arm::StolenTime>,
    },
    Model {
        name: "power-counter",
        about: "the sum of two counters of one word each is read whole, and never goes back",
        bound: 3,
        deep_bound: 5,
        min_executions: 130,
        paths: PATHS,
        bugs: &["power.write-in-halves"],
        mutants: &[],
        why_survives: &[],
        body: two_updates::<power::VirtualProcessorArea>,
    },
];

const PATHS: &[&str] = &["none-yet", "first", "second", "knew-the-end"];

/// A record whose steal time is a counter.
trait Counter: StealSource + HostRecord + Send + Sync + 'static {
    fn fresh() -> Self;
}

impl Counter for arm::StolenTime {
    fn fresh() -> Self {
        Self::new()
    }
}

impl Counter for power::VirtualProcessorArea {
    fn fresh() -> Self {
        Self::new()
    }
}

/// Steal after each update. It is a whole number of POWER's ticks (64 of them
/// are 125 ns), and both halves change, in nanoseconds and in ticks.
const STEAL: [u64; 3] = [0, 0x1_f400_007d, 0x3_e800_00fa];

fn two_updates<R: Counter>(ghost: &Ghost) {
    let record = Arc::new(R::fresh());
    let over = Arc::new(AtomicBool::new(false));
    let reader = {
        let (record, over, ghost) = (Arc::clone(&record), Arc::clone(&over), ghost.clone());
        thread::spawn(move || {
            let mut newest = 0;
            for _ in 0..2 {
                let knew = over.load(Acquire);
                let steal = record.steal().expect("a counter can always be read").get();
                assert!(steal >= newest, "{newest:#x} was read before {steal:#x}");
                assert!(!knew || steal == STEAL[2], "{steal:#x} after the end");
                newest = steal;
                ghost.reached(match STEAL.iter().position(|known| *known == steal) {
                    Some(0) => "none-yet",
                    Some(1) => "first",
                    Some(_) => "second",
                    None => panic!("{steal:#x} was never published"),
                });
                if knew {
                    ghost.reached("knew-the-end");
                }
            }
        })
    };
    for steal in &STEAL[1..] {
        record.enter(Nanos::ZERO, Nanos::new(*steal));
    }
    over.store(true, Release);
    reader.join().expect("the reader ended");
}
