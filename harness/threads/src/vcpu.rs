//! One vCPU: a thread that is either in guest mode, where a signal stops it at
//! any instruction, or in host mode, where it is left alone until it comes out.
//!
//! ```text
//!            exit (a call of the architecture, or the signal)
//!   guest --------------------------------------------------> host
//!   mode  <-------------------------------------------------- mode
//!            entry: first make room if that was asked for meanwhile
//! ```

use std::sync::OnceLock;

use nix::sys::pthread::Pthread;
use pv_arch::CpuId;
use pv_arch::sync::atomic::{AtomicBool, Ordering, compiler_fence};

use crate::gate::Gate;

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

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
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

    /// The calling thread is this vCPU's, in host mode.
    pub fn adopt_thread(&self) {
        self.thread.get_or_init(nix::sys::pthread::pthread_self);
    }

    /// Do `work` in host mode; `make_room` is what to do on the way back if that
    /// was asked for meanwhile. Nests.
    pub fn in_host<R>(&self, work: impl FnOnce() -> R, make_room: impl Fn()) -> R {
        let was_in_host = self.in_host.swap(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        // Also when `work` unwinds: a guest may catch that and go on.
        let _back = OnDrop(|| {
            if !was_in_host {
                self.enter_guest(&make_room);
            }
        });
        work()
    }

    /// The signal came: do `work` in host mode, unless the vCPU is there already
    /// (it looks at `resched` itself before it goes back to the guest).
    pub fn interrupted(&self, work: impl FnOnce(), make_room: impl Fn()) {
        if !self.in_host.load(Ordering::Relaxed) {
            self.in_host(work, make_room);
        }
    }

    /// From host to guest mode. A request to make room that came before the flag
    /// was cleared is seen here; one that comes after it finds guest mode.
    pub fn enter_guest(&self, make_room: impl Fn()) {
        loop {
            compiler_fence(Ordering::SeqCst);
            self.in_host.store(false, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            if !self.resched.load(Ordering::Relaxed) {
                return;
            }
            self.in_host.store(true, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            make_room();
        }
    }

    /// From guest to host mode, for good: the guest's code is over.
    pub fn leave_guest(&self) {
        self.in_host.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }
}
