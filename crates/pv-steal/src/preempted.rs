//! The `preempted` byte of records in which only the host writes it.
//!
//! One byte, read alone: whoever reads it has a hint that may be late, but that
//! never goes back.

use pv_arch::sync::atomic::AtomicU8;

use crate::Leave;

pv_arch::orderings! {
    /// A hint, alone in its byte.
    fn read = Relaxed;
    /// The host sets the hint after the guest's code has stopped.
    fn set = Relaxed;
    /// The host clears the hint before the guest's code goes on.
    fn clear = Relaxed;
}

/// The byte.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct PreemptedByte(AtomicU8);

impl PreemptedByte {
    pv_arch::const_new! {
        /// A byte that says nothing.
        pub(crate) fn new() -> Self { Self(AtomicU8::new(0)) }
    }

    /// The byte as the host left it.
    #[inline(always)]
    pub(crate) fn get(&self) -> u8 {
        self.0.load(read())
    }

    /// What an earlier use left is no longer true.
    pub(crate) fn forget(&self) {
        self.0.store(0, clear());
    }

    /// The host lets the vCPU run.
    pub(crate) fn enter(&self) {
        if !pv_arch::seeded_bug!("preempted.enter-keeps-mark") {
            self.forget();
        }
    }

    /// The host took the vCPU away; `mark` is what the byte then says.
    pub(crate) fn leave(&self, why: Leave, mark: u8) {
        if why.marks_preempted() {
            self.0.store(mark, set());
        }
    }
}
