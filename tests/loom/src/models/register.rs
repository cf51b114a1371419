//! Unregistering and registering again while others read.
//!
//! The guest's own code runs against a host behind
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
use pv_steal::xen::{self, RunState32, RunState64};
use pv_steal::{GuestRecord, HostRecord, Leave, RegisterError};
use pv_steal::{kvm_x86, loongarch, power, riscv};

use crate::model::{Ghost, Model};
use crate::models::preempted::Hint;

/// The other records unregister alike.
const KVM_X86_UNREGISTER: Model = Model {
    name: "kvm-x86-unregister",
    about: UNREGISTER,
    bound: 3,
    deep_bound: 4,
    min_executions: 230,
    paths: UNREGISTER_PATHS,
    bugs: &["record.forget-before-unregister"],
    mutants: &[],
    why_survives: &[],
    body: unregister::<kvm_x86::StealTime>,
};

pub const MODELS: &[Model] = &[
    Model {
        name: "kvm-x86-register-again",
        about: REGISTER_AGAIN,
        bound: 3,
        deep_bound: 5,
        min_executions: 1800,
        paths: &["saw-left-over", "read-new-value", "knew-registered"],
        bugs: &["record.register-keeps-mark"],
        mutants: &[],
        why_survives: &[],
        body: register_again::<kvm_x86::StealTime>,
    },
    KVM_X86_UNREGISTER,
    Model {
        name: "riscv-register-again",
        about: REGISTER_AGAIN,
        bound: 3,
        deep_bound: 5,
        min_executions: 1950,
        paths: &["saw-left-over", "read-new-value", "knew-registered"],
        bugs: &["record.register-keeps-mark"],
        mutants: &[],
        why_survives: &[],
        body: register_again::<riscv::StealTime>,
    },
    Model {
        name: "riscv-unregister",
        body: unregister::<riscv::StealTime>,
        ..KVM_X86_UNREGISTER
    },
    Model {
        name: "loongarch-register-again",
        about: REGISTER_AGAIN,
        bound: 3,
        deep_bound: 5,
        min_executions: 1800,
        paths: &["saw-left-over", "read-new-value", "knew-registered"],
        bugs: &["record.register-keeps-mark"],
        mutants: &[],
        why_survives: &[],
        body: register_again::<loongarch::StealTime>,
    },
    Model {
        name: "loongarch-unregister",
        body: unregister::<loongarch::StealTime>,
        ..KVM_X86_UNREGISTER
    },
    Model {
        name: "power-register-again",
        about: REGISTER_AGAIN,
        bound: 3,
        deep_bound: 5,
        min_executions: 195,
        paths: &["saw-left-over", "read-new-value", "knew-registered"],
        bugs: &["record.register-keeps-mark"],
        mutants: &[],
        why_survives: &[],
        body: register_again::<power::VirtualProcessorArea>,
    },
    Model {
        name: "power-unregister",
        about: UNREGISTER,
        bound: 3,
        deep_bound: 4,
        min_executions: 360,
        paths: UNREGISTER_PATHS,
        bugs: &["record.forget-before-unregister"],
        mutants: &[],
        why_survives: &[],
        body: unregister::<power::VirtualProcessorArea>,
    },
    Model {
        name: "xen-64-register-again",
        about: REGISTER_AGAIN,
        bound: 3,
        deep_bound: 5,
        min_executions: 14_000,
        paths: &["saw-left-over", "read-new-value", "knew-registered"],
        bugs: &["record.register-keeps-mark"],
        mutants: &[],
        why_survives: &[],
        body: register_again::<RunState64>,
    },
    Model {
        name: "xen-64-unregister",
        body: unregister::<RunState64>,
        ..KVM_X86_UNREGISTER
    },
    Model {
        name: "xen-32-register-again",
        about: REGISTER_AGAIN,
        bound: 1,
        deep_bound: 3,
        min_executions: 25_000,
        paths: &["saw-left-over", "read-new-value", "knew-registered"],
        bugs: &["record.register-keeps-mark"],
        mutants: &[],
        why_survives: &[],
        body: register_again::<RunState32>,
    },
    Model {
        name: "xen-32-unregister",
        body: unregister::<RunState32>,
        ..KVM_X86_UNREGISTER
    },
];

const REGISTER_AGAIN: &str = "what an earlier use left in a record is gone when it is registered";
const UNREGISTER: &str = "after unregistering nobody who knows of it sees the CPU preempted";
const UNREGISTER_PATHS: &[&str] = &[
    "host-was-first",
    "host-was-late",
    "saw-preempted",
    "knew-unregistered",
];

/// A multiple of every record's alignment, with room for the largest.
const ADDR: GuestAddr = GuestAddr::new(0x7c00);

/// What a host makes of a call: its reply, and whether it uses the record from
/// now on, if the call says so.
type Answer = (Reply, Option<bool>);

/// A record that its vCPU registers by a call.
trait Registrable: Hint + GuestRecord {
    fn register(record: &'static Self) -> Result<(), RegisterError>;
    fn unregister(record: &'static Self) -> Result<(), RegisterError>;
    fn answer(call: PlatformCall) -> Answer;
    /// As host: the vCPU runs, and 7 ns of steal are there to read.
    fn publish_seven(&self) {
        self.enter(Nanos::ZERO, Nanos::new(7));
    }
}

/// The reply to a call that registers (`Some`) or unregisters (`None`).
fn told<E: std::fmt::Debug>(decoded: Result<Option<GuestAddr>, E>) -> Answer {
    let addr = decoded.expect("a valid call");
    (Reply::status(0), Some(addr.is_some()))
}

impl Registrable for kvm_x86::StealTime {
    fn register(record: &'static Self) -> Result<(), RegisterError> {
        kvm_x86::register::<MockArch>(record)
    }
    fn unregister(record: &'static Self) -> Result<(), RegisterError> {
        kvm_x86::unregister::<MockArch>(record)
    }
    fn answer(call: PlatformCall) -> Answer {
        let [ebx, ecx, edx] = kvm_x86::SIGNATURE;
        match call {
            PlatformCall::Cpuid {
                leaf: kvm_x86::FIRST_LEAF,
            } => {
                let values = [0, ebx, ecx, edx].map(u64::from);
                (Reply { status: 0, values }, None)
            }
            PlatformCall::Cpuid { .. } => {
                let features = kvm_x86::Features::STEAL_TIME.bits();
                (Reply::value(features.into()), None)
            }
            PlatformCall::WriteMsr {
                index: kvm_x86::MSR_STEAL_TIME,
                value,
            } => told(kvm_x86::decode_msr(value)),
            other => panic!("unexpected {other:?}"),
        }
    }
}

impl Registrable for riscv::StealTime {
    fn register(record: &'static Self) -> Result<(), RegisterError> {
        riscv::register::<MockArch>(record)
    }
    fn unregister(record: &'static Self) -> Result<(), RegisterError> {
        riscv::unregister::<MockArch>(record)
    }
    fn answer(call: PlatformCall) -> Answer {
        match call {
            PlatformCall::Sbi {
                extension: riscv::BASE_EXTENSION,
                ..
            } => (Reply::value(1), None),
            PlatformCall::Sbi {
                extension: riscv::EXTENSION,
                args,
                ..
            } => told(riscv::decode(args, riscv::Xlen::NATIVE)),
            other => panic!("unexpected {other:?}"),
        }
    }
}

impl Registrable for loongarch::StealTime {
    fn register(record: &'static Self) -> Result<(), RegisterError> {
        loongarch::register::<MockArch>(record).map(|_| ())
    }
    fn unregister(record: &'static Self) -> Result<(), RegisterError> {
        loongarch::unregister::<MockArch>(record)
    }
    fn answer(call: PlatformCall) -> Answer {
        match call {
            PlatformCall::Cpucfg {
                word: loongarch::CPUCFG_SIGNATURE,
            } => (Reply::value(loongarch::SIGNATURE.into()), None),
            PlatformCall::Cpucfg { .. } => {
                let features = loongarch::Features::STEAL_TIME.bits();
                (Reply::value(features.into()), None)
            }
            PlatformCall::LoongArchHypercall { args, .. } => told(loongarch::decode(args)),
            other => panic!("unexpected {other:?}"),
        }
    }
}

impl Registrable for power::VirtualProcessorArea {
    fn register(record: &'static Self) -> Result<(), RegisterError> {
        power::register::<MockArch>(record)
    }
    fn unregister(record: &'static Self) -> Result<(), RegisterError> {
        power::unregister::<MockArch>(record)
    }
    fn answer(call: PlatformCall) -> Answer {
        let PlatformCall::Papr { args, .. } = call else {
            panic!("unexpected {call:?}");
        };
        let request = power::decode(args, power::SIZE).expect("a valid call");
        let is_used = matches!(request, power::Request::Register { .. });
        (Reply::status(power::H_SUCCESS), Some(is_used))
    }
}

impl Registrable for RunState64 {
    fn register(record: &'static Self) -> Result<(), RegisterError> {
        xen::register::<MockArch, _>(record)
    }
    fn unregister(record: &'static Self) -> Result<(), RegisterError> {
        xen::unregister::<MockArch, _>(record)
    }
    fn answer(call: PlatformCall) -> Answer {
        xen_answer::<Self>(call)
    }
    fn publish_seven(&self) {
        xen_publish_seven(self);
    }
}

impl Registrable for RunState32 {
    fn register(record: &'static Self) -> Result<(), RegisterError> {
        xen::register::<MockArch, _>(record)
    }
    fn unregister(record: &'static Self) -> Result<(), RegisterError> {
        xen::unregister::<MockArch, _>(record)
    }
    fn answer(call: PlatformCall) -> Answer {
        xen_answer::<Self>(call)
    }
    fn publish_seven(&self) {
        xen_publish_seven(self);
    }
}

fn xen_answer<R: GuestRecord>(call: PlatformCall) -> Answer {
    match call {
        PlatformCall::XenVcpuOp { op, area, .. } => told(xen::decode::<R>(op, area)),
        other => panic!("unexpected {other:?}"),
    }
}

/// Steal comes from the transitions alone.
fn xen_publish_seven(record: &impl HostRecord) {
    record.leave(Nanos::new(10), Leave::Preempted);
    record.enter(Nanos::new(17), Nanos::ZERO);
}

/// The host's side of one vCPU: whether it has a record to write.
struct Host<R: 'static> {
    record: &'static R,
    registered: Mutex<bool>,
}

impl<R: Registrable> Host<R> {
    fn new(record: &'static R, registered: bool) -> Arc<Self> {
        Arc::new(Self {
            record,
            registered: Mutex::new(registered),
        })
    }

    /// Stop the vCPU. Returns whether that was written anywhere.
    fn preempt(&self) -> bool {
        let registered = self.registered.lock().unwrap();
        if *registered {
            self.record.leave(Nanos::new(1), Leave::Preempted);
        }
        *registered
    }

    fn answer(&self, call: PlatformCall) -> Reply {
        let (reply, is_used) = R::answer(call);
        if let Some(is_used) = is_used {
            let mut registered = self.registered.lock().unwrap();
            *registered = is_used;
            assert!(
                !is_used || !self.record.is_preempted(),
                "registered with what an earlier use left in it"
            );
        }
        reply
    }

    /// A machine whose CPU 0 has this host. Only one thread of a model may use
    /// it: the mock holds a lock of std's while the host answers.
    fn machine(self: &Arc<Self>) -> Arc<Machine> {
        let machine = Machine::new(2);
        // Records have their own size except under loom.
        let size = size_of::<R>().max(R::LAYOUT.size);
        machine.map((&raw const *self.record).cast(), size, ADDR);
        let host = Arc::clone(self);
        machine.on_call(move |_, call| host.answer(call));
        machine
    }
}

/// A record that lives for ever, as a registered one does.
fn leaked_record<R: Registrable>() -> &'static R {
    Box::leak(Box::new(R::fresh()))
}

fn register_again<R: Registrable>(ghost: &Ghost) {
    let record = leaked_record::<R>();
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
    R::register(record).expect("the host offers it");
    record.publish_seven();
    registered.store(true, Release);
    assert_eq!(record.steal(), Ok(Nanos::new(7)), "its own CPU's read");
    reader.join().expect("the reader ended");
    drop(cpu);
}

fn unregister<R: Registrable>(ghost: &Ghost) {
    let record = leaked_record::<R>();
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
                let steal = record.steal();
                assert!(steal.is_ok(), "nobody writes any more, but {steal:?}");
            }
        })
    };

    let machine = host.machine();
    let cpu = machine.bind(CpuId::BOOT);
    R::unregister(record).expect("the host agrees");
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
