//! KVM on x86: `struct kvm_steal_time`.
//!
//! One record of 64 bytes a vCPU, at an address that the guest writes to a
//! model-specific register. Source: the installed header `asm/kvm_para.h` and
//! the kernel's document "KVM-specific MSRs" (`MSR_KVM_STEAL_TIME`).
//!
//! `steal` is under `version`; `preempted` is not: one byte, read alone.

use bitflags::bitflags;
use pv_arch::sync::atomic::{AtomicU8, AtomicU32};
use pv_arch::{Arch, GuestAddr, Nanos, PlatformCall, Reply};

use crate::field::GuardedU64;
use crate::record::{GuestRecord, HostRecord, Leave, Preemption, RecordLayout, StealSource};
use crate::{ReadError, RegisterError, record, seq};

/// `MSR_KVM_STEAL_TIME`.
pub const MSR_STEAL_TIME: u32 = 0x4b56_4d03;
/// Bit 0 of the register: the record is in use.
pub const MSR_ENABLE: u64 = 1;
/// Bits 1 to 5 of the register, which must be 0.
pub const MSR_RESERVED: u64 = 0x3e;
/// The signature of KVM in EBX, ECX, EDX of the base leaf.
pub const SIGNATURE: [u32; 3] = [0x4b4d_564b, 0x564b_4d56, 0x4d];
/// The first leaf at which a hypervisor may present itself.
pub const FIRST_LEAF: u32 = 0x4000_0000;
/// Hypervisors present themselves at leaves this far apart.
const LEAF_STEP: u32 = 0x100;
/// How many places to look for the signature in (up to leaf `0x4000_ff00`).
const LEAVES: u32 = 0x100;

bitflags! {
    /// Features that KVM offers: EAX of the base leaf plus 1.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Features: u32 {
        /// `KVM_FEATURE_STEAL_TIME`.
        const STEAL_TIME = 1 << 5;
        /// `KVM_FEATURE_PV_UNHALT`: halted vCPUs can be kicked.
        const PV_UNHALT = 1 << 7;
        /// `KVM_FEATURE_PV_TLB_FLUSH`.
        const PV_TLB_FLUSH = 1 << 9;
        /// `KVM_FEATURE_PV_SEND_IPI`.
        const PV_SEND_IPI = 1 << 11;
        /// `KVM_FEATURE_POLL_CONTROL`.
        const POLL_CONTROL = 1 << 12;
        /// `KVM_FEATURE_PV_SCHED_YIELD`.
        const PV_SCHED_YIELD = 1 << 13;
        const _ = !0;
    }
}

bitflags! {
    /// Hints that KVM gives: EDX of the base leaf plus 1.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Hints: u32 {
        /// `KVM_HINTS_REALTIME`: vCPUs are never preempted for long; do not
        /// use paravirtual locks.
        const REALTIME = 1 << 0;
        const _ = !0;
    }
}

bitflags! {
    /// The `preempted` byte.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct PreemptedFlags: u8 {
        /// `KVM_VCPU_PREEMPTED`: set by the host.
        const PREEMPTED = 1 << 0;
        /// `KVM_VCPU_FLUSH_TLB`: set by a guest for a preempted vCPU; the host
        /// flushes before it lets the vCPU run again.
        const FLUSH_TLB = 1 << 1;
        const _ = !0;
    }
}

pv_arch::orderings! {
    /// A hint, alone in its byte.
    fn read_preempted = Relaxed;
    /// The host sets the hint after the guest's code has stopped.
    fn set_preempted = Relaxed;
    /// The guest's page-table stores come before the flush request.
    fn request_flush = Release;
    /// The flush comes after the guest's page-table stores.
    fn take_requests = Acquire;
}

/// `struct kvm_steal_time`: 64 bytes, 64-aligned, one a vCPU.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct StealTime {
    steal: GuardedU64,
    version: AtomicU32,
    flags: AtomicU32,
    preempted: AtomicU8,
    pad: [AtomicU8; 3],
    pad2: [AtomicU32; 11],
}

record::pin_layout!(StealTime, 64 bytes, aligned to 64, {
    steal @ 0,
    version @ 8,
    flags @ 12,
    preempted @ 16,
    pad @ 17,
    pad2 @ 20,
});

// SAFETY:
// 1. `repr(C)`, and every field is made of atomics of the shim only.
// 2. The assertions above hold size and alignment to `LAYOUT`.
unsafe impl GuestRecord for StealTime {
    const LAYOUT: RecordLayout = RecordLayout {
        size: 64,
        align: 64,
        page: 4096,
    };
    const FIELDS: &'static [(&'static str, usize)] =
        record::fields!(steal, version, flags, preempted, pad, pad2);
}

/// What became of a request to flush a vCPU's TLB when it next runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushRequest {
    /// The host will flush before the vCPU runs: no interrupt is needed.
    Queued,
    /// The vCPU is not marked preempted: interrupt it.
    NotPreempted,
}

impl StealTime {
    pv_arch::const_new! {
        /// A record as it must be before it is registered: all zero.
        pub fn new() -> Self {
            Self {
                steal: GuardedU64::new(),
                version: AtomicU32::new(0),
                flags: AtomicU32::new(0),
                preempted: AtomicU8::new(0),
                pad: [AtomicU8::new(0), AtomicU8::new(0), AtomicU8::new(0)],
                pad2: [
                    AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0),
                    AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0),
                    AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0),
                ],
            }
        }
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

    #[inline(always)]
    fn preemption(&self) -> Preemption {
        let flags = PreemptedFlags::from_bits_retain(self.preempted.load(read_preempted()));
        if flags.contains(PreemptedFlags::PREEMPTED) {
            Preemption::Preempted
        } else {
            Preemption::Running
        }
    }
}

/// The guest's side, beyond reading.
impl StealTime {
    /// Ask the host to flush this vCPU's TLB before it next runs, if it is
    /// preempted. The caller's earlier page-table stores are visible to that
    /// flush (Release).
    #[inline]
    pub fn request_flush(&self) -> FlushRequest {
        let seen = self.preempted.load(read_preempted());
        if !PreemptedFlags::from_bits_retain(seen).contains(PreemptedFlags::PREEMPTED) {
            return FlushRequest::NotPreempted;
        }
        let asked = seen | PreemptedFlags::FLUSH_TLB.bits();
        if pv_arch::seeded_bug!("kvm_x86.flush-by-store") {
            self.preempted.store(asked, request_flush());
            return FlushRequest::Queued;
        }
        if pv_arch::seeded_bug!("kvm_x86.flush-asked-already") && asked == seen {
            return FlushRequest::Queued;
        }
        // A failure means that the vCPU came back, or that somebody else asked
        // at this moment; then an interrupt is right in the first case and
        // harmless in the second.
        match self
            .preempted
            .compare_exchange(seen, asked, request_flush(), read_preempted())
        {
            Ok(_) => FlushRequest::Queued,
            Err(_) => FlushRequest::NotPreempted,
        }
    }
}

impl HostRecord for StealTime {
    fn enter(&self, _now: Nanos, steal: Nanos) {
        if !pv_arch::seeded_bug!("kvm_x86.enter-keeps-preempted") {
            self.take_requests();
        }
        self.publish_steal(steal);
    }

    fn leave(&self, _now: Nanos, why: Leave) {
        if why.marks_preempted() {
            self.mark_preempted();
        }
    }
}

/// The host's side, in steps.
impl StealTime {
    /// Clear `preempted` and return what it was. If it contains
    /// [`PreemptedFlags::FLUSH_TLB`] the host must flush the vCPU's TLB before
    /// it lets it run; the requester's page-table stores are visible (Acquire).
    pub fn take_requests(&self) -> PreemptedFlags {
        if pv_arch::seeded_bug!("kvm_x86.take-by-store") {
            let found = self.preempted.load(take_requests());
            self.preempted.store(0, set_preempted());
            return PreemptedFlags::from_bits_retain(found);
        }
        PreemptedFlags::from_bits_retain(self.preempted.swap(0, take_requests()))
    }

    /// What an earlier use left is no longer true.
    fn forget_preempted(&self) {
        self.take_requests();
    }

    /// Set the flag and keep a flush that was asked for: a host may leave twice
    /// before it enters, and the first time is enough for a guest to ask.
    fn mark_preempted(&self) {
        let preempted = PreemptedFlags::PREEMPTED.bits();
        if pv_arch::seeded_bug!("kvm_x86.leave-by-store") {
            self.preempted.store(preempted, set_preempted());
            return;
        }
        self.preempted.fetch_or(preempted, set_preempted());
    }

    /// Publish the total steal time.
    pub fn publish_steal(&self, steal: Nanos) {
        seq::write(&self.version, || {
            self.steal.store(steal.get(), seq::guarded());
        });
    }
}

/// What KVM says of itself by CPUID; `None` where the host is not KVM.
///
/// The base leaf is searched for in steps of 0x100, since another interface may
/// come first.
pub fn detect<A: Arch>() -> Option<(Features, Hints)> {
    let cpuid = |leaf| A::platform_call(PlatformCall::Cpuid { leaf });
    let base = (0..LEAVES)
        .map(|n| FIRST_LEAF.wrapping_add(n.wrapping_mul(LEAF_STEP)))
        .find(|leaf| {
            let reply = cpuid(*leaf);
            let [_, ebx, ecx, edx] = reply.values;
            reply.status == 0 && [ebx, ecx, edx] == SIGNATURE.map(u64::from)
        })?;
    let [eax, _, _, edx] = cpuid(base.wrapping_add(1)).values.map(low_half);
    Some((
        Features::from_bits_retain(eax),
        Hints::from_bits_retain(edx),
    ))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "CPUID registers are 32 bits"
)]
const fn low_half(register: u64) -> u32 {
    register as u32
}

/// The call that registers a record at `addr` for the calling vCPU.
pub const fn registration(addr: GuestAddr) -> Result<PlatformCall, RegisterError> {
    match StealTime::LAYOUT.check(addr) {
        Ok(()) => Ok(PlatformCall::WriteMsr {
            index: MSR_STEAL_TIME,
            value: addr.get() | MSR_ENABLE,
        }),
        Err(error) => Err(error),
    }
}

/// Register `record` for the calling vCPU: checks the offer, the address and
/// the host's answer. `preempted` is cleared first: a record that was in use
/// before may be stale.
pub fn register<A: Arch>(record: &'static StealTime) -> Result<(), RegisterError> {
    let offered =
        detect::<A>().is_some_and(|(features, _)| features.contains(Features::STEAL_TIME));
    if !offered {
        return Err(RegisterError::NotOffered);
    }
    let addr = StealTime::LAYOUT.locate::<A, _>(record)?;
    let call = registration(addr)?;
    let reply = record::begin_use(|| record.forget_preempted(), || A::platform_call(call));
    answer(addr, reply)
}

/// Unregister the calling vCPU's record: before unplug, kexec or hibernation.
pub fn unregister<A: Arch>(record: &'static StealTime) -> Result<(), RegisterError> {
    let call = PlatformCall::WriteMsr {
        index: MSR_STEAL_TIME,
        value: 0,
    };
    let reply = record::end_use(|| record.forget_preempted(), || A::platform_call(call));
    answer(GuestAddr::new(0), reply)
}

fn answer(addr: GuestAddr, reply: Reply) -> Result<(), RegisterError> {
    match reply.status {
        0 => Ok(()),
        status => Err(RegisterError::Refused { addr, status }),
    }
}

/// A hypervisor's reading of the value that a guest wrote to
/// [`MSR_STEAL_TIME`]: the record's address, or `None` to switch it off. An
/// error is for the guest a general protection fault.
pub const fn decode_msr(value: u64) -> Result<Option<GuestAddr>, RegisterError> {
    if value & MSR_ENABLE == 0 {
        return Ok(None);
    }
    // The reserved bits are address bits below the alignment.
    let addr = GuestAddr::new(value & !MSR_ENABLE);
    match StealTime::LAYOUT.check(addr) {
        Ok(()) => Ok(Some(addr)),
        Err(error) => Err(error),
    }
}

#[cfg(all(test, not(pv_loom)))]
mod tests;
