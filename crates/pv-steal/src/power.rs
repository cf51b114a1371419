//! POWER: the virtual processor area of shared-processor partitions.
//!
//! One big-endian record of at least 640 bytes a vCPU. Source: "Linux on Power
//! Architecture Reference" (`LoPAR`), section "Virtual Processor Areas" (table
//! "Per Virtual Processor Area") and section "`H_REGISTER_VPA`".
//!
//! * The *dispatch counter* is even while the vCPU runs, odd while it does not.
//!   A vCPU that ceded by itself is told from a preempted one by a byte that
//!   the guest sets before it cedes ([`VirtualProcessorArea::set_idle`]).
//! * Steal is the sum of two accumulators in ticks of the time base: the wait
//!   for capacity and the wait for a physical processor. Each is one aligned
//!   word that only grows, so a sum of two separate reads lies between the
//!   totals at its beginning and at its end: no protocol is needed. `LoPAR` warns
//!   of platforms that leave the accumulators at 0.

use bitflags::bitflags;
use pv_arch::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, fence};
use pv_arch::{Arch, CpuId, GuestAddr, Nanos, PlatformCall, Reply};

use crate::field::{Unused, zeros};
use crate::record::{GuestRecord, HostRecord, Leave, Preemption, RecordLayout, StealSource};
use crate::{ReadError, RegisterError, record};

/// Token of `H_REGISTER_VPA`.
pub const H_REGISTER_VPA: u64 = 0xdc;
/// Flags: register the area (sub-function 001 in bits 16 to 18, counted from
/// the most significant).
pub const REGISTER_VPA: u64 = 1 << 45;
/// Flags: deregister the area (sub-function 101).
pub const DEREGISTER_VPA: u64 = 5 << 45;
/// `H_Success`.
pub const H_SUCCESS: i64 = 0;
/// `H_Parameter`.
pub const H_PARAMETER: i64 = -4;
/// What the descriptor has been historically.
pub const DESCRIPTOR: u32 = 0xd397_d781;
/// The least size of an area, in bytes.
pub const MIN_SIZE: u16 = 640;
/// The size that is registered here: KVM before Linux 4.14 wants 1 KiB.
pub const SIZE: u16 = 1024;
/// Frequency of the time base on POWER7 and later. The device tree says what
/// it is on a given machine (`timebase-frequency`).
pub const TIMEBASE_HZ: u64 = 512_000_000;

bitflags! {
    /// The idle byte: the guest's own word on what it does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Idle: u8 {
        /// The guest is idle on this vCPU.
        const IDLE = 1 << 0;
        const _ = !0;
    }
}

pv_arch::orderings! {
    /// A counter alone in its word: for `H_CONFER`, and as a hint.
    fn read_dispatch = Relaxed;
    /// The first look at the counter comes before the idle marker.
    fn first_look = Acquire;
    /// The idle marker, ordered by what stands around it.
    fn read_idle = Relaxed;
    /// A fence: the idle marker comes before the second look.
    fn before_second_look = Acquire;
    /// The second look, ordered by the fence before it.
    fn second_look = Relaxed;
    /// The marker is set; the fence after it orders what follows.
    fn set_idle = Relaxed;
    /// A fence: the marker comes before the odd count. The counter is the
    /// host's, but of the CPU that cedes, so that its store comes after.
    fn after_idle = Release;
    /// The even count, with which the CPU came back, comes before the marker is
    /// cleared.
    fn clear_idle = Release;
    /// Accumulators that only grow; see the module's page.
    fn read_wait = Relaxed;
    /// The host's update of an accumulator.
    fn write_wait = Relaxed;
    /// The counter is the whole message: the guest's fences order the marker.
    fn count_dispatch = Relaxed;
    /// The counter that the host itself wrote last.
    fn own_dispatch = Relaxed;
    /// Set before the area is registered; the call orders it.
    fn prepare = Relaxed;
}

/// The virtual processor area: 640 architected bytes in 1024, so aligned that
/// it cannot cross a boundary of 4096, one a vCPU.
#[derive(Debug)]
#[repr(C, align(1024))]
pub struct VirtualProcessorArea {
    descriptor: AtomicU32,
    size: AtomicU16,
    reserved: Unused<0xf8>,
    idle: AtomicU8,
    maintain_vmx: AtomicU8,
    dispatch_counter: AtomicU32,
    dispatch_dispersion: AtomicU32,
    fault_counter: AtomicU64,
    fault_time: AtomicU64,
    purr_spurr: Unused<0x40>,
    wait_processor: AtomicU64,
    wait_capacity: AtomicU64,
    wait_ready: AtomicU64,
    reserved2: Unused<0xa8>,
    trace_log_index: AtomicU64,
    reserved3: Unused<0x60>,
    beyond: Unused<0x180>,
}

record::pin_layout!(VirtualProcessorArea, 1024 bytes, aligned to 1024, {
    descriptor @ 0,
    size @ 4,
    reserved @ 6,
    idle @ 0xfe,
    maintain_vmx @ 0xff,
    dispatch_counter @ 0x100,
    dispatch_dispersion @ 0x104,
    fault_counter @ 0x108,
    fault_time @ 0x110,
    purr_spurr @ 0x118,
    wait_processor @ 0x158,
    wait_capacity @ 0x160,
    wait_ready @ 0x168,
    reserved2 @ 0x170,
    trace_log_index @ 0x218,
    reserved3 @ 0x220,
    beyond @ 0x280,
});

// SAFETY:
// 1. `repr(C)`, and every field is made of atomics of the shim only.
// 2. The assertions above hold size and alignment to `LAYOUT`.
unsafe impl GuestRecord for VirtualProcessorArea {
    const LAYOUT: RecordLayout = RecordLayout {
        size: SIZE as usize,
        // A first-level cache line.
        align: 128,
        page: 4096,
    };
    const FIELDS: &'static [(&'static str, usize)] = record::fields!(
        descriptor,
        size,
        reserved,
        idle,
        maintain_vmx,
        dispatch_counter,
        dispatch_dispersion,
        fault_counter,
        fault_time,
        purr_spurr,
        wait_processor,
        wait_capacity,
        wait_ready,
        reserved2,
        trace_log_index,
        reserved3,
        beyond,
    );
}

impl VirtualProcessorArea {
    pv_arch::const_new! {
        /// An area as it must be before it is registered: zero but for its
        /// descriptor and size.
        pub fn new() -> Self {
            Self {
                descriptor: AtomicU32::new(DESCRIPTOR.to_be()),
                size: AtomicU16::new(SIZE.to_be()),
                reserved: zeros!(0xf8),
                idle: AtomicU8::new(0),
                maintain_vmx: AtomicU8::new(0),
                dispatch_counter: AtomicU32::new(0),
                dispatch_dispersion: AtomicU32::new(0),
                fault_counter: AtomicU64::new(0),
                fault_time: AtomicU64::new(0),
                purr_spurr: zeros!(0x40),
                wait_processor: AtomicU64::new(0),
                wait_capacity: AtomicU64::new(0),
                wait_ready: AtomicU64::new(0),
                reserved2: zeros!(0xa8),
                trace_log_index: AtomicU64::new(0),
                reserved3: zeros!(0x60),
                beyond: zeros!(0x180),
            }
        }
    }

    /// The dispatch counter: even while the vCPU runs. `H_CONFER` takes it, so
    /// that a caller does not give its time to a vCPU that ran meanwhile.
    #[inline(always)]
    pub fn dispatch_count(&self) -> u32 {
        u32::from_be(self.dispatch_counter.load(read_dispatch()))
    }

    /// The guest's own vCPU begins or ends to be idle: set before it cedes,
    /// cleared after it is back.
    #[inline]
    pub fn set_idle(&self, idle: bool) {
        if idle {
            self.idle.store(Idle::IDLE.bits(), set_idle());
            fence(after_idle());
        } else if !pv_arch::seeded_bug!("power.idle-stays") {
            self.idle.store(Idle::empty().bits(), clear_idle());
        }
    }

    /// What an earlier registration may have left is no longer true: the
    /// calling vCPU runs. The accumulators are the host's and stay.
    fn prepare(&self) {
        self.size.store(SIZE.to_be(), prepare());
        self.idle.store(Idle::empty().bits(), prepare());
        self.dispatch_counter.store(0, prepare());
    }

    /// Make the dispatch counter odd (`running` false) or even.
    fn count(&self, running: bool) {
        let found = u32::from_be(self.dispatch_counter.load(own_dispatch()));
        let is_even = found & 1 == 0;
        if is_even != running {
            let next = found.wrapping_add(1);
            self.dispatch_counter.store(next.to_be(), count_dispatch());
        }
    }
}

impl StealSource for VirtualProcessorArea {
    #[inline]
    fn steal(&self) -> Result<Nanos, ReadError> {
        let processor = u64::from_be(self.wait_processor.load(read_wait()));
        let capacity = u64::from_be(self.wait_capacity.load(read_wait()));
        Ok(nanos(processor.wrapping_add(capacity)))
    }

    /// A vCPU whose guest is idle counts as running, even if it waits for a
    /// processor after an interrupt: the record does not tell the two apart.
    ///
    /// Never [`Preemption::Preempted`] of a vCPU that only ceded: a guest that
    /// does not run does not change its idle marker, so the marker belongs to
    /// the odd count that was seen before and after it.
    #[inline(always)]
    fn preemption(&self) -> Preemption {
        let count = u32::from_be(self.dispatch_counter.load(first_look()));
        if count & 1 == 0 {
            return Preemption::Running;
        }
        let idle = Idle::from_bits_retain(self.idle.load(read_idle()));
        if idle.contains(Idle::IDLE) && !pv_arch::seeded_bug!("power.ignore-idle") {
            return Preemption::Running;
        }
        fence(before_second_look());
        let again = u32::from_be(self.dispatch_counter.load(second_look()));
        if again == count || pv_arch::seeded_bug!("power.no-second-look") {
            Preemption::Preempted
        } else {
            // It was dispatched meanwhile.
            Preemption::Running
        }
    }
}

impl HostRecord for VirtualProcessorArea {
    /// Attributes all steal to the wait for a physical processor.
    fn enter(&self, _now: Nanos, steal: Nanos) {
        let total = ticks(steal);
        if pv_arch::seeded_bug!("power.write-in-halves") {
            let old = u64::from_be(self.wait_processor.load(write_wait()));
            let mixed = old >> 32 << 32 | total & u64::from(u32::MAX);
            self.wait_processor.store(mixed.to_be(), write_wait());
        }
        self.wait_processor.store(total.to_be(), write_wait());
        if !pv_arch::seeded_bug!("power.enter-keeps-odd") {
            self.count(true);
        }
    }

    fn leave(&self, _now: Nanos, _why: Leave) {
        self.count(false);
    }
}

/// Ticks of the time base ([`TIMEBASE_HZ`]) as time, rounded down: 64 ticks are
/// 125 ns.
pub const fn nanos(ticks: u64) -> Nanos {
    let whole = (ticks / 64).saturating_mul(125);
    Nanos::new(whole.saturating_add(ticks % 64 * 125 / 64))
}

/// Time as ticks of the time base, rounded up, so that [`nanos`] of it is not less.
pub const fn ticks(time: Nanos) -> u64 {
    let ns = time.get();
    // At most 64/125 of the largest number: no overflow.
    ns / 125 * 64 + (ns % 125 * 64).div_ceil(125)
}

/// The call that registers an area at `addr` for `cpu`, by its number of the
/// partition.
pub const fn registration(cpu: CpuId, addr: GuestAddr) -> Result<PlatformCall, RegisterError> {
    match VirtualProcessorArea::LAYOUT.check(addr) {
        Ok(()) => Ok(call(REGISTER_VPA, cpu, addr)),
        Err(error) => Err(error),
    }
}

const fn call(flags: u64, cpu: CpuId, addr: GuestAddr) -> PlatformCall {
    PlatformCall::Papr {
        token: H_REGISTER_VPA,
        args: [flags, cpu.get() as u64, addr.get()],
    }
}

/// Register `area` for the calling vCPU: checks the address and the host's
/// answer. Idle marker and dispatch counter are cleared first: an area that was
/// in use before may be stale.
pub fn register<A: Arch>(area: &'static VirtualProcessorArea) -> Result<(), RegisterError> {
    let addr = VirtualProcessorArea::LAYOUT.locate::<A, _>(area)?;
    let call = registration(A::this_cpu(), addr)?;
    let reply = record::begin_use(|| area.prepare(), || A::platform_call(call));
    answer(addr, reply)
}

/// Deregister the calling vCPU's area: before unplug, kexec or hibernation.
///
/// The host leaves the counter odd; it is cleared, or the CPU would be taken
/// for preempted for ever.
pub fn unregister<A: Arch>(area: &'static VirtualProcessorArea) -> Result<(), RegisterError> {
    let none = GuestAddr::new(0);
    let call = call(DEREGISTER_VPA, A::this_cpu(), none);
    let reply = record::end_use(|| area.prepare(), || A::platform_call(call));
    answer(none, reply)
}

fn answer(addr: GuestAddr, reply: Reply) -> Result<(), RegisterError> {
    match reply.status {
        H_SUCCESS => Ok(()),
        status => Err(RegisterError::Refused { addr, status }),
    }
}

/// What a guest asked for with [`H_REGISTER_VPA`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Use the area at this address.
    Register {
        /// Whose area it is.
        cpu: CpuId,
        /// Where it is.
        addr: GuestAddr,
    },
    /// Use none.
    Deregister {
        /// Whose area it was.
        cpu: CpuId,
    },
}

/// A hypervisor's reading of the arguments of [`H_REGISTER_VPA`]. `size` is
/// what the guest has put in the field of that name of the area (byte 4). The
/// error is the status for the guest. Other areas than the virtual processor
/// area are not supported.
pub fn decode(args: [u64; 3], size: u16) -> Result<Request, i64> {
    let [flags, cpu, addr] = args;
    let cpu = CpuId::new(u32::try_from(cpu).map_err(|_| H_PARAMETER)?);
    let layout = RecordLayout {
        size: size.into(),
        ..VirtualProcessorArea::LAYOUT
    };
    match flags {
        REGISTER_VPA => {
            let addr = GuestAddr::new(addr);
            if size < MIN_SIZE || layout.check(addr).is_err() {
                return Err(H_PARAMETER);
            }
            Ok(Request::Register { cpu, addr })
        }
        DEREGISTER_VPA => Ok(Request::Deregister { cpu }),
        _ => Err(H_PARAMETER),
    }
}

#[cfg(all(test, not(pv_loom)))]
mod tests;
