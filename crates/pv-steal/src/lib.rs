//! Steal time and preemption, as hypervisors publish them.
//!
//! A hypervisor tells each vCPU how long it was kept waiting (*steal*) and tells
//! everybody whether a vCPU is kept waiting right now (*preempted*), in a record
//! that guest and host share. Every platform has its own layout, its own way to
//! register it and its own protocol for reading it; what a scheduler wants to
//! know is the same on all of them.
//!
//! ```text
//!   host                         record                    guest
//!   HostRecord::enter/leave  ->  layout, flags, version ->  StealSource::steal
//!   (writer)                     kvm_x86, arm, riscv, ..    StealSource::preemption
//!                                                              |
//!       StealAccount (whose interval paid)   StealClock  <-----+
//!       StealEstimate (recent share)      <- (monotonic)       |
//!                                                              |
//!       Belief (what of `preempted` to believe)          <-----+
//! ```
//!
//! ```
//! use pv_arch::Nanos;
//! use pv_steal::kvm_x86::StealTime;
//! use pv_steal::{HostRecord, Leave, Preemption, StealSource};
//!
//! let record = StealTime::new();
//! // The host takes the vCPU away at 1 ms and gives it back at 3 ms.
//! record.leave(Nanos::from_millis(1), Leave::Preempted);
//! assert_eq!(record.preemption(), Preemption::Preempted);
//! record.enter(Nanos::from_millis(3), Nanos::from_millis(2));
//! assert_eq!(record.preemption(), Preemption::Running);
//! assert_eq!(record.steal(), Ok(Nanos::from_millis(2)));
//! ```
//!
//! # Guaranteed
//!
//! * Layouts are pinned at compile time: size, alignment and every offset.
//! * Reading ends: a record that keeps changing is a [`ReadError`] after
//!   [`READ_TRIES`] tries.
//! * Whatever a record says, a [`StealClock`] is monotonic and within wall time,
//!   a [`StealAccount`] neither loses nor invents steal, a [`StealEstimate`] is
//!   between 0 and 1000 permille, and a [`Belief`] ends.
//!
//! # Not guaranteed
//!
//! * That a host publishes what it advertises. `preempted` is a hint.

#![cfg_attr(not(test), no_std)]

mod account;
#[cfg(target_has_atomic = "64")]
pub mod arm;
mod belief;
mod clock;
mod error;
mod estimate;
mod fault;
mod field;
pub mod kvm_x86;
pub mod loongarch;
mod platform;
#[cfg(target_has_atomic = "64")]
pub mod power;
mod preempted;
mod record;
pub mod riscv;
#[cfg(target_has_atomic = "64")]
pub mod s390;
mod seq;
pub mod xen;

pub use account::{DEBT_BOUND, Split, StealAccount};
pub use belief::{Belief, SILENCE_HITS, Standing, TRUST_BOUND};
pub use clock::{CARRY_BOUND, Reading, StealClock};
pub use error::{ReadError, RegisterError};
pub use estimate::{HalfLife, StealEstimate};
pub use fault::{ClockFault, FaultCounts};
pub use platform::{Platform, UnknownPlatform};
pub use record::{GuestRecord, HostRecord, Leave, Preemption, RecordLayout, StealSource};
pub use seq::READ_TRIES;

/// The named memory orderings of this crate, for tools that weaken them.
#[cfg(pv_loom)]
pub mod sites {
    use pv_arch::sync::mutate::Site;

    /// All of them, by module.
    pub const ALL: &[&[Site]] = &[
        crate::seq::SITES,
        crate::kvm_x86::SITES,
        crate::arm::SITES,
        crate::preempted::SITES,
        crate::s390::SITES,
        crate::power::SITES,
        crate::xen::SITES,
    ];
}
