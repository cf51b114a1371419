//! What a mock machine does by itself, and when.

use crate::{CpuId, Nanos};

/// When a script entry runs. Counts are from 1 and over the machine's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// The CPU halts for the n-th time (its condition held).
    Halt(CpuId, u64),
    /// The CPU makes its n-th turn of a waiting loop.
    Relax(CpuId, u64),
    /// The CPU sends its n-th kick.
    Kick(CpuId, u64),
    /// The CPU reads the clock for the n-th time.
    Now(CpuId, u64),
}

/// One thing that a script does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Move the clock.
    Advance(Nanos),
    /// Take a CPU away.
    Preempt(CpuId),
    /// Give it back.
    Resume(CpuId),
    /// Kick a CPU.
    Kick(CpuId),
    /// End the halt that triggered this entry, without a kick.
    WakeSpuriously,
}
