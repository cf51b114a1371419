//! The version protocol: one writer, readers that must never see two updates
//! mixed. The models are generic over the records that use it.
//!
//! The host is the main thread, which loom runs first. It keeps only the last
//! access to an atomic, so a reader that ran first would be hidden by the
//! writer's own load of the version, and stores before it never tried.

use std::sync::Arc;

use loom::thread;
use pv_arch::Nanos;
use pv_arch::sync::atomic::AtomicBool;
use pv_arch::sync::atomic::Ordering::{Acquire, Release};
use pv_steal::{HostRecord, ReadError, StealSource, kvm_x86, loongarch, riscv};

use crate::model::{Ghost, Model, mutant};

/// A record whose steal time is under a version.
trait Versioned: StealSource + Send + Sync + 'static {
    fn fresh() -> Self;
    /// As left by a host that died between odd and even, half of `steal` written.
    fn died_in_update(steal: Nanos) -> Self;
    fn publish(&self, steal: Nanos);
}

impl Versioned for kvm_x86::StealTime {
    fn fresh() -> Self {
        Self::new()
    }
    fn died_in_update(steal: Nanos) -> Self {
        Self::died_in_update(steal)
    }
    fn publish(&self, steal: Nanos) {
        self.publish_steal(steal);
    }
}

impl Versioned for riscv::StealTime {
    fn fresh() -> Self {
        Self::new()
    }
    fn died_in_update(steal: Nanos) -> Self {
        Self::died_in_update(steal)
    }
    fn publish(&self, steal: Nanos) {
        self.enter(Nanos::ZERO, steal);
    }
}

impl Versioned for loongarch::StealTime {
    fn fresh() -> Self {
        Self::new()
    }
    fn died_in_update(steal: Nanos) -> Self {
        Self::died_in_update(steal)
    }
    fn publish(&self, steal: Nanos) {
        self.enter(Nanos::ZERO, steal);
    }
}

/// Also for the other records: the protocol is the same code.
const ONE_UPDATE: Model = Model {
    name: "kvm-x86-one-update",
    about: "a reader beside an update sees the value before or after it, or that it is going on",
    bound: 3,
    deep_bound: 5,
    min_executions: 300,
    paths: &["before", "after", "met-update"],
    bugs: &["seq.ignore-odd", "seq.no-second-look", "seq.never-odd"],
    mutants: &[
        mutant("pv_steal::seq::first_look", "Relaxed"),
        mutant("pv_steal::seq::before_second_look", "Relaxed"),
        mutant("pv_steal::seq::after_odd", "Relaxed"),
        mutant("pv_steal::seq::make_even", "Relaxed"),
    ],
    why_survives: &[],
    body: one_update::<kvm_x86::StealTime>,
};

/// Also for the other records: the protocol is the same code.
const TWO_UPDATES: Model = Model {
    name: "kvm-x86-two-updates",
    about: "reads beside two updates never go back, and are right after the last",
    bound: 3,
    deep_bound: 4,
    min_executions: 100_000,
    paths: &[
        "none-yet",
        "first",
        "second",
        "met-update",
        "kept-changing",
        "knew-the-end",
    ],
    bugs: &["seq.ignore-odd", "seq.no-second-look", "seq.never-odd"],
    mutants: &[
        mutant("pv_steal::seq::first_look", "Relaxed"),
        mutant("pv_steal::seq::make_even", "Relaxed"),
    ],
    why_survives: &[],
    body: two_updates::<kvm_x86::StealTime>,
};

/// Also for the other records: the protocol is the same code.
const DIED_IN_UPDATE: Model = Model {
    name: "kvm-x86-died-in-update",
    about: "what a dead host left half written is never read, and the next update makes it good",
    bound: 3,
    deep_bound: 5,
    min_executions: 35,
    paths: &["still-broken", "repaired"],
    bugs: &["seq.ignore-odd", "seq.blind-increment"],
    mutants: &[],
    why_survives: &[],
    body: died_in_update::<kvm_x86::StealTime>,
};

pub const MODELS: &[Model] = &[
    ONE_UPDATE,
    TWO_UPDATES,
    Model {
        name: "kvm-x86-two-readers",
        about: "two readers beside an update do not disturb each other",
        bound: 3,
        deep_bound: 4,
        min_executions: 55_000,
        paths: &["before", "after", "met-update", "disagreed"],
        bugs: &["seq.no-second-look", "seq.never-odd"],
        mutants: &[],
        why_survives: &[],
        body: two_readers::<kvm_x86::StealTime>,
    },
    DIED_IN_UPDATE,
    Model {
        name: "riscv-one-update",
        body: one_update::<riscv::StealTime>,
        ..ONE_UPDATE
    },
    Model {
        name: "riscv-two-updates",
        body: two_updates::<riscv::StealTime>,
        ..TWO_UPDATES
    },
    Model {
        name: "riscv-died-in-update",
        body: died_in_update::<riscv::StealTime>,
        ..DIED_IN_UPDATE
    },
    Model {
        name: "loongarch-one-update",
        body: one_update::<loongarch::StealTime>,
        ..ONE_UPDATE
    },
    Model {
        name: "loongarch-two-updates",
        body: two_updates::<loongarch::StealTime>,
        ..TWO_UPDATES
    },
    Model {
        name: "loongarch-died-in-update",
        body: died_in_update::<loongarch::StealTime>,
        ..DIED_IN_UPDATE
    },
];

/// The value of the n-th update. Its halves are equal, so a mixture shows.
const fn value(update: u64) -> Nanos {
    Nanos::new(update << 32 | update)
}

/// Which update a value is of.
fn update_of(steal: Nanos) -> u64 {
    let (high, low) = (steal.get() >> 32, steal.get() & u64::from(u32::MAX));
    assert_eq!(high, low, "halves of two updates");
    low
}

fn one_update<R: Versioned>(ghost: &Ghost) {
    let record = Arc::new(R::fresh());
    let reader = look_beside_one_update(&record, ghost);
    record.publish(value(1));
    reader.join().expect("the reader ended");
    assert_eq!(record.steal(), Ok(value(1)), "the update is over");
}

fn two_readers<R: Versioned>(ghost: &Ghost) {
    let record = Arc::new(R::fresh());
    let readers = [(); 2].map(|()| look_beside_one_update(&record, ghost));
    record.publish(value(1));
    let [one, other] = readers.map(|reader| reader.join().expect("the reader ended"));
    if one != other {
        ghost.reached("disagreed");
    }
}

/// A thread that reads while the first update may be going on; it returns which
/// update it read.
fn look_beside_one_update<R: Versioned>(
    record: &Arc<R>,
    ghost: &Ghost,
) -> thread::JoinHandle<Option<u64>> {
    let (record, ghost) = (Arc::clone(record), ghost.clone());
    thread::spawn(move || match record.steal() {
        Ok(steal) => {
            let update = update_of(steal);
            assert!(update <= 1, "update {update} was never published");
            ghost.reached(if update == 0 { "before" } else { "after" });
            Some(update)
        }
        Err(ReadError::StuckInUpdate { version: 1, .. }) => {
            ghost.reached("met-update");
            None
        }
        Err(error) => panic!("one update cannot cause: {error}"),
    })
}

fn two_updates<R: Versioned>(ghost: &Ghost) {
    let record = Arc::new(R::fresh());
    let over = Arc::new(AtomicBool::new(false));
    let reader = {
        let (record, over, ghost) = (Arc::clone(&record), Arc::clone(&over), ghost.clone());
        thread::spawn(move || {
            let mut newest = 0;
            for _ in 0..2 {
                newest = look_beside_two_updates(&*record, &over, newest, &ghost);
            }
        })
    };
    record.publish(value(1));
    record.publish(value(2));
    over.store(true, Release);
    reader.join().expect("the reader ended");
}

/// Read once; `newest` is the newest update read so far.
fn look_beside_two_updates<R: Versioned>(
    record: &R,
    over: &AtomicBool,
    newest: u64,
    ghost: &Ghost,
) -> u64 {
    let knew = over.load(Acquire);
    if knew {
        ghost.reached("knew-the-end");
    }
    match record.steal() {
        Ok(steal) => {
            let update = update_of(steal);
            assert!(update >= newest, "{newest} was read before {update}");
            assert!(!knew || update == 2, "{update} after the end was known");
            ghost.reached(match update {
                0 => "none-yet",
                1 => "first",
                2 => "second",
                _ => panic!("update {update} was never published"),
            });
            update
        }
        Err(error) => {
            assert!(!knew, "no update goes on any more: {error}");
            ghost.reached(match error {
                ReadError::StuckInUpdate { version: 1 | 3, .. } => "met-update",
                ReadError::KeepsChanging { version: 2 | 4, .. } => "kept-changing",
                other => panic!("two updates cannot cause: {other}"),
            });
            newest
        }
    }
}

fn died_in_update<R: Versioned>(ghost: &Ghost) {
    let record = Arc::new(R::died_in_update(value(1)));
    let reader = {
        let (record, ghost) = (Arc::clone(&record), ghost.clone());
        thread::spawn(move || match record.steal() {
            Ok(steal) => {
                assert_eq!(steal, value(2), "this was never published");
                ghost.reached("repaired");
            }
            Err(ReadError::StuckInUpdate { version: 1 | 3, .. }) => ghost.reached("still-broken"),
            Err(error) => panic!("a repair cannot cause: {error}"),
        })
    };
    record.publish(value(2));
    reader.join().expect("the reader ended");
    assert_eq!(record.steal(), Ok(value(2)), "the repair is over");
}
