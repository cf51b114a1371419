//! Flush requests of KVM x86 against the host that lets the vCPU run again.
//!
//! A CPU changes the page table and asks the host of a preempted vCPU to flush
//! its TLB. If it was told `Queued` it sends no interrupt, so the host must have
//! seen the request, and the flush must see the page table as changed.

use std::sync::{Arc, Mutex};

use loom::thread;
use pv_arch::Nanos;
use pv_arch::sync::cell::UnsafeCell;
use pv_steal::kvm_x86::{FlushRequest, PreemptedFlags, StealTime};
use pv_steal::{HostRecord, Leave, StealSource};

use crate::model::{Ghost, Model, mutant};

pub const MODELS: &[Model] = &[
    Model {
        name: "kvm-x86-flush",
        about: "a queued flush is seen by the host with the page table before it",
        bound: 3,
        deep_bound: 5,
        min_executions: 10,
        paths: &["queued", "interrupt-instead"],
        bugs: &["kvm_x86.flush-by-store", "kvm_x86.take-by-store"],
        mutants: &[
            mutant("pv_steal::kvm_x86::request_flush", "Relaxed"),
            mutant("pv_steal::kvm_x86::take_requests", "Relaxed"),
        ],
        why_survives: &[],
        body: one_requester,
    },
    Model {
        name: "kvm-x86-flush-leave-twice",
        about: "a host that leaves again before it enters keeps the request",
        bound: 3,
        deep_bound: 5,
        min_executions: 16,
        paths: &["queued", "interrupt-instead"],
        bugs: &["kvm_x86.leave-by-store", "kvm_x86.take-by-store"],
        mutants: &[],
        why_survives: &[],
        body: leave_twice,
    },
    Model {
        name: "kvm-x86-flush-run-twice",
        about: "a request across two preemptions goes to the one that it was told of",
        bound: 3,
        deep_bound: 5,
        min_executions: 22,
        paths: &["queued", "interrupt-instead"],
        bugs: &["kvm_x86.flush-by-store"],
        mutants: &[mutant("pv_steal::kvm_x86::request_flush", "Relaxed")],
        why_survives: &[],
        body: run_twice,
    },
    Model {
        name: "kvm-x86-flush-two-requesters",
        about: "two requests for one vCPU are both served",
        bound: 3,
        deep_bound: 4,
        min_executions: 220,
        paths: &["one-queued", "both-queued", "both-in-one-flush"],
        bugs: &["kvm_x86.flush-asked-already", "kvm_x86.flush-by-store"],
        mutants: &[
            mutant("pv_steal::kvm_x86::request_flush", "Relaxed"),
            mutant("pv_steal::kvm_x86::take_requests", "Relaxed"),
        ],
        why_survives: &[],
        body: two_requesters,
    },
];

/// What the requests are about. A requester changes its own entry; a flush looks
/// at the entries that were announced. Loom fails an unordered look.
struct Shared {
    record: StealTime,
    entries: [UnsafeCell<bool>; 2],
    /// Ghost: whose request is queued. Written right after the request with no
    /// loom operation between, so always true of this moment.
    queued: Mutex<Vec<usize>>,
    /// Ghost: whose request was flushed for.
    served: Mutex<Vec<usize>>,
}

// SAFETY: the entries are handed over by the protocol under test, and loom
// reports every access that it did not order.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            record: StealTime::new(),
            entries: [UnsafeCell::new(false), UnsafeCell::new(false)],
            queued: Mutex::default(),
            served: Mutex::default(),
        })
    }

    /// A CPU that changes its entry and asks for the flush.
    fn change_and_ask(&self, who: usize) -> FlushRequest {
        // SAFETY: only `who` writes this entry, before it is announced.
        self.entries[who].with_mut(|entry| unsafe { *entry = true });
        let answer = self.record.request_flush();
        if answer == FlushRequest::Queued {
            self.queued.lock().unwrap().push(who);
        }
        answer
    }

    /// The host lets the vCPU run, after the flush that was asked for.
    fn resume(&self) {
        let asked = self.record.take_requests();
        let announced = std::mem::take(&mut *self.queued.lock().unwrap());
        assert_eq!(
            asked.contains(PreemptedFlags::FLUSH_TLB),
            !announced.is_empty(),
            "the host saw {asked:?}, queued were {announced:?}"
        );
        for who in &announced {
            // SAFETY: it was changed before it was announced.
            let changed = self.entries[*who].with(|entry| unsafe { *entry });
            assert!(changed, "the flush came before the change");
        }
        self.served.lock().unwrap().extend(announced);
    }

    fn preempt(&self) {
        self.record.leave(Nanos::ZERO, Leave::Preempted);
    }

    /// When all is over: everybody who was told so was served, the vCPU runs.
    fn check(&self) {
        assert!(self.queued.lock().unwrap().is_empty(), "a lost request");
        assert!(!self.record.is_preempted(), "it runs, marked as preempted");
    }
}

fn one_requester(ghost: &Ghost) {
    with_one_requester(ghost, |shared| {
        shared.preempt();
        shared.resume();
    });
}

fn leave_twice(ghost: &Ghost) {
    with_one_requester(ghost, |shared| {
        shared.preempt();
        shared.preempt();
        shared.resume();
    });
}

fn run_twice(ghost: &Ghost) {
    with_one_requester(ghost, |shared| {
        shared.preempt();
        shared.resume();
        shared.preempt();
        shared.resume();
    });
}

fn with_one_requester(ghost: &Ghost, host: fn(&Shared)) {
    let shared = Shared::new();
    let vcpu = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || host(&shared))
    };
    let answer = shared.change_and_ask(0);
    vcpu.join().expect("the host ended");
    shared.check();
    ghost.reached(match answer {
        FlushRequest::Queued => "queued",
        FlushRequest::NotPreempted => "interrupt-instead",
    });
}

fn two_requesters(ghost: &Ghost) {
    let shared = Shared::new();
    shared.preempt();
    let requesters = [0, 1].map(|who| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || shared.change_and_ask(who))
    });
    shared.resume();
    let in_one_flush = shared.served.lock().unwrap().len() == 2;
    let queued = requesters
        .into_iter()
        .map(|requester| requester.join().expect("the requester ended"))
        .filter(|answer| *answer == FlushRequest::Queued)
        .count();
    shared.check();
    match queued {
        1 => ghost.reached("one-queued"),
        2 => ghost.reached("both-queued"),
        _ => {}
    }
    if in_one_flush {
        ghost.reached("both-in-one-flush");
    }
}
