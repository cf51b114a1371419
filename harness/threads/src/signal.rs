//! Stopping a thread at any instruction: a directed signal.
//!
//! `SIGURG` is ignored by default and used by nobody else here; a language
//! runtime with preemptible threads made the same choice.

use std::sync::OnceLock;

use nix::errno::Errno;
use nix::sys::pthread::{Pthread, pthread_kill};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

const PREEMPT: Signal = Signal::SIGURG;

/// What to do on a thread that is stopped; set before the handler is installed.
static ON_PREEMPT: OnceLock<fn()> = OnceLock::new();

/// Make the process able to preempt its vCPU threads. Once a process: later calls
/// change nothing.
///
/// `on_preempt` runs in a signal handler: it may read thread-locals without
/// destructors, take locks that the interrupted code cannot hold, wait at futexes
/// and read the clock; it must not allocate.
pub(crate) fn install(on_preempt: fn()) -> Result<(), Errno> {
    static INSTALLED: OnceLock<Result<(), Errno>> = OnceLock::new();
    ON_PREEMPT.get_or_init(|| on_preempt);
    *INSTALLED.get_or_init(|| {
        let action = SigAction::new(
            SigHandler::Handler(handler),
            SaFlags::SA_RESTART,
            SigSet::empty(),
        );
        // SAFETY: the handler reads a static that was set before, saves and restores
        // `errno`, and calls `on_preempt`, whose contract is above. (A lock of the
        // standard library is an atomic and a futex on Linux: what a handler must
        // not do with it is wait for the code that it interrupted.)
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
extern "C" fn handler(_signal: i32) {
    let errno = Errno::last_raw();
    if let Some(on_preempt) = ON_PREEMPT.get() {
        on_preempt();
    }
    Errno::set_raw(errno);
}
