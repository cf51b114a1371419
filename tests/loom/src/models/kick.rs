//! The mock machine's halt and kick keep the contract of `Arch`, on which every
//! later model of a lock stands.

use std::sync::Arc;

use loom::thread;
use pv_arch::mock::{Event, Machine, MockArch, What};
use pv_arch::sync::atomic::AtomicU32;
use pv_arch::sync::atomic::Ordering::Relaxed;
use pv_arch::sync::cell::UnsafeCell;
use pv_arch::sync::hint;
use pv_arch::{Arch, CpuId};

use crate::model::{Ghost, Model, mutant};

pub const MODELS: &[Model] = &[
    Model {
        name: "mock-kick",
        about: "a kick ends a halt whichever comes first, and brings what was written before it",
        bound: 3,
        deep_bound: 5,
        min_executions: 20,
        paths: &["kicked-before-halt", "kicked-in-halt"],
        bugs: &["mock.halt-forgets-kick"],
        mutants: &[
            mutant("pv_arch::mock::cpu_side::send_kick", "Relaxed"),
            mutant("pv_arch::mock::cpu_side::consume_kick", "Relaxed"),
        ],
        why_survives: &[],
        body: one_kick,
    },
    Model {
        name: "mock-kick-again",
        about: "a kick that follows the consumption of another is not lost",
        bound: 3,
        deep_bound: 5,
        min_executions: 90,
        paths: &["halted-twice"],
        bugs: &["mock.kick-by-store", "mock.halt-forgets-kick"],
        mutants: &[],
        why_survives: &[],
        body: kick_again,
    },
    Model {
        name: "mock-kick-two-kickers",
        about: "of two kickers that do not know of each other, neither undoes the other's kick",
        bound: 3,
        deep_bound: 4,
        min_executions: 2700,
        paths: &["no-halt", "one-halt", "more-halts"],
        bugs: &["mock.kick-by-store", "mock.halt-forgets-kick"],
        mutants: &[],
        why_survives: &[],
        body: two_kickers,
    },
    Model {
        name: "mock-kick-nested",
        about: "an interrupt handler that consumes the kick of the context below leaves it no lost wake",
        bound: 3,
        deep_bound: 5,
        min_executions: 180,
        paths: &["outer-halted", "outer-refused"],
        bugs: &["mock.halt-without-condition", "mock.halt-forgets-kick"],
        mutants: &[
            mutant("pv_arch::mock::cpu_side::send_kick", "Relaxed"),
            mutant("pv_arch::mock::cpu_side::consume_kick", "Relaxed"),
        ],
        why_survives: &[],
        body: nested,
    },
];

const WAITER: CpuId = CpuId::new(0);
const KICKER: CpuId = CpuId::new(1);

/// A word that is 0 until somebody grants what is waited for. Relaxed: whoever
/// waits for it gets its order from the kick.
#[derive(Clone)]
struct Grant(Arc<AtomicU32>);

impl Grant {
    fn new() -> Self {
        Self(Arc::new(AtomicU32::new(0)))
    }
    fn give(&self) {
        self.0.store(1, Relaxed);
    }
    fn is_missing(&self) -> bool {
        self.0.load(Relaxed) == 0
    }
    /// The loop of every waiter: look, halt, look again.
    fn wait(&self) {
        while self.is_missing() {
            MockArch::halt_while(|| self.is_missing());
        }
    }
}

/// Run `what` on a thread that is `cpu` of `machine`.
fn on_cpu(
    machine: &Arc<Machine>,
    cpu: CpuId,
    what: impl FnOnce() + Send + 'static,
) -> thread::JoinHandle<()> {
    let machine = Arc::clone(machine);
    thread::spawn(move || {
        let _bound = machine.bind(cpu);
        what();
    })
}

fn one_kick(ghost: &Ghost) {
    struct Data(UnsafeCell<u32>);
    // SAFETY: the kick hands it over, and loom reports it if it does not.
    unsafe impl Sync for Data {}
    // SAFETY: as above.
    unsafe impl Send for Data {}

    let machine = Machine::new(2);
    let data = Arc::new(Data(UnsafeCell::new(0)));
    // Looked at so that the kick may come before the halt: loom runs others only
    // where they share something.
    let grant = Grant::new();
    let kicker = {
        let (data, grant) = (Arc::clone(&data), grant.clone());
        on_cpu(&machine, KICKER, move || {
            // SAFETY: nobody reads it before the kick.
            data.0.with_mut(|data| unsafe { *data = 1 });
            grant.give();
            MockArch::kick(WAITER);
        })
    };
    let bound = machine.bind(WAITER);
    MockArch::halt_while(|| {
        let _ = grant.is_missing();
        true
    });
    // SAFETY: nobody writes it after the kick.
    assert_eq!(data.0.with(|data| unsafe { *data }), 1);
    drop(bound);
    kicker.join().expect("the kicker ended");

    let first = machine.log().first().map(|event| event.what);
    ghost.reached(if first == Some(What::Halt) {
        "kicked-in-halt"
    } else {
        "kicked-before-halt"
    });
}

fn kick_again(ghost: &Ghost) {
    let machine = Machine::new(2);
    let woke = Grant::new();
    let kicker = {
        let woke = woke.clone();
        on_cpu(&machine, KICKER, move || {
            MockArch::kick(WAITER);
            while woke.is_missing() {
                hint::relax_unbounded();
            }
            MockArch::kick(WAITER);
        })
    };
    let bound = machine.bind(WAITER);
    MockArch::halt_while(|| true);
    woke.give();
    MockArch::halt_while(|| true);
    drop(bound);
    kicker.join().expect("the kicker ended");
    ghost.reached("halted-twice");
}

fn two_kickers(ghost: &Ghost) {
    let machine = Machine::new(3);
    let grants = [Grant::new(), Grant::new()];
    let kickers = [(KICKER, &grants[0]), (CpuId::new(2), &grants[1])].map(|(cpu, grant)| {
        let grant = grant.clone();
        on_cpu(&machine, cpu, move || {
            grant.give();
            MockArch::kick(WAITER);
        })
    });
    let bound = machine.bind(WAITER);
    for grant in &grants {
        grant.wait();
    }
    drop(bound);
    for kicker in kickers {
        kicker.join().expect("the kicker ended");
    }
    let halts = machine
        .log()
        .iter()
        .filter(|event| is(event, What::Halt))
        .count();
    match halts {
        0 => ghost.reached("no-halt"),
        1 => ghost.reached("one-halt"),
        _ => ghost.reached("more-halts"),
    }
}

fn nested(ghost: &Ghost) {
    let machine = Machine::new(2);
    let (outer, inner) = (Grant::new(), Grant::new());
    let kicker = {
        let (outer, inner) = (outer.clone(), inner.clone());
        on_cpu(&machine, KICKER, move || {
            outer.give();
            MockArch::kick(WAITER);
            inner.give();
            MockArch::kick(WAITER);
        })
    };
    let bound = machine.bind(WAITER);
    if outer.is_missing() {
        // The interrupt comes here: after the look, before the halt.
        inner.wait();
        let before = machine.log().len();
        MockArch::halt_while(|| outer.is_missing());
        let log = machine.log();
        for event in log.iter().skip(before) {
            if is(event, What::Halt) {
                ghost.reached("outer-halted");
            } else if is(event, What::HaltRefused) {
                ghost.reached("outer-refused");
            }
        }
        outer.wait();
    }
    drop(bound);
    kicker.join().expect("the kicker ended");
}

/// Whether the waiter did that.
fn is(event: &Event, what: What) -> bool {
    event.cpu == WAITER && event.what == what
}
