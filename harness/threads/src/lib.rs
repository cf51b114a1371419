//! vCPUs as threads, under a host that really takes them away.
//!
//! A machine here has vCPUs, each a thread of the operating system, and a host
//! scheduler that shares a few host CPUs among them. Whoever is not scheduled
//! does not execute: a signal stops the thread at any instruction until it is
//! its turn. The host publishes what it does through `pv-steal`'s writers, in
//! the record of the chosen platform; the guest registers and reads that record
//! as a kernel would. Halt, kick and directed yield work as on KVM.
//!
//! ```text
//!    guest (Program, GuestCpu)          one thread a vCPU
//!      |  ThreadArch: Arch                 |  reads its records only
//!  ----+-----------------------------------+---------------- host mode below
//!    current, vcpu   guest mode / host mode; signal stops a thread
//!    vm     moves and how they take effect; run: the timer
//!    core   timelines, records, kicks, the watched lock
//!    sched  who runs where (pure)          stepped: virtual time instead
//! ```
//!
//! ```
//! use pv_arch::Nanos;
//! use pv_threads::{Engine, Settings, Workload, run};
//!
//! let settings = Settings {
//!     vcpus: 4,
//!     pcpus: 2,
//!     duration: Nanos::from_millis(20),
//!     engine: Engine::Stepped { seed: 1 },
//!     ..Settings::default()
//! };
//! let program = Workload::Relay.program(&settings)?;
//! let report = run(settings, program, |_| ())?;
//! assert!(report.is_balanced());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What is real here: preemption at any instruction, threads on real CPUs with
//! their real memory ordering, the records and their protocols. What is not: the
//! guest is user code in one process, a hypercall is a function call behind a
//! mutex, and the operating system under it all schedules as well.

mod arch;
mod core;
mod current;
mod error;
mod gate;
mod guest;
mod memory;
mod platform;
mod programs;
mod report;
mod run;
mod sched;
mod script;
mod settings;
mod signal;
mod stepped;
mod tables;
mod timeline;
mod vcpu;
mod vm;

pub use arch::ThreadArch;
pub use core::Counts;
pub use error::RunError;
pub use guest::{GuestCpu, Program};
pub use programs::{Relay, Spinners, Workload};
pub use report::{Check, Report, VcpuReport};
pub use run::run;
pub use script::{Probe, Script, Stop, Strike};
pub use settings::{
    Engine, MAX_DURATION, MAX_PCPUS, MAX_VCPUS, MIN_DURATION, MIN_SLICE, Settings, SettingsError,
};
pub use timeline::Times;

/// The example in the README is compiled as well.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
