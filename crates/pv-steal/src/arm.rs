//! Arm: paravirtualised time, the stolen-time structure.
//!
//! One record a vCPU, in memory that the **hypervisor** chooses and reports.
//! Source: Arm DEN0057 "Paravirtualized Time for Arm-based Systems" version A,
//! as described in the Linux document "Paravirtualized time support for arm64"
//! (16 bytes), and "Generic vcpu interface" (alignment of 64).
//!
//! There is no sequence: the counter is one aligned 64-bit word, which a guest
//! reads whole (only 64-bit guests have it). The record does not tell whether
//! the vCPU is preempted.

use bitflags::bitflags;
use pv_arch::sync::atomic::{AtomicU32, AtomicU64};
use pv_arch::{Arch, GuestAddr, Nanos, PlatformCall, Reply};

use crate::field::{Unused, zeros};
use crate::record::{GuestRecord, HostRecord, Leave, Preemption, RecordLayout, StealSource};
use crate::{ReadError, RegisterError, record};

/// `SMCCC_ARCH_FEATURES`: whether a function exists.
pub const ARCH_FEATURES: u32 = 0x8000_0001;
/// `PV_TIME_FEATURES`: whether a function of PV time exists.
pub const PV_TIME_FEATURES: u32 = 0xc500_0020;
/// `PV_TIME_ST`: where the calling vCPU's record is.
pub const PV_TIME_ST: u32 = 0xc500_0021;
/// Success.
pub const SUCCESS: i64 = 0;
/// `NOT_SUPPORTED`.
pub const NOT_SUPPORTED: i64 = -1;

bitflags! {
    /// The `attributes` field: none is defined, and it must be 0.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Attributes: u32 {
        const _ = !0;
    }
}

pv_arch::orderings! {
    /// A counter, alone in its word.
    fn read_stolen = Relaxed;
    /// The host publishes nothing beside the counter.
    fn write_stolen = Relaxed;
    /// Constant while the record is in use.
    fn read_revision = Relaxed;
}

/// The stolen-time structure: 64 bytes, 64-aligned, one a vCPU.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct StolenTime {
    revision: AtomicU32,
    attributes: AtomicU32,
    stolen: AtomicU64,
    pad: Unused<48>,
}

record::pin_layout!(StolenTime, 64 bytes, aligned to 64, {
    revision @ 0,
    attributes @ 4,
    stolen @ 8,
    pad @ 16,
});

// SAFETY:
// 1. `repr(C)`, and every field is made of atomics of the shim only.
// 2. The assertions above hold size and alignment to `LAYOUT`.
unsafe impl GuestRecord for StolenTime {
    const LAYOUT: RecordLayout = RecordLayout {
        size: 64,
        align: 64,
        // 64 bytes that are 64-aligned cannot cross a page.
        page: 0,
    };
    const FIELDS: &'static [(&'static str, usize)] =
        record::fields!(revision, attributes, stolen, pad);
}

impl StolenTime {
    pv_arch::const_new! {
        /// A record of revision 0 as a hypervisor lays it out: all zero.
        pub fn new() -> Self {
            Self {
                revision: AtomicU32::new(0),
                attributes: AtomicU32::new(0),
                stolen: AtomicU64::new(0),
                pad: zeros!(48),
            }
        }
    }

    /// Whether the mapped record is of a revision that this code reads.
    pub fn check_revision(&self) -> Result<(), RegisterError> {
        let revision = u32::from_le(self.revision.load(read_revision()));
        let attributes = u32::from_le(self.attributes.load(read_revision()));
        if revision == 0 && attributes == 0 {
            return Ok(());
        }
        Err(RegisterError::UnknownRevision {
            revision,
            attributes,
        })
    }
}

impl StealSource for StolenTime {
    #[inline(always)]
    fn steal(&self) -> Result<Nanos, ReadError> {
        let stolen = self.stolen.load(read_stolen());
        Ok(Nanos::new(u64::from_le(stolen)))
    }

    #[inline(always)]
    fn preemption(&self) -> Preemption {
        Preemption::Unknown
    }
}

impl HostRecord for StolenTime {
    fn enter(&self, _now: Nanos, steal: Nanos) {
        if pv_arch::seeded_bug!("arm.write-in-halves") {
            let old = u64::from_le(self.stolen.load(write_stolen()));
            let mixed = old >> 32 << 32 | steal.get() & u64::from(u32::MAX);
            self.stolen.store(mixed.to_le(), write_stolen());
        }
        self.stolen.store(steal.get().to_le(), write_stolen());
    }

    fn leave(&self, _now: Nanos, _why: Leave) {}
}

/// The call that asks where the calling vCPU's record is.
pub const fn registration() -> PlatformCall {
    call(PV_TIME_ST, 0)
}

const fn call(function: u32, arg: u64) -> PlatformCall {
    PlatformCall::Smccc { function, arg }
}

/// Ask for the calling vCPU's record: where the hypervisor put it. The kernel
/// maps the 64 bytes there (normal, write-back, inner shareable memory) and
/// then calls [`StolenTime::check_revision`].
///
/// There is no call to unregister: the kernel unmaps the record and stops
/// reading it.
pub fn register<A: Arch>() -> Result<GuestAddr, RegisterError> {
    let has = |function, arg: u32| {
        signed(A::platform_call(call(function, u64::from(arg)))).is_some_and(|x0| x0 >= SUCCESS)
    };
    if !has(ARCH_FEATURES, PV_TIME_FEATURES) || !has(PV_TIME_FEATURES, PV_TIME_ST) {
        return Err(RegisterError::NotOffered);
    }
    let reply = A::platform_call(registration());
    let addr = GuestAddr::new(reply.values[0]);
    match signed(reply) {
        Some(NOT_SUPPORTED) | None => Err(RegisterError::NotOffered),
        Some(_) => StolenTime::LAYOUT.check(addr).map(|()| addr),
    }
}

/// X0 as a signed number; `None` where there is no SMCCC at all.
fn signed(reply: Reply) -> Option<i64> {
    let x0 = i64::from_ne_bytes(reply.values[0].to_ne_bytes());
    (reply.status == 0).then_some(x0)
}

/// What a hypervisor with a record at `record` for the calling vCPU (`None` =
/// without one) answers to an SMCCC call about PV time.
pub fn host_reply(function: u32, arg: u64, record: Option<GuestAddr>) -> Reply {
    let known = |functions: &[u32]| functions.iter().any(|known| u64::from(*known) == arg);
    let status = |x0: i64| u64::from_ne_bytes(x0.to_ne_bytes());
    let x0 = match (function, record) {
        (ARCH_FEATURES, Some(_)) if known(&[PV_TIME_FEATURES]) => status(SUCCESS),
        (PV_TIME_FEATURES, Some(_)) if known(&[PV_TIME_FEATURES, PV_TIME_ST]) => status(SUCCESS),
        (PV_TIME_ST, Some(addr)) => addr.get(),
        _ => status(NOT_SUPPORTED),
    };
    Reply::value(x0)
}

#[cfg(all(test, not(pv_loom)))]
mod tests {
    use pv_arch::CpuId;
    use pv_arch::mock::{Machine, MockArch};
    use pv_arch::sync::atomic::Ordering::Relaxed;

    use super::*;

    fn registered_with(record: Option<GuestAddr>) -> Result<GuestAddr, RegisterError> {
        let machine = Machine::new(1);
        machine.on_call(move |_, call| match call {
            PlatformCall::Smccc { function, arg } => host_reply(function, arg, record),
            _ => Reply::REFUSED,
        });
        let _cpu = machine.bind(CpuId::BOOT);
        register::<MockArch>()
    }

    #[test]
    fn the_hypervisor_chooses_the_address() {
        let addr = GuestAddr::new(0x4fff_0040);
        assert_eq!(registered_with(Some(addr)), Ok(addr));
        assert_eq!(
            registration(),
            PlatformCall::Smccc {
                function: 0xc500_0021,
                arg: 0
            }
        );
    }

    #[test]
    fn an_address_that_no_record_can_have_is_refused() {
        let addr = GuestAddr::new(0x4fff_0020);
        assert_eq!(
            registered_with(Some(addr)),
            Err(RegisterError::Misaligned { addr, align: 64 })
        );
    }

    #[test]
    fn a_hypervisor_without_pv_time_does_not_offer_it() {
        assert_eq!(registered_with(None), Err(RegisterError::NotOffered));
    }

    #[test]
    fn a_machine_without_smccc_does_not_offer_it() {
        let machine = Machine::new(1);
        let _cpu = machine.bind(CpuId::BOOT);
        assert_eq!(register::<MockArch>(), Err(RegisterError::NotOffered));
    }

    #[test]
    fn a_record_of_the_future_is_not_read() {
        let record = StolenTime::new();
        assert_eq!(record.check_revision(), Ok(()));
        record.revision.store(2_u32.to_le(), Relaxed);
        record.attributes.store(4_u32.to_le(), Relaxed);
        let error = RegisterError::UnknownRevision {
            revision: 2,
            attributes: 4,
        };
        assert_eq!(record.check_revision(), Err(error));
    }

    #[test]
    fn steal_is_told_and_preemption_is_not() {
        let record = StolenTime::new();
        record.leave(Nanos::ZERO, Leave::Preempted);
        assert_eq!(record.preemption(), Preemption::Unknown);
        assert!(!record.is_preempted());
        record.enter(Nanos::new(9), Nanos::new(0x1_0000_0007));
        assert_eq!(record.steal(), Ok(Nanos::new(0x1_0000_0007)));
    }
}
