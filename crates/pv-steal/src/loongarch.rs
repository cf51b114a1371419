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

#[cfg(not(pv_loom))]
mod layout {
    use core::mem::offset_of;

    use static_assertions::{assert_eq_align, assert_eq_size, const_assert_eq};

    use super::StealTime;

    #[repr(align(64))]
    struct Line(#[allow(dead_code)] [u8; 64]);

    assert_eq_size!(StealTime, [u8; 64]);
    assert_eq_align!(StealTime, Line);
    const_assert_eq!(offset_of!(StealTime, steal), 0);
    const_assert_eq!(offset_of!(StealTime, version), 8);
    const_assert_eq!(offset_of!(StealTime, flags), 12);
    const_assert_eq!(offset_of!(StealTime, preempted), 16);
    const_assert_eq!(offset_of!(StealTime, pad), 17);
}

// SAFETY:
// 1. `repr(C)`, and every field is an atomic of the shim, or an array of them.
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
mod tests {
    use pv_arch::CpuId;
    use pv_arch::mock::{Machine, MockArch, What};
    use pv_arch::sync::atomic::Ordering::Relaxed;

    use super::*;

    const ADDR: GuestAddr = GuestAddr::new(0x9000_0fc0);

    /// A KVM host with `features`, which knows records only by `feature`.
    fn kvm(call: PlatformCall, features: Features, known: u64) -> Reply {
        match call {
            PlatformCall::Cpucfg { word: 0x4000_0000 } => Reply::value(0x004d_564b),
            PlatformCall::Cpucfg { word: 0x4000_0004 } => Reply::value(features.bits().into()),
            PlatformCall::LoongArchHypercall {
                service: 0x100,
                function: 2,
                args,
            } if args[0] == known => match decode(args) {
                Ok(_) => Reply::status(0),
                Err(error) => Reply::status(error.code()),
            },
            _ => Reply::status(HypercallError::InvalidCode.code()),
        }
    }

    fn notified(machine: &Machine) -> Vec<[u64; 2]> {
        let log = machine.take_log();
        log.iter()
            .filter_map(|event| match event.what {
                What::Called(PlatformCall::LoongArchHypercall { args, .. }) => Some(args),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn registration_passes_the_feature_as_a_bit_and_unregistration_0() {
        static RECORD: StealTime = StealTime::new();
        let machine = Machine::new(1);
        machine.on_call(|_, call| kvm(call, Features::STEAL_TIME, 4));
        machine.map((&raw const RECORD).cast(), 64, ADDR);
        let _cpu = machine.bind(CpuId::BOOT);
        RECORD.leave(Nanos::ZERO, Leave::Preempted);
        assert_eq!(register::<MockArch>(&RECORD), Ok(Features::STEAL_TIME));
        assert_eq!(notified(&machine), [[4, 0x9000_0fc1]]);
        assert!(!RECORD.is_preempted(), "a stale hint is cleared");
        RECORD.leave(Nanos::ZERO, Leave::Preempted);
        assert_eq!(unregister::<MockArch>(&RECORD), Ok(()));
        assert_eq!(notified(&machine), [[4, 0]]);
        assert!(!RECORD.is_preempted(), "a stale hint is cleared");
    }

    #[test]
    fn a_host_that_knows_only_the_number_is_told_by_number() {
        static RECORD: StealTime = StealTime::new();
        let machine = Machine::new(1);
        machine.on_call(|_, call| kvm(call, Features::STEAL_TIME, 2));
        machine.map((&raw const RECORD).cast(), 64, ADDR);
        let _cpu = machine.bind(CpuId::BOOT);
        assert!(register::<MockArch>(&RECORD).is_ok());
        assert_eq!(notified(&machine), [[4, 0x9000_0fc1], [2, 0x9000_0fc1]]);
    }

    #[test]
    fn a_host_without_the_feature_does_not_offer_it() {
        static RECORD: StealTime = StealTime::new();
        let machine = Machine::new(1);
        machine.on_call(|_, call| kvm(call, Features::IPI, 4));
        let _cpu = machine.bind(CpuId::BOOT);
        let refused = Err(RegisterError::NotOffered);
        assert_eq!(register::<MockArch>(&RECORD), refused);
    }

    #[test]
    fn a_refusal_carries_address_and_status() {
        static RECORD: StealTime = StealTime::new();
        let machine = Machine::new(1);
        machine.on_call(|_, call| kvm(call, Features::STEAL_TIME, 99));
        machine.map((&raw const RECORD).cast(), 64, ADDR);
        let _cpu = machine.bind(CpuId::BOOT);
        assert_eq!(
            register::<MockArch>(&RECORD),
            Err(RegisterError::Refused {
                addr: ADDR,
                status: -1
            })
        );
    }

    #[test]
    fn a_misaligned_address_is_named() {
        let addr = GuestAddr::new(0x9000_0fe0);
        assert_eq!(
            registration(addr),
            Err(RegisterError::Misaligned { addr, align: 64 })
        );
    }

    #[test]
    fn the_host_takes_bit_and_number_and_refuses_other_bits() {
        assert_eq!(decode([4, 0x9000_0fc1]), Ok(Some(ADDR)));
        assert_eq!(decode([2, 0x9000_0fc1]), Ok(Some(ADDR)));
        assert_eq!(decode([4, 0x9000_0fc0]), Ok(None));
        assert_eq!(decode([8, 0x9000_0fc1]), Err(HypercallError::InvalidCode));
        for bit in 1..6 {
            let data = 0x9000_0fc1 | 1 << bit;
            assert_eq!(decode([4, data]), Err(HypercallError::InvalidParameter));
        }
    }

    #[test]
    fn a_clear_bit_means_running_only_where_the_bit_is_published() {
        let record = StealTime::new();
        let with = Features::STEAL_TIME | Features::PREEMPT;
        assert_eq!(record.preemption_under(with), Preemption::Running);
        let without = Features::STEAL_TIME;
        assert_eq!(record.preemption_under(without), Preemption::Unknown);
        assert_eq!(record.preemption(), Preemption::Unknown);
        record.leave(Nanos::ZERO, Leave::Preempted);
        assert_eq!(record.preemption(), Preemption::Preempted);
        assert_eq!(record.preemption_under(with), Preemption::Preempted);
    }

    #[test]
    fn only_bit_0_means_preempted() {
        let record = StealTime::new();
        record.preempted.leave(Leave::Preempted, 0xfe);
        assert!(!record.is_preempted());
    }

    #[test]
    fn entering_publishes_steal_and_clears_the_hint() {
        let record = StealTime::new();
        record.leave(Nanos::ZERO, Leave::Preempted);
        record.enter(Nanos::new(9), Nanos::new(8));
        assert_eq!(record.steal(), Ok(Nanos::new(8)));
        assert!(!record.is_preempted());
    }

    #[test]
    fn a_version_that_stays_odd_ends_the_read() {
        let record = StealTime::new();
        record.version.store(3_u32.to_le(), Relaxed);
        assert_eq!(
            record.steal(),
            Err(ReadError::StuckInUpdate {
                version: 3,
                tries: crate::READ_TRIES
            })
        );
    }
}
