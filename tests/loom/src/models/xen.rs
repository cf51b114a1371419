//! Xen's run states: one writer, readers that must never see two transitions
//! mixed. 64-bit guests read a time whole, 32-bit ones in halves.
//!
//! As with the version protocol, the host is the main thread: a reader that ran
//! first would be hidden by the writer's own load of the entry time.

use std::sync::Arc;

use loom::thread;
use pv_arch::Nanos;
use pv_steal::xen::{RunState32, RunState64, State};
use pv_steal::{ReadError, StealSource};

use crate::model::{Ghost, Model, mutant};

pub const MODELS: &[Model] = &[
    Model {
        name: "xen-64-two-transitions",
        about: "a reader beside two transitions sees the times before, between or after, or that one is going on",
        bound: 3,
        deep_bound: 5,
        min_executions: 1600,
        paths: &["first", "second", "third", "met-transition"],
        bugs: &["xen.ignore-update", "xen.no-second-look"],
        mutants: &[
            mutant("pv_steal::xen::first_look", "Relaxed"),
            mutant("pv_steal::xen::before_second_look", "Relaxed"),
            mutant("pv_steal::xen::after_mark", "Relaxed"),
        ],
        why_survives: &[],
        body: two_transitions,
    },
    Model {
        name: "xen-32-transition",
        about: "a reader beside a transition that changes halves sees neither two of them mixed",
        bound: 3,
        deep_bound: 5,
        min_executions: 2650,
        paths: &["before", "after", "met-transition"],
        bugs: &["xen.ignore-update", "xen.no-second-look", "xen.no-mark"],
        mutants: &[
            mutant("pv_steal::xen::first_look", "Relaxed"),
            mutant("pv_steal::xen::before_second_look", "Relaxed"),
            mutant("pv_steal::xen::second_look", "Relaxed"),
            mutant("pv_steal::xen::after_mark", "Relaxed"),
            mutant("pv_steal::xen::unmark", "Relaxed"),
        ],
        why_survives: &[],
        body: one_transition,
    },
    Model {
        name: "xen-64-clock-back",
        about: "a transition at a time that was before does not pass for the one that was then",
        bound: 3,
        deep_bound: 5,
        min_executions: 12_000,
        paths: &["first", "second", "third", "last", "met-transition"],
        bugs: &["xen.same-entry-time"],
        mutants: &[],
        why_survives: &[],
        body: clock_back,
    },
    Model {
        name: "xen-64-died-in-transition",
        about: "what a dead host left half written is never read, and the next transition makes it good",
        bound: 3,
        deep_bound: 5,
        min_executions: 35,
        paths: &["still-broken", "repaired"],
        bugs: &["xen.ignore-update", "xen.toggle-mark"],
        mutants: &[],
        why_survives: &[],
        body: died_in_transition::<RunState64>,
    },
    Model {
        name: "xen-32-died-in-transition",
        about: "the same where every time is read and written in halves",
        bound: 3,
        deep_bound: 5,
        min_executions: 470,
        paths: &["still-broken", "repaired"],
        bugs: &["xen.ignore-update", "xen.toggle-mark"],
        mutants: &[],
        why_survives: &[],
        body: died_in_transition::<RunState32>,
    },
];

/// A record of either layout.
trait RunStates: StealSource + Send + Sync + 'static {
    fn fresh() -> Self;
    fn transition(&self, state: State, now: Nanos);
    fn die_in_transition(&self, runnable: Nanos);
}

impl RunStates for RunState64 {
    fn fresh() -> Self {
        Self::new()
    }
    fn transition(&self, state: State, now: Nanos) {
        self.transition(state, now);
    }
    fn die_in_transition(&self, runnable: Nanos) {
        self.die_in_transition(runnable);
    }
}

impl RunStates for RunState32 {
    fn fresh() -> Self {
        Self::new()
    }
    fn transition(&self, state: State, now: Nanos) {
        self.transition(state, now);
    }
    fn die_in_transition(&self, runnable: Nanos) {
        self.die_in_transition(runnable);
    }
}

/// Entry times of transitions that all leave the state runnable. From the second
/// to the third only the low half of the entry time changes, while of the time
/// spent both halves do.
const ENTRY: [Nanos; 3] = [
    Nanos::new(0x8000_0000),
    Nanos::new(0x1_7fff_fff0),
    Nanos::new(0x1_8000_0010),
];
/// Steal after the second of them, and after the third.
const STEAL: [u64; 2] = [0xffff_fff0, 0x1_0000_0010];

/// A record whose vCPU became runnable long ago; steal is `STEAL[0]`.
fn long_runnable<R: RunStates>() -> R {
    let record = R::fresh();
    record.transition(State::Runnable, ENTRY[0]);
    record.transition(State::Runnable, ENTRY[1]);
    record
}

/// Read beside the main thread, and name what was read by `name`.
fn look<R: RunStates>(
    record: &Arc<R>,
    ghost: &Ghost,
    name: fn(u64) -> &'static str,
    on_transition: &'static str,
) -> thread::JoinHandle<()> {
    let (record, ghost) = (Arc::clone(record), ghost.clone());
    thread::spawn(move || {
        ghost.reached(match record.steal() {
            Ok(steal) => name(steal.get()),
            Err(ReadError::InTransition { .. }) => on_transition,
            Err(error) => panic!("a transition cannot cause: {error}"),
        });
    })
}

fn one_transition(ghost: &Ghost) {
    let record = Arc::new(long_runnable::<RunState32>());
    let name = |steal| match steal {
        _ if steal == STEAL[0] => "before",
        _ if steal == STEAL[1] => "after",
        mixed => panic!("{mixed:#x} is of two transitions"),
    };
    let reader = look(&record, ghost, name, "met-transition");
    record.transition(State::Running, ENTRY[2]);
    reader.join().expect("the reader ended");
    assert_eq!(record.steal(), Ok(Nanos::new(STEAL[1])), "it is over");
}

/// The vCPU becomes runnable.
fn just_runnable() -> RunState64 {
    let record = RunState64::new();
    record.transition(State::Runnable, Nanos::new(10));
    record
}

/// It is offline for a while, and runnable again. Steal is time runnable (5 of
/// it) plus time offline (7), read one after the other. It takes two transitions
/// to change two whole times.
fn go_offline(record: &RunState64) {
    record.transition(State::Offline, Nanos::new(15));
    record.transition(State::Runnable, Nanos::new(22));
}

fn steal_after(steal: u64) -> &'static str {
    match steal {
        0 => "first",
        5 => "second",
        12 => "third",
        // A stay is at least a nanosecond.
        13 => "last",
        mixed => panic!("{mixed} is of two transitions"),
    }
}

fn two_transitions(ghost: &Ghost) {
    let record = Arc::new(just_runnable());
    let reader = look(&record, ghost, steal_after, "met-transition");
    go_offline(&record);
    reader.join().expect("the reader ended");
    assert_eq!(record.steal(), Ok(Nanos::new(12)), "it is over");
}

/// The same, and then it runs from the time at which it first became runnable,
/// by a clock that went back.
fn clock_back(ghost: &Ghost) {
    let record = Arc::new(just_runnable());
    let reader = look(&record, ghost, steal_after, "met-transition");
    go_offline(&record);
    record.transition(State::Running, Nanos::new(10));
    reader.join().expect("the reader ended");
}

fn died_in_transition<R: RunStates>(ghost: &Ghost) {
    let record = long_runnable::<R>();
    record.die_in_transition(Nanos::new(0xdead));
    let record = Arc::new(record);
    // What is in the time is what the next transition adds to.
    let name = |steal| match steal {
        _ if steal == 0xdead + STEAL[1] - STEAL[0] => "repaired",
        other => panic!("{other:#x} was never published"),
    };
    let reader = look(&record, ghost, name, "still-broken");
    record.transition(State::Running, ENTRY[2]);
    reader.join().expect("the reader ended");
    let now = record.steal();
    assert!(now.is_ok(), "the repair is over, but {now:?}");
}
