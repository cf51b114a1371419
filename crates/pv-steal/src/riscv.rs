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

record::pin_layout!(StealTime, 64 bytes, aligned to 64, {
    sequence @ 0,
    flags @ 4,
    steal @ 8,
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
mod tests;
