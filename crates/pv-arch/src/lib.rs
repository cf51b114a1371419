//! The one door between paravirtual guest code and its machine.
//!
//! A guest's locks, wake-up placement and time accounting need a handful of
//! things from the kernel they are linked into: which CPU is this, halt until
//! kicked, is that vCPU preempted. Everything of that kind goes through one
//! trait, [`Arch`]; everything shared between CPUs goes through one shim,
//! [`sync`]. Nothing else in the workspace reaches the machine or an atomic.
//!
//! ```text
//!   pv-steal, and whatever else is generic over a kernel
//!       |
//!       +----> Arch (static trait)        <- the kernel implements it
//!       +----> sync (core or loom)        <- cfg(pv_loom) switches it
//! ```
//!
//! A kernel on bare metal implements five methods and inherits harmless
//! defaults for the rest:
//!
//! ```
//! use pv_arch::{Arch, CpuCount, CpuId, Nanos};
//!
//! struct BareMetal;
//!
//! impl Arch for BareMetal {
//!     type IrqState = ();
//!     fn this_cpu() -> CpuId { CpuId::BOOT }
//!     fn cpu_count() -> CpuCount { CpuCount::ONE }
//!     fn now() -> Nanos { Nanos::ZERO } // a real kernel reads its clock
//!     fn irq_save() {}
//!     fn irq_restore((): ()) {}
//! }
//!
//! // Nothing is preempted where there is no host.
//! assert!(!BareMetal::is_preempted(CpuId::BOOT));
//! ```
//!
//! # Guaranteed
//!
//! * `no_std`, no allocation, no panic: nothing here can fail at run time.
//! * Outside `cfg(pv_loom)` the shim is `core`'s own types: it costs nothing.
//!
//! # Not guaranteed
//!
//! * [`Arch::is_preempted`] is a hint. Code built on this crate must stay
//!   correct when it lies; [`mock`] (feature `mock`) has liars to test with.

// std only where tests run: the mock, a model checker, unit tests.
#![cfg_attr(not(any(feature = "mock", pv_loom, test)), no_std)]

mod addr;
mod arch;
mod call;
mod cpu;
#[cfg(feature = "mock")]
pub mod mock;
pub mod sync;
mod time;

pub use addr::GuestAddr;
pub use arch::{Arch, Yielded};
pub use call::{PlatformCall, Reply};
pub use cpu::{CpuCount, CpuId, CpuOutOfRange};
pub use time::Nanos;
