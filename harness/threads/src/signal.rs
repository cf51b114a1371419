//! Stopping a thread at any instruction: a directed signal.
//!
//! `SIGURG` is ignored by default and used by nobody else here; a language
//! runtime with preemptible threads made the same choice.

use std::sync::OnceLock;

use nix::errno::Errno;
use nix::sys::pthread::{Pthread, pthread_kill};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use crate::vcpu;

const PREEMPT: Signal = Signal::SIGURG;

/// Make the process able to preempt its vCPU threads. Once a process.
pub(crate) fn install() -> Result<(), Errno> {
    static INSTALLED: OnceLock<Result<(), Errno>> = OnceLock::new();
    *INSTALLED.get_or_init(|| {
        let action = SigAction::new(
            SigHandler::Handler(on_preempt),
            SaFlags::SA_RESTART,
            SigSet::empty(),
        );
        // SAFETY: the handler does only what is allowed in one: see `on_preempt`.
        unsafe { sigaction(PREEMPT, &action) }.map(drop)
    })
}

/// Stop `thread` wherever it is. The thread must not have ended.
pub(crate) fn send(thread: Pthread) {
    // Fails only for a thread that does not exist any more; then there is
    // nothing to stop.
    let _ = pthread_kill(thread, PREEMPT);
}

/// What runs on a vCPU's thread when the host wants its CPU back.
///
/// Allowed in a signal handler because it only reads a thread-local without
/// destructor, takes the host's mutex (which the interrupted code does not hold:
/// it was in guest mode), waits at futexes and reads the clock. It allocates
/// nothing and restores `errno`.
extern "C" fn on_preempt(_signal: i32) {
    let errno = Errno::last_raw();
    vcpu::interrupted();
    Errno::set_raw(errno);
}
