//! One vCPU: a thread that is either in guest mode, where a signal stops it at
//! any instruction, or in host mode, where it is left alone until it comes out.
//!
//! ```text
//!            exit (a call of the architecture, or the signal)
//!   guest --------------------------------------------------> host
//!   mode  <-------------------------------------------------- mode
//!            entry: first make room if that was asked for meanwhile
//! ```

use std::cell::Cell;
use std::sync::OnceLock;

use nix::sys::pthread::Pthread;
use pv_arch::CpuId;
use pv_arch::sync::atomic::{AtomicBool, Ordering, compiler_fence};

use crate::gate::Gate;
use crate::vm::Vm;

/// What a vCPU's thread and the host share, beside the host's knowledge.
///
/// The two flags are shared by a thread and its own signal handler only (and
/// `resched` is a hint to the thread from the host, which then sends the signal
/// or holds the lock): relaxed accesses and compiler fences are enough.
pub(crate) struct Vcpu {
    pub id: CpuId,
    pub gate: Gate,
    pub resched: AtomicBool,
    pub thread: OnceLock<Pthread>,
    in_host: AtomicBool,
}

thread_local! {
    /// The vCPU that this thread is. Has no destructor and is constant until
    /// set, so a signal handler may read it.
    static CURRENT: Cell<Option<(&'static Vm, &'static Vcpu)>> = const { Cell::new(None) };
}

/// The machine and vCPU that the calling thread is.
///
/// # Panics
/// On a thread that is no vCPU: guest code runs nowhere else.
pub(crate) fn current() -> (&'static Vm, &'static Vcpu) {
    CURRENT
        .get()
        .expect("guest code must run on a vCPU's thread")
}

/// The signal came.
pub(crate) fn interrupted() {
    let Some((vm, vcpu)) = CURRENT.get() else {
        return;
    };
    if vcpu.in_host.load(Ordering::Relaxed) {
        // It looks at `resched` itself before it goes back to the guest.
        return;
    }
    vcpu.in_host.store(true, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    vm.preempt(vcpu.id.index(), true);
    vcpu.enter_guest(vm);
}

impl Vcpu {
    pub fn new(id: CpuId) -> Self {
        Self {
            id,
            gate: Gate::new(),
            resched: AtomicBool::new(false),
            thread: OnceLock::new(),
            in_host: AtomicBool::new(true),
        }
    }

    /// Make the calling thread this vCPU, in host mode.
    pub fn become_current(&'static self, vm: &'static Vm) {
        self.thread.get_or_init(nix::sys::pthread::pthread_self);
        CURRENT.set(Some((vm, self)));
    }

    /// Do `work` in host mode. Nests.
    pub fn in_host<R>(&self, vm: &Vm, work: impl FnOnce() -> R) -> R {
        let was_in_host = self.in_host.swap(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let result = work();
        if !was_in_host {
            self.enter_guest(vm);
        }
        result
    }

    /// From host to guest mode. A request to make room that came before the flag
    /// was cleared is seen here; one that comes after it finds guest mode.
    pub fn enter_guest(&self, vm: &Vm) {
        loop {
            compiler_fence(Ordering::SeqCst);
            self.in_host.store(false, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            if !self.resched.load(Ordering::Relaxed) {
                return;
            }
            if self.in_host.swap(true, Ordering::Relaxed) {
                // Not reachable: the handler restores guest mode.
                return;
            }
            compiler_fence(Ordering::SeqCst);
            vm.preempt(self.id.index(), false);
        }
    }

    /// From guest to host mode, for good: the guest's code is over.
    pub fn leave_guest(&self) {
        self.in_host.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }
}
