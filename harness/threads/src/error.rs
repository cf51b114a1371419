//! What can go wrong with a run, with the place and the value.

use pv_arch::{CpuId, Nanos};
use pv_steal::RegisterError;
use thiserror::Error;

use crate::settings::SettingsError;

/// Why a run gave no report.
#[derive(Debug, Error)]
pub enum RunError {
    /// The settings make no machine.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A vCPU halted and nobody woke it.
    #[error(
        "lost wake-up: {cpu} has been halted for {} ms and nobody is going to kick it (watchdog: {} ms); {kicks_dropped} kicks were dropped on purpose",
        asleep.get() / 1_000_000, watchdog.get() / 1_000_000
    )]
    LostWakeUp {
        /// The vCPU that sleeps.
        cpu: CpuId,
        /// For how long.
        asleep: Nanos,
        /// The limit.
        watchdog: Nanos,
        /// Kicks that an injected fault dropped.
        kicks_dropped: u64,
    },
    /// Every vCPU is halted: nobody is left to kick anybody.
    #[error(
        "lost wake-up: at {} ms every vCPU is halted and none can be kicked; {kicks_dropped} kicks were dropped on purpose",
        at.get() / 1_000_000
    )]
    AllHalted {
        /// Time since the start.
        at: Nanos,
        /// Kicks that an injected fault dropped.
        kicks_dropped: u64,
    },
    /// In virtual time, a vCPU executes without ever calling its architecture.
    #[error("no virtual time has passed for {} ms: some vCPU makes no call of the architecture", real.get() / 1_000_000)]
    TimeStandsStill {
        /// How long the host waited, in real time.
        real: Nanos,
    },
    /// A vCPU went on although the run was over.
    #[error("{cpu} did not stop within {} ms of being told to", grace.get() / 1_000_000)]
    DoesNotStop {
        /// One such vCPU.
        cpu: CpuId,
        /// How long the host waited.
        grace: Nanos,
    },
    /// Guest code panicked.
    #[error("guest code on {cpu} panicked: {message}")]
    GuestPanicked {
        /// Where.
        cpu: CpuId,
        /// What it said.
        message: String,
    },
    /// The guest kernel could not register its record.
    #[error("{cpu}: {error}")]
    Register {
        /// The vCPU that tried.
        cpu: CpuId,
        /// Why not.
        error: RegisterError,
    },
    /// The operating system refused something.
    #[error("{what}: {error}")]
    Os {
        /// What was asked of it.
        what: &'static str,
        /// What it said.
        error: std::io::Error,
    },
}
