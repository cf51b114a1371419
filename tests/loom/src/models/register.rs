//! Unregistering and registering again while others read.
//!
//! The guest's own code for KVM x86 runs against a host behind
//! `Arch::platform_call`. In the first model the host is a part of the vCPU's
//! own thread, as in KVM; in the second it runs beside it and may be about to
//! write when the guest unregisters.

use std::sync::Arc;

use loom::sync::Mutex;
use loom::thread;
use pv_arch::mock::{Machine, MockArch};
use pv_arch::sync::atomic::AtomicBool;
use pv_arch::sync::atomic::Ordering::{Acquire, Release};
use pv_arch::{CpuId, GuestAddr, Nanos, PlatformCall, Reply};
use pv_steal::kvm_x86::{self, Features, MSR_STEAL_TIME, SIGNATURE, StealTime};
use pv_steal::{HostRecord, Leave, StealSource};

use crate::model::{Ghost, Model};

pub const MODELS: &[Model] = &[
    Model {
        name: "kvm-x86-register-again",
        about: "what an earlier use left in a record is gone when it is registered",
        bound: 3,
        deep_bound: 5,
        min_executions: 1800,
        paths: &["saw-left-over", "read-new-value", "knew-registered"],
        bugs: &["kvm_x86.register-keeps-preempted"],
        mutants: &[],
        why_survives: &[],
        body: register_again,
    },
    Model {
        name: "kvm-x86-unregister",
        about: "after unregistering nobody who knows of it sees the CPU preempted",
        bound: 3,
        deep_bound: 4,
        min_executions: 230,
        paths: &[
            "host-was-first",
            "host-was-late",
            "saw-preempted",
            "knew-unregistered",
        ],
        bugs: &["kvm_x86.clear-before-unregister"],
        mutants: &[],
        why_survives: &[],
        body: unregister,
    },
];

const ADDR: GuestAddr = GuestAddr::new(0x7f40);

/// The host's side of one vCPU: whether it has a record to write.
struct Host {
    record: &'static StealTime,
    registered: Mutex<bool>,
}

impl Host {
    fn new(record: &'static StealTime, registered: bool) -> Arc<Self> {
        Arc::new(Self {
            record,
            registered: Mutex::new(registered),
        })
    }

    /// Stop the vCPU. Returns whether that was written anywhere.
    fn preempt(&self) -> bool {
        let registered = self.registered.lock().unwrap();
        if *registered {
            self.record.leave(Nanos::ZERO, Leave::Preempted);
        }
        *registered
    }

    fn answer(&self, call: PlatformCall) -> Reply {
        match call {
            PlatformCall::Cpuid {
                leaf: kvm_x86::FIRST_LEAF,
            } => Reply {
                status: 0,
                values: [0, SIGNATURE[0], SIGNATURE[1], SIGNATURE[2]].map(u64::from),
            },
            PlatformCall::Cpuid { .. } => Reply::value(u64::from(Features::STEAL_TIME.bits())),
            PlatformCall::WriteMsr {
                index: MSR_STEAL_TIME,
                value,
            } => {
                let decoded = kvm_x86::decode_msr(value).expect("a valid value");
                let mut registered = self.registered.lock().unwrap();
                *registered = decoded.is_some();
                assert!(
                    decoded.is_none() || !self.record.is_preempted(),
                    "registered with what an earlier use left in it"
                );
                Reply::status(0)
            }
            other => panic!("unexpected {other:?}"),
        }
    }

    /// A machine whose CPU 0 has this host. Only one thread of a model may use
    /// it: the mock holds a lock of std's while the host answers.
    fn machine(self: &Arc<Self>) -> Arc<Machine> {
        let machine = Machine::new(2);
        let size = size_of::<StealTime>();
        machine.map((&raw const *self.record).cast(), size, ADDR);
        let host = Arc::clone(self);
        machine.on_call(move |_, call| host.answer(call));
        machine
    }
}

/// A record that lives for ever, as a registered one does.
fn leaked_record() -> &'static StealTime {
    Box::leak(Box::new(StealTime::new()))
}

fn register_again(ghost: &Ghost) {
    let record = leaked_record();
    // A vCPU that was marked, then reset without a word to the host.
    record.leave(Nanos::ZERO, Leave::Preempted);
    let host = Host::new(record, false);
    let registered = Arc::new(AtomicBool::new(false));

    let reader = {
        let (registered, ghost) = (Arc::clone(&registered), ghost.clone());
        thread::spawn(move || {
            let knew = registered.load(Acquire);
            if record.is_preempted() {
                assert!(!knew, "known to be registered, and the old mark is there");
                ghost.reached("saw-left-over");
            }
            if knew {
                ghost.reached("knew-registered");
            }
            match record.steal() {
                Ok(steal) if steal == Nanos::new(7) => ghost.reached("read-new-value"),
                Ok(steal) => assert!(steal == Nanos::ZERO && !knew, "{steal:?} of nobody"),
                Err(error) => assert!(!knew, "no update goes on: {error}"),
            }
        })
    };

    let machine = host.machine();
    let cpu = machine.bind(CpuId::BOOT);
    kvm_x86::register::<MockArch>(record).expect("the host offers it");
    record.enter(Nanos::ZERO, Nanos::new(7));
    registered.store(true, Release);
    assert_eq!(record.steal(), Ok(Nanos::new(7)), "its own CPU's read");
    reader.join().expect("the reader ended");
    drop(cpu);
}

fn unregister(ghost: &Ghost) {
    let record = leaked_record();
    let host = Host::new(record, true);
    let unregistered = Arc::new(AtomicBool::new(false));

    let beside = {
        let host = Arc::clone(&host);
        thread::spawn(move || host.preempt())
    };
    let reader = {
        let (unregistered, ghost) = (Arc::clone(&unregistered), ghost.clone());
        thread::spawn(move || {
            let knew = unregistered.load(Acquire);
            if record.is_preempted() {
                assert!(!knew, "known to be unregistered, and yet preempted");
                ghost.reached("saw-preempted");
            } else if knew {
                ghost.reached("knew-unregistered");
            }
        })
    };

    let machine = host.machine();
    let cpu = machine.bind(CpuId::BOOT);
    kvm_x86::unregister::<MockArch>(record).expect("the host agrees");
    unregistered.store(true, Release);
    assert!(!record.is_preempted(), "unregistered, and yet preempted");
    drop(cpu);

    let host_was_first = beside.join().expect("the host ended");
    reader.join().expect("the reader ended");
    assert!(
        !record.is_preempted(),
        "the host wrote after it was told not to"
    );
    ghost.reached(if host_was_first {
        "host-was-first"
    } else {
        "host-was-late"
    });
}
