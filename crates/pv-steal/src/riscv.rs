//! RISC-V: the steal-time accounting extension of the SBI.
//!
//! One record of 64 bytes a hart, at a physical address that the supervisor
//! passes in an SBI call. Source: "RISC-V Supervisor Binary Interface
//! Specification" 2.0, chapter 16 "Steal-time Accounting Extension".
//!
//! `steal` is under `sequence`; `preempted` is not: one byte, read alone, and
//! any value but 0 means preempted.

use core::fmt;

use bitflags::bitflags;
use pv_arch::sync::atomic::AtomicU32;
use pv_arch::{Arch, GuestAddr, Nanos, PlatformCall, Reply};

use crate::field::{GuardedU64, Unused, zeros};
use crate::preempted::PreemptedByte;
use crate::record::{GuestRecord, HostRecord, Leave, Preemption, RecordLayout, StealSource};
use crate::{ReadError, RegisterError, record, seq};

/// Extension identifier: `STA` in ASCII.
pub const EXTENSION: u32 = 0x0053_5441;
/// Function `sbi_steal_time_set_shmem`.
pub const SET_SHMEM: u32 = 0;
/// Both address arguments, to switch the record off: all ones.
pub const DISABLE: u64 = u64::MAX;
/// The base extension.
pub const BASE_EXTENSION: u32 = 0x10;
/// Function `sbi_probe_extension` of the base extension.
pub const PROBE_EXTENSION: u32 = 3;

bitflags! {
    /// The `flags` field of the record, and the `flags` argument of the call:
    /// none is defined yet.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Flags: u32 {
        const _ = !0;
    }
}

/// Errors that the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SbiError {
    /// `SBI_ERR_FAILED`.
    Failed,
    /// `SBI_ERR_NOT_SUPPORTED`.
    NotSupported,
    /// `SBI_ERR_INVALID_PARAM`: flags are not 0, or the address is misaligned.
    InvalidParam,
    /// `SBI_ERR_INVALID_ADDRESS`: no writable memory is there.
    InvalidAddress,
}

impl SbiError {
    /// The number in `a0`.
    pub const fn code(self) -> i64 {
        match self {
            Self::Failed => -1,
            Self::NotSupported => -2,
            Self::InvalidParam => -3,
            Self::InvalidAddress => -5,
        }
    }
}

impl fmt::Display for SbiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SBI error {}: {self:?}", self.code())
    }
}

impl core::error::Error for SbiError {}

/// Width of the supervisor's registers: it decides how an address is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Xlen {
    /// 32 bits.
    Rv32,
    /// 64 bits.
    Rv64,
}

impl Xlen {
    /// The width that this code was compiled for.
    pub const NATIVE: Self = if usize::BITS == 32 {
        Self::Rv32
    } else {
        Self::Rv64
    };

    /// All the bits of one register.
    const fn ones(self) -> u64 {
        match self {
            Self::Rv32 => u32::MAX as u64,
            Self::Rv64 => u64::MAX,
        }
    }
}

/// The shared memory structure: 64 bytes, 64-aligned, one a hart.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct StealTime {
    sequence: AtomicU32,
    flags: AtomicU32,
    steal: GuardedU64,
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
    const_assert_eq!(offset_of!(StealTime, sequence), 0);
    const_assert_eq!(offset_of!(StealTime, flags), 4);
    const_assert_eq!(offset_of!(StealTime, steal), 8);
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
        record::fields!(sequence, flags, steal, preempted, pad);
}

impl StealTime {
    pv_arch::const_new! {
        /// A record as the SBI leaves it after registration: all zero.
        pub fn new() -> Self {
            Self {
                sequence: AtomicU32::new(0),
                flags: AtomicU32::new(0),
                steal: GuardedU64::new(),
                preempted: PreemptedByte::new(),
                pad: zeros!(47),
            }
        }
    }
}

#[cfg(pv_loom)]
impl StealTime {
    /// A record as a host leaves it that dies in the middle of its first update:
    /// the sequence is odd, and half of `steal` is written.
    pub fn died_in_update(steal: Nanos) -> Self {
        let record = Self::new();
        seq::die_in_update(&record.sequence, &record.steal, steal.get());
        record
    }
}

impl StealSource for StealTime {
    #[inline]
    fn steal(&self) -> Result<Nanos, ReadError> {
        seq::read(&self.sequence, || {
            Nanos::new(self.steal.load(seq::guarded()))
        })
    }

    #[inline(always)]
    fn preemption(&self) -> Preemption {
        if self.preempted.get() == 0 {
            Preemption::Running
        } else {
            Preemption::Preempted
        }
    }
}

impl HostRecord for StealTime {
    fn enter(&self, _now: Nanos, steal: Nanos) {
        seq::write(&self.sequence, || {
            self.steal.store(steal.get(), seq::guarded());
        });
        self.preempted.enter();
    }

    fn leave(&self, _now: Nanos, why: Leave) {
        self.preempted.leave(why, 1);
    }
}

/// The call that registers a record at `addr` for the calling hart.
pub const fn registration(addr: GuestAddr) -> Result<PlatformCall, RegisterError> {
    registration_for(addr, Xlen::NATIVE)
}

/// [`registration`] for a supervisor with registers of `xlen`.
pub const fn registration_for(addr: GuestAddr, xlen: Xlen) -> Result<PlatformCall, RegisterError> {
    let (low, high) = match xlen {
        Xlen::Rv32 => (addr.get() & xlen.ones(), addr.get() >> 32),
        Xlen::Rv64 => (addr.get(), 0),
    };
    match StealTime::LAYOUT.check(addr) {
        Ok(()) => Ok(set_shmem(low, high)),
        Err(error) => Err(error),
    }
}

const fn set_shmem(low: u64, high: u64) -> PlatformCall {
    PlatformCall::Sbi {
        extension: EXTENSION,
        function: SET_SHMEM,
        args: [low, high, 0],
    }
}

/// Whether the SBI has the extension.
pub fn is_offered<A: Arch>() -> bool {
    let reply = A::platform_call(PlatformCall::Sbi {
        extension: BASE_EXTENSION,
        function: PROBE_EXTENSION,
        args: [u64::from(EXTENSION), 0, 0],
    });
    reply.status == 0 && reply.values[0] != 0
}

/// Register `record` for the calling hart: checks the offer, the address and
/// the SBI's answer. The SBI clears the record; `preempted` is cleared here
/// too, since a record that was in use before may be stale.
pub fn register<A: Arch>(record: &'static StealTime) -> Result<(), RegisterError> {
    if !is_offered::<A>() {
        return Err(RegisterError::NotOffered);
    }
    let addr = StealTime::LAYOUT.locate::<A, _>(record)?;
    let call = registration(addr)?;
    let reply = record::begin_use(|| record.preempted.forget(), || A::platform_call(call));
    answer(addr, reply)
}

/// Unregister the calling hart's record: before unplug, kexec or hibernation.
pub fn unregister<A: Arch>(record: &'static StealTime) -> Result<(), RegisterError> {
    let ones = Xlen::NATIVE.ones();
    let call = set_shmem(ones, ones);
    let reply = record::end_use(|| record.preempted.forget(), || A::platform_call(call));
    answer(GuestAddr::new(DISABLE), reply)
}

fn answer(addr: GuestAddr, reply: Reply) -> Result<(), RegisterError> {
    match reply.status {
        0 => Ok(()),
        status => Err(RegisterError::Refused { addr, status }),
    }
}

/// An SBI's reading of the arguments of [`SET_SHMEM`]: the record's address, or
/// `None` to switch it off. Whether memory is there is for the SBI to find out.
pub const fn decode(args: [u64; 3], xlen: Xlen) -> Result<Option<GuestAddr>, SbiError> {
    let [low, high, flags] = args;
    if flags != 0 {
        return Err(SbiError::InvalidParam);
    }
    let ones = xlen.ones();
    if low == ones && high == ones {
        return Ok(None);
    }
    if !GuestAddr::new(low).is_aligned(StealTime::LAYOUT.align) {
        return Err(SbiError::InvalidParam);
    }
    match xlen {
        Xlen::Rv32 if low <= ones && high <= ones => Ok(Some(GuestAddr::new(high << 32 | low))),
        Xlen::Rv64 if high == 0 => Ok(Some(GuestAddr::new(low))),
        _ => Err(SbiError::InvalidAddress),
    }
}

#[cfg(all(test, not(pv_loom)))]
mod tests {
    use pv_arch::CpuId;
    use pv_arch::mock::{Machine, MockArch, What};
    use pv_arch::sync::atomic::Ordering::Relaxed;

    use super::*;

    const ADDR: GuestAddr = GuestAddr::new(0x8020_0fc0);

    fn sbi(call: PlatformCall) -> Reply {
        match call {
            PlatformCall::Sbi {
                extension: 0x10,
                function: 3,
                args: [0x53_5441, ..],
            } => Reply::value(1),
            PlatformCall::Sbi {
                extension: EXTENSION,
                function: SET_SHMEM,
                args,
            } => match decode(args, Xlen::NATIVE) {
                Ok(_) => Reply::status(0),
                Err(error) => Reply::status(error.code()),
            },
            _ => Reply::status(SbiError::NotSupported.code()),
        }
    }

    #[test]
    fn registration_passes_the_address_and_unregistration_all_ones() {
        static RECORD: StealTime = StealTime::new();
        let machine = Machine::new(1);
        machine.on_call(|_, call| sbi(call));
        machine.map((&raw const RECORD).cast(), 64, ADDR);
        let _cpu = machine.bind(CpuId::BOOT);
        let wrote = |low, high| {
            What::Called(PlatformCall::Sbi {
                extension: 0x53_5441,
                function: 0,
                args: [low, high, 0],
            })
        };
        let last = || machine.log().last().unwrap().what;

        RECORD.leave(Nanos::ZERO, Leave::Preempted);
        assert_eq!(register::<MockArch>(&RECORD), Ok(()));
        assert_eq!(last(), wrote(0x8020_0fc0, 0));
        assert!(!RECORD.is_preempted(), "a stale hint is cleared");

        RECORD.leave(Nanos::ZERO, Leave::Preempted);
        assert_eq!(unregister::<MockArch>(&RECORD), Ok(()));
        assert_eq!(last(), wrote(u64::MAX, u64::MAX));
        assert!(!RECORD.is_preempted(), "a stale hint is cleared");
    }

    #[test]
    fn an_sbi_without_the_extension_does_not_offer_it() {
        static RECORD: StealTime = StealTime::new();
        let machine = Machine::new(1);
        let _cpu = machine.bind(CpuId::BOOT);
        assert_eq!(
            register::<MockArch>(&RECORD),
            Err(RegisterError::NotOffered)
        );
    }

    #[test]
    fn a_refusal_carries_address_and_status() {
        static RECORD: StealTime = StealTime::new();
        let machine = Machine::new(1);
        machine.on_call(|_, call| match call {
            PlatformCall::Sbi {
                extension: EXTENSION,
                ..
            } => Reply::status(SbiError::InvalidAddress.code()),
            other => sbi(other),
        });
        machine.map((&raw const RECORD).cast(), 64, ADDR);
        let _cpu = machine.bind(CpuId::BOOT);
        assert_eq!(
            register::<MockArch>(&RECORD),
            Err(RegisterError::Refused {
                addr: ADDR,
                status: -5
            })
        );
    }

    #[test]
    fn a_misaligned_address_is_named() {
        let addr = GuestAddr::new(0x8020_0fe0);
        assert_eq!(
            registration(addr),
            Err(RegisterError::Misaligned { addr, align: 64 })
        );
    }

    #[test]
    fn an_address_is_split_by_the_width_of_the_registers() {
        let addr = GuestAddr::new(0x3_4000_0040);
        for (xlen, low, high) in [(Xlen::Rv32, 0x4000_0040, 3), (Xlen::Rv64, 0x3_4000_0040, 0)] {
            assert_eq!(registration_for(addr, xlen), Ok(set_shmem(low, high)));
            assert_eq!(decode([low, high, 0], xlen), Ok(Some(addr)));
        }
    }

    #[test]
    fn the_sbi_answers_with_the_specified_errors() {
        let ones = u64::MAX;
        let rv64 = |args| decode(args, Xlen::Rv64);
        assert_eq!(rv64([ones, ones, 0]), Ok(None));
        assert_eq!(rv64([0x40, 0, 1]), Err(SbiError::InvalidParam));
        assert_eq!(rv64([ones, ones, 1]), Err(SbiError::InvalidParam));
        assert_eq!(rv64([0x41, 0, 0]), Err(SbiError::InvalidParam));
        assert_eq!(rv64([0x40, 1, 0]), Err(SbiError::InvalidAddress));
        // One half of all ones is an address, and a misaligned one.
        assert_eq!(rv64([ones, 0, 0]), Err(SbiError::InvalidParam));
        assert_eq!(
            decode([0xffff_ffff; 3].map(|x| x), Xlen::Rv32),
            Err(SbiError::InvalidParam)
        );
        assert_eq!(decode([0xffff_ffff, 0xffff_ffff, 0], Xlen::Rv32), Ok(None));
    }

    #[test]
    fn any_value_but_zero_means_preempted() {
        let record = StealTime::new();
        record.preempted.leave(Leave::Preempted, 0x80);
        assert!(record.is_preempted());
        record.enter(Nanos::ZERO, Nanos::new(5));
        assert_eq!(record.preemption(), Preemption::Running);
        assert_eq!(record.steal(), Ok(Nanos::new(5)));
    }

    #[test]
    fn a_halted_hart_is_not_preempted() {
        let record = StealTime::new();
        record.leave(Nanos::ZERO, Leave::Halted);
        assert!(!record.is_preempted());
    }

    #[test]
    fn a_sequence_that_stays_odd_ends_the_read() {
        let record = StealTime::new();
        record.sequence.store(7_u32.to_le(), Relaxed);
        assert_eq!(
            record.steal(),
            Err(ReadError::StuckInUpdate {
                version: 7,
                tries: crate::READ_TRIES
            })
        );
    }
}
