//! KVM on `LoongArch`: `struct kvm_steal_time`.
//!
//! One record of 64 bytes a vCPU, at an address that the guest passes in a
//! hypercall. Sources: the Linux headers `asm/kvm_para.h` and
//! `uapi/asm/kvm_para.h` of the architecture, and the public patches that
//! added the record (2024) and its `preempted` byte (2025).
//!
//! `steal` is under `version`; `preempted` is not. Hosts publish `preempted`
//! only if they offer [`Features::PREEMPT`]; on the others the byte is padding
//! that stays 0. A set bit therefore always means preempted; a clear one means
//! running only to somebody who knows the features.

use core::fmt;

use bitflags::bitflags;
use pv_arch::sync::atomic::AtomicU32;
use pv_arch::{Arch, GuestAddr, Nanos, PlatformCall, Reply};

use crate::field::{GuardedU64, Unused, zeros};
use crate::preempted::PreemptedByte;
use crate::record::{GuestRecord, HostRecord, Leave, Preemption, RecordLayout, StealSource};
use crate::{ReadError, RegisterError, record, seq};

/// `CPUCFG_KVM_SIG`: the configuration word that holds the signature.
pub const CPUCFG_SIGNATURE: u32 = 0x4000_0000;
/// `CPUCFG_KVM_FEATURE`: the configuration word that holds the features.
pub const CPUCFG_FEATURES: u32 = 0x4000_0004;
/// "KVM" and a zero byte.
pub const SIGNATURE: u32 = u32::from_le_bytes(*b"KVM\0");
/// `KVM_HCALL_SERVICE`: the code of the hypercall instruction.
pub const SERVICE: u16 = 0x100;
/// `KVM_HCALL_FUNC_NOTIFY`: tell the host where something is.
pub const FUNC_NOTIFY: u64 = 2;
/// What a notification names the record by: the feature as a bit.
pub const NOTIFY_STEAL_TIME: u64 = Features::STEAL_TIME.bits() as u64;
/// The same as a number, for hosts that understand only that.
pub const NOTIFY_STEAL_TIME_NUMBER: u64 = 2;
/// `KVM_STEAL_PHYS_VALID`: the record is in use.
pub const PHYS_VALID: u64 = 1;
/// `KVM_STEAL_PHYS_MASK`: bits 63 to 6 are the address.
pub const PHYS_MASK: u64 = !0x3f;

bitflags! {
    /// The features word ([`CPUCFG_FEATURES`]).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Features: u32 {
        /// `KVM_FEATURE_IPI`.
        const IPI = 1 << 1;
        /// `KVM_FEATURE_STEAL_TIME`.
        const STEAL_TIME = 1 << 2;
        /// `KVM_FEATURE_PREEMPT`: `preempted` is published.
        const PREEMPT = 1 << 3;
        const _ = !0;
    }
}

bitflags! {
    /// The `preempted` byte.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct PreemptedFlags: u8 {
        /// `KVM_VCPU_PREEMPTED`.
        const PREEMPTED = 1 << 0;
        const _ = !0;
    }
}

/// What a host answers when it refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HypercallError {
    /// `KVM_HCALL_INVALID_CODE`: no such service, function or feature.
    InvalidCode,
    /// `KVM_HCALL_INVALID_PARAMETER`: bits that must be 0 are not.
    InvalidParameter,
}

impl HypercallError {
    /// The number in `a0`.
    pub const fn code(self) -> i64 {
        match self {
            Self::InvalidCode => -1,
            Self::InvalidParameter => -2,
        }
    }
}

impl fmt::Display for HypercallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoongArch hypercall error {}: {self:?}", self.code())
    }
}

impl core::error::Error for HypercallError {}

/// `struct kvm_steal_time`: 64 bytes, 64-aligned, one a vCPU.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct StealTime {
    steal: GuardedU64,
    version: AtomicU32,
    flags: AtomicU32,
    preempted: PreemptedByte,
    pad: Unused<47>,
}

record::pin_layout!(StealTime, 64 bytes, aligned to 64, {
    steal @ 0,
    version @ 8,
    flags @ 12,
    preempted @ 16,
    pad @ 17,
});

// SAFETY:
// 1. `repr(C)`, and every field is made of atomics of the shim only.
// 2. The assertions above hold size and alignment to `LAYOUT`.
unsafe impl GuestRecord for StealTime {
    const LAYOUT: RecordLayout = RecordLayout {
        size: 64,
        align: 64,
        // 64 bytes that are 64-aligned cannot cross a page.
        page: 0,
    };
    const FIELDS: &'static [(&'static str, usize)] =
        record::fields!(steal, version, flags, preempted, pad);
}

impl StealTime {
    pv_arch::const_new! {
        /// A record as it must be before it is registered: all zero.
        pub fn new() -> Self {
            Self {
                steal: GuardedU64::new(),
                version: AtomicU32::new(0),
                flags: AtomicU32::new(0),
                preempted: PreemptedByte::new(),
                pad: zeros!(47),
            }
        }
    }

    /// Whether the vCPU is preempted, on a host with these `features`.
    #[inline(always)]
    pub fn preemption_under(&self, features: Features) -> Preemption {
        if self.is_marked() {
            Preemption::Preempted
        } else if features.contains(Features::PREEMPT) {
            Preemption::Running
        } else {
            Preemption::Unknown
        }
    }

    #[inline(always)]
    fn is_marked(&self) -> bool {
        PreemptedFlags::from_bits_retain(self.preempted.get()).contains(PreemptedFlags::PREEMPTED)
    }
}

#[cfg(pv_loom)]
impl StealTime {
    /// A record as a host leaves it that dies in the middle of its first update:
    /// the version is odd, and half of `steal` is written.
    pub fn died_in_update(steal: Nanos) -> Self {
        let record = Self::new();
        seq::die_in_update(&record.version, &record.steal, steal.get());
        record
    }
}

impl StealSource for StealTime {
    #[inline]
    fn steal(&self) -> Result<Nanos, ReadError> {
        seq::read(&self.version, || {
            Nanos::new(self.steal.load(seq::guarded()))
        })
    }

    /// A clear bit is [`Preemption::Unknown`] here;
    /// [`preemption_under`](StealTime::preemption_under) knows more.
    #[inline(always)]
    fn preemption(&self) -> Preemption {
        self.preemption_under(Features::empty())
    }
}

impl HostRecord for StealTime {
    fn enter(&self, _now: Nanos, steal: Nanos) {
        self.preempted.enter();
        seq::write(&self.version, || {
            self.steal.store(steal.get(), seq::guarded());
        });
    }

    fn leave(&self, _now: Nanos, why: Leave) {
        self.preempted.leave(why, PreemptedFlags::PREEMPTED.bits());
    }
}

/// What KVM says of itself; `None` where the host is not KVM.
pub fn detect<A: Arch>() -> Option<Features> {
    let word = |word| {
        let reply = A::platform_call(PlatformCall::Cpucfg { word });
        (reply.status == 0).then_some(reply.values[0])
    };
    if word(CPUCFG_SIGNATURE)? != u64::from(SIGNATURE) {
        return None;
    }
    let features = u32::try_from(word(CPUCFG_FEATURES)?).ok()?;
    Some(Features::from_bits_retain(features))
}

/// The call that registers a record at `addr` for the calling vCPU.
pub const fn registration(addr: GuestAddr) -> Result<PlatformCall, RegisterError> {
    match StealTime::LAYOUT.check(addr) {
        Ok(()) => Ok(notify(NOTIFY_STEAL_TIME, addr.get() | PHYS_VALID)),
        Err(error) => Err(error),
    }
}

const fn notify(feature: u64, data: u64) -> PlatformCall {
    PlatformCall::LoongArchHypercall {
        service: SERVICE,
        function: FUNC_NOTIFY,
        args: [feature, data],
    }
}

/// Register `record` for the calling vCPU: checks the offer, the address and
/// the host's answer, and returns what the host offers (for
/// [`StealTime::preemption_under`]). `preempted` is cleared first: a record
/// that was in use before may be stale.
pub fn register<A: Arch>(record: &'static StealTime) -> Result<Features, RegisterError> {
    let features = detect::<A>()
        .filter(|features| features.contains(Features::STEAL_TIME))
        .ok_or(RegisterError::NotOffered)?;
    let addr = StealTime::LAYOUT.locate::<A, _>(record)?;
    record::begin_use(
        || record.preempted.forget(),
        || tell::<A>(addr, addr.get() | PHYS_VALID),
    )?;
    Ok(features)
}

/// Unregister the calling vCPU's record: before unplug, kexec or hibernation.
pub fn unregister<A: Arch>(record: &'static StealTime) -> Result<(), RegisterError> {
    record::end_use(
        || record.preempted.forget(),
        || tell::<A>(GuestAddr::new(0), 0),
    )
}

/// Notify the host by the feature's bit, and by its number where the host does
/// not know the bit.
fn tell<A: Arch>(addr: GuestAddr, data: u64) -> Result<(), RegisterError> {
    let tell = |feature| -> Reply { A::platform_call(notify(feature, data)) };
    let mut reply = tell(NOTIFY_STEAL_TIME);
    if reply.status == HypercallError::InvalidCode.code() {
        reply = tell(NOTIFY_STEAL_TIME_NUMBER);
    }
    match reply.status {
        0 => Ok(()),
        status => Err(RegisterError::Refused { addr, status }),
    }
}

/// A host's reading of the arguments of [`FUNC_NOTIFY`]: the record's address,
/// or `None` to switch it off.
pub const fn decode(args: [u64; 2]) -> Result<Option<GuestAddr>, HypercallError> {
    let [feature, data] = args;
    if feature != NOTIFY_STEAL_TIME && feature != NOTIFY_STEAL_TIME_NUMBER {
        return Err(HypercallError::InvalidCode);
    }
    if data & !(PHYS_MASK | PHYS_VALID) != 0 {
        return Err(HypercallError::InvalidParameter);
    }
    if data & PHYS_VALID == 0 {
        return Ok(None);
    }
    Ok(Some(GuestAddr::new(data & PHYS_MASK)))
}

#[cfg(all(test, not(pv_loom)))]
mod tests;
