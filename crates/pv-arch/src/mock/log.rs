//! What happened on a mock machine, in order.

use crate::{CpuId, Nanos, PlatformCall, Yielded};

/// One entry of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Mock time.
    pub at: Nanos,
    /// The CPU that did it; for changes made by the test or its script, the CPU
    /// that they happened to.
    pub cpu: CpuId,
    /// What it was.
    pub what: What,
}

/// Kinds of events. Turns of waiting loops are counted, not logged: see
/// [`Machine::relaxes`](super::Machine::relaxes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Called halt with a condition that held.
    Halt,
    /// Called halt with a condition that did not hold any more.
    HaltRefused,
    /// Came back from a halt because of a kick.
    Woke,
    /// Came back from a halt without a kick.
    WokeSpuriously,
    /// Kicked a CPU, or was kicked by the script.
    Kicked(CpuId),
    /// Yielded to a CPU.
    YieldedTo(CpuId, Yielded),
    /// Masked interrupts; the number is the nesting depth afterwards.
    IrqSave(u32),
    /// Unmasked interrupts; the number is the nesting depth afterwards.
    IrqRestore(u32),
    /// Made a platform call.
    Called(PlatformCall),
    /// Serialised a CPU.
    Serialized(CpuId),
    /// The host took the CPU away.
    Preempted,
    /// The host gave the CPU back.
    Resumed,
}
