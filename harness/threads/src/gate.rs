//! A gate that one thread waits at and anybody opens, usable from a signal
//! handler: a futex, no allocation, no lock.

use pv_arch::sync::atomic::{AtomicU32, Ordering};
use rustix::thread::futex;

const SHUT: u32 = 0;
const OPEN: u32 = 1;

#[derive(Debug)]
pub(crate) struct Gate(AtomicU32);

impl Gate {
    pub const fn new() -> Self {
        Self(AtomicU32::new(SHUT))
    }

    /// Let the waiting thread through, or the next one that comes. What was
    /// written before is visible to it (Release).
    pub fn open(&self) {
        self.0.store(OPEN, Ordering::Release);
        // Cannot fail: the word exists and is aligned.
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
    }

    /// Wait until the gate is open, and shut it behind (Acquire).
    pub fn pass(&self) {
        while self.0.swap(SHUT, Ordering::Acquire) == SHUT {
            // Returns when woken, when the word is not SHUT any more, and when
            // a signal comes; all of them mean: look again.
            let _ = futex::wait(&self.0, futex::Flags::PRIVATE, SHUT, None);
        }
    }
}
