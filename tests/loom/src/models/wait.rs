//! s390: the mark that a CPU waits by itself, beside the answer of the machine
//! that it does not run.

use std::sync::Arc;

use loom::thread;
use pv_arch::mock::{Machine, MockArch};
use pv_arch::sync::atomic::AtomicBool;
use pv_arch::sync::atomic::Ordering::{Acquire, Release};
use pv_arch::{CpuId, PlatformCall, Reply};
use pv_steal::StealSource;
use pv_steal::s390::{self, StolenTime};

use crate::model::{Ghost, Model};

pub const MODELS: &[Model] = &[Model {
    name: "s390-wait",
    about: "who knows that a CPU waits does not take it for preempted, who knows of a preemption does",
    bound: 3,
    deep_bound: 5,
    min_executions: 160,
    paths: &[
        "knew-it-waits",
        "knew-not-yet",
        "knew-it-ended",
        "knew-no-end",
    ],
    bugs: &["s390.wait-without-mark", "s390.wait-leaves-mark"],
    mutants: &[],
    why_survives: &[],
    body: wait_then_preempted,
}];

const WAITER: CpuId = CpuId::new(0);
const READER: CpuId = CpuId::new(1);

/// A machine with a timer, on which no CPU but the asking one runs. Each thread
/// has its own: the mock holds a lock of std's while the host answers.
fn machine() -> Arc<Machine> {
    let machine = Machine::new(2);
    machine.on_call(move |_, call| match call {
        PlatformCall::CpuTimer => Reply::value(0),
        PlatformCall::Sigp { .. } => s390::sense_reply(false),
        other => panic!("unexpected {other:?}"),
    });
    machine
}

fn wait_then_preempted(ghost: &Ghost) {
    let time = Arc::new(StolenTime::<MockArch>::new(WAITER));
    let machine = machine();
    let cpu = machine.bind(WAITER);
    s390::register(&time).expect("there is a timer");

    let (reader, waits) = ask_beside(&time, ghost, ["knew-it-waits", "knew-not-yet"], false);
    time.begin_wait();
    waits.store(true, Release);
    reader.join().expect("the reader ended");

    let (reader, preempted) = ask_beside(&time, ghost, ["knew-it-ended", "knew-no-end"], true);
    time.end_wait();
    preempted.store(true, Release);
    reader.join().expect("the reader ended");
    drop(cpu);
}

/// A thread that asks while the main thread changes something. If it `knew` of
/// the change, the answer must be `then`.
fn ask_beside(
    time: &Arc<StolenTime<MockArch>>,
    ghost: &Ghost,
    [knew_path, other_path]: [&'static str; 2],
    then: bool,
) -> (thread::JoinHandle<()>, Arc<AtomicBool>) {
    let changed = Arc::new(AtomicBool::new(false));
    let reader = {
        let (time, changed, ghost) = (Arc::clone(time), Arc::clone(&changed), ghost.clone());
        thread::spawn(move || {
            let machine = machine();
            let cpu = machine.bind(READER);
            let knew = changed.load(Acquire);
            let is_preempted = time.is_preempted();
            assert!(!knew || is_preempted == then, "against what is known");
            ghost.reached(if knew { knew_path } else { other_path });
            drop(cpu);
        })
    };
    (reader, changed)
}
