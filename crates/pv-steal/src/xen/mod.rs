//! Xen: `struct vcpu_runstate_info`.
//!
//! One record a vCPU: which of four states it is in, since when, and how long
//! it has been in each. Steal is the time in *runnable* and *offline*; only
//! *runnable* is preempted, and *blocked* (halted) is a state of its own, so
//! that the two are never mixed up. Source: the public header `xen/vcpu.h`.
//!
//! The record exists in two layouts: 64-bit guests have 48 bytes, 32-bit ones
//! 44, because `uint64_t` is only 4-aligned there.
//!
//! # States of the record
//!
//! A host that was asked to (always, if the record was registered by physical
//! address) sets bit 63 of `state_entry_time` before a transition and clears it
//! after. Two transitions never have the same entry time, so that a reader who
//! sees the same time without the bit before and after has a consistent record.
//! Where the time is read in two halves, the order of the halves matters; see
//! `word.rs`.

mod word;

#[cfg(all(test, not(pv_loom)))]
mod tests;

use pv_arch::sync::atomic::{AtomicU32, fence};
use pv_arch::sync::hint;
use pv_arch::{Arch, CpuId, GuestAddr, Nanos, PlatformCall, Reply};

use crate::record::{GuestRecord, HostRecord, Leave, Preemption, RecordLayout, StealSource};
use crate::seq::READ_TRIES;
use crate::{ReadError, RegisterError, record};
use word::{Packed, Time64, Word};

/// `VCPUOP_register_runstate_memory_area`: by virtual address.
pub const REGISTER_BY_VIRTUAL: u32 = 5;
/// `VCPUOP_register_runstate_phys_area`: by physical address, in which case
/// transitions are always marked.
pub const REGISTER_BY_PHYSICAL: u32 = 14;
/// `VMASST_TYPE_runstate_update_flag`: what a guest enables, by
/// `HYPERVISOR_vm_assist`, to have transitions marked in a record that is
/// registered by virtual address.
pub const ASSIST_MARK: u32 = 5;
/// The physical address that switches the record off.
pub const NO_AREA: u64 = u64::MAX;
/// `XEN_RUNSTATE_UPDATE`: bit 63 of `state_entry_time`, in a transition.
pub const UPDATE: u64 = 1 << 63;
/// `-EINVAL`: the address cannot hold a record.
pub const EINVAL: i64 = -22;
/// `-ENOSYS`: no such operation.
pub const ENOSYS: i64 = -38;

/// `RUNSTATE_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum State {
    /// On a physical CPU.
    Running = 0,
    /// Wants a physical CPU and has none.
    Runnable = 1,
    /// Halted by itself.
    Blocked = 2,
    /// Kept from running by something else than a lack of CPUs.
    Offline = 3,
}

impl State {
    const fn from_bits(bits: u32) -> Option<Self> {
        match bits {
            0 => Some(Self::Running),
            1 => Some(Self::Runnable),
            2 => Some(Self::Blocked),
            3 => Some(Self::Offline),
            _ => None,
        }
    }
}

pv_arch::orderings! {
    /// The first look at the entry time comes before the data.
    fn first_look = Acquire;
    /// The data itself is ordered by what stands around it.
    fn guarded = Relaxed;
    /// A fence: the data comes before the second look.
    fn before_second_look = Acquire;
    /// The second look: the high half comes before the low one.
    fn second_look = Acquire;
    /// The writer marks the transition; the fence after it orders the data.
    fn mark = Relaxed;
    /// A fence: the mark comes before the data.
    fn after_mark = Release;
    /// The data comes before the new entry time, its low half before its high.
    fn unmark = Release;
    /// What this writer wrote last itself.
    fn own = Relaxed;
    /// A hint, alone in its word.
    fn read_state = Relaxed;
    /// Done before the record is registered; the call orders it.
    fn prepare = Relaxed;
}

/// `struct vcpu_runstate_info` with times of type `W`: [`RunState64`] or
/// [`RunState32`].
#[derive(Debug)]
#[repr(C)]
pub struct RunState<W> {
    state: AtomicU32,
    state_entry_time: W,
    time: [W; 4],
}

/// The record of 64-bit guests: 48 bytes, 8-aligned.
pub type RunState64 = RunState<Time64>;
/// The record of 32-bit guests on x86: 44 bytes, 4-aligned.
pub type RunState32 = RunState<Packed>;

record::pin_layout!(RunState64, 48 bytes, aligned to 8, {
    state @ 0,
    state_entry_time @ 8,
    time @ 16,
});
record::pin_layout!(RunState32, 44 bytes, aligned to 4, {
    state @ 0,
    state_entry_time @ 4,
    time @ 12,
});

// SAFETY:
// 1. `repr(C)`; a `Time64` is one atomic of the shim, or two without
//    padding between them.
// 2. The assertions above hold size and alignment to `LAYOUT`.
unsafe impl GuestRecord for RunState64 {
    const LAYOUT: RecordLayout = RecordLayout {
        size: 48,
        align: 8,
        page: 4096,
    };
    const FIELDS: &'static [(&'static str, usize)] = record::fields!(state, state_entry_time, time);
}

// SAFETY:
// 1. `repr(C)`; a `Packed` is two atomics of the shim without padding.
// 2. The assertions above hold size and alignment to `LAYOUT`.
unsafe impl GuestRecord for RunState32 {
    const LAYOUT: RecordLayout = RecordLayout {
        size: 44,
        align: 4,
        page: 4096,
    };
    const FIELDS: &'static [(&'static str, usize)] = record::fields!(state, state_entry_time, time);
}

impl RunState64 {
    pv_arch::const_new! {
        /// A record as it must be before it is registered: all zero.
        pub fn new() -> Self {
            Self {
                state: AtomicU32::new(0),
                state_entry_time: Time64::new(),
                time: [Time64::new(), Time64::new(), Time64::new(), Time64::new()],
            }
        }
    }
}

impl RunState32 {
    pv_arch::const_new! {
        /// A record as it must be before it is registered: all zero.
        pub fn new() -> Self {
            Self {
                state: AtomicU32::new(0),
                state_entry_time: Packed::new(),
                time: [Packed::new(), Packed::new(), Packed::new(), Packed::new()],
            }
        }
    }
}

/// The guest's side.
impl<W: Word> RunState<W> {
    /// The state right now, a hint; `None` for a number that is no state.
    #[inline(always)]
    pub fn state(&self) -> Option<State> {
        State::from_bits(u32::from_le(self.state.load(read_state())))
    }

    /// Time spent so far in running, runnable, blocked and offline, not
    /// counting the present stay.
    pub fn times(&self) -> Result<[Nanos; 4], ReadError> {
        self.read(|| {
            let [running, runnable, blocked, offline] = &self.time;
            [running, runnable, blocked, offline].map(|time| Nanos::new(time.load(guarded())))
        })
    }

    /// Read consistently with `look`, which must load with [`guarded`].
    #[inline]
    fn read<T>(&self, look: impl Fn() -> T) -> Result<T, ReadError> {
        let mut entry = 0;
        for _ in 0..READ_TRIES {
            let before = self.state_entry_time.load(first_look());
            entry = before;
            if before & UPDATE == 0 || pv_arch::seeded_bug!("xen.ignore-update") {
                let value = look();
                fence(before_second_look());
                entry = self.state_entry_time.load_high_first(second_look());
                if entry == before || pv_arch::seeded_bug!("xen.no-second-look") {
                    return Ok(value);
                }
            }
            hint::relax_bounded();
        }
        Err(gave_up(entry))
    }

    /// A record that was in use before may say that this vCPU does not run.
    fn prepare(&self) {
        self.state.store(0, prepare());
    }
}

#[cold]
fn gave_up(entry: u64) -> ReadError {
    ReadError::InTransition {
        entry,
        tries: READ_TRIES,
    }
}

impl<W: Word> StealSource for RunState<W> {
    #[inline]
    fn steal(&self) -> Result<Nanos, ReadError> {
        let [_, runnable, _, offline] = self.times()?;
        Ok(runnable.plus(offline))
    }

    #[inline(always)]
    fn preemption(&self) -> Preemption {
        match self.state() {
            Some(State::Runnable) => Preemption::Preempted,
            Some(State::Running | State::Blocked | State::Offline) => Preemption::Running,
            None => Preemption::Unknown,
        }
    }
}

/// The host's side.
impl<W: Word> RunState<W> {
    /// The vCPU is in `state` from `now` on; the time since the last
    /// transition is added to the state that it was in.
    ///
    /// A mark left by a host that died is made good. Entry times are distinct:
    /// a transition without delay, or with a clock that went back, is taken to
    /// have happened a nanosecond after the one before.
    pub fn transition(&self, state: State, now: Nanos) {
        let before = self.state_entry_time.load(own()) & !UPDATE;
        let mut entry = (now.get() & !UPDATE).max(before.wrapping_add(1) & !UPDATE);
        if pv_arch::seeded_bug!("xen.same-entry-time") {
            entry = now.get() & !UPDATE;
        }
        // The first transition begins the account.
        let stay = if before == 0 {
            0
        } else {
            entry.saturating_sub(before)
        };
        let left = u32::from_le(self.state.load(own()));

        if pv_arch::seeded_bug!("xen.toggle-mark") {
            let found = self.state_entry_time.load(own());
            self.state_entry_time.store(found ^ UPDATE, mark());
        } else if !pv_arch::seeded_bug!("xen.no-mark") {
            self.state_entry_time.store(before | UPDATE, mark());
        }
        fence(after_mark());
        if !pv_arch::seeded_bug!("xen.keep-state") || state != State::Running {
            self.state.store((state as u32).to_le(), guarded());
        }
        if let Some(time) = self.time.get(left as usize) {
            let total = time.load(own()).wrapping_add(stay);
            time.store(total, guarded());
        }
        self.state_entry_time.store(entry, unmark());
    }
}

#[cfg(pv_loom)]
impl<W: Word> RunState<W> {
    /// Leave the record as a host does that dies in a transition: it is marked,
    /// and of the two times that make up steal one is written.
    pub fn die_in_transition(&self, runnable: Nanos) {
        let entry = self.state_entry_time.load(own());
        self.state_entry_time.store(entry | UPDATE, mark());
        self.time[State::Runnable as usize].store(runnable.get(), guarded());
    }
}

impl<W: Word> HostRecord for RunState<W> {
    /// Steal comes from the transitions; `steal` is not looked at.
    fn enter(&self, now: Nanos, _steal: Nanos) {
        self.transition(State::Running, now);
    }

    fn leave(&self, now: Nanos, why: Leave) {
        let state = match why {
            Leave::Preempted => State::Runnable,
            Leave::Halted | Leave::HaltedMarkedPreempted => State::Blocked,
            Leave::Offline => State::Offline,
        };
        self.transition(state, now);
    }

    fn wake(&self, now: Nanos) {
        self.transition(State::Runnable, now);
    }
}

/// The call that registers a record of type `R` at physical address `addr` for
/// `cpu`.
pub fn registration<R: GuestRecord>(
    cpu: CpuId,
    addr: GuestAddr,
) -> Result<PlatformCall, RegisterError> {
    R::LAYOUT.check(addr)?;
    Ok(call(REGISTER_BY_PHYSICAL, cpu, addr))
}

const fn call(op: u32, cpu: CpuId, area: GuestAddr) -> PlatformCall {
    PlatformCall::XenVcpuOp { op, cpu, area }
}

/// Register `record` for the calling vCPU: by physical address, and by virtual
/// address with a Xen that does not know the former (as of 4.17). Then
/// transitions are marked only if the guest has switched that on
/// (`VMASST_TYPE_runstate_update_flag`), and only the vCPU itself should read
/// the record. The state is cleared first: a record that was in use before may
/// be stale.
pub fn register<A: Arch, W>(record: &'static RunState<W>) -> Result<(), RegisterError>
where
    W: Word,
    RunState<W>: GuestRecord,
{
    let cpu = A::this_cpu();
    let addr = RunState::<W>::LAYOUT.locate::<A, _>(record)?;
    let call_physical = registration::<RunState<W>>(cpu, addr)?;
    let reply = record::begin_use(|| record.prepare(), || A::platform_call(call_physical));
    if reply.status != ENOSYS {
        return answer(addr, reply);
    }
    let area = GuestAddr::new(core::ptr::from_ref(record).addr() as u64);
    answer(area, A::platform_call(call(REGISTER_BY_VIRTUAL, cpu, area)))
}

/// Unregister the calling vCPU's record: before unplug, kexec or hibernation.
pub fn unregister<A: Arch, W: Word>(record: &'static RunState<W>) -> Result<(), RegisterError> {
    let cpu = A::this_cpu();
    let tell = || {
        let area = GuestAddr::new(NO_AREA);
        let reply = A::platform_call(call(REGISTER_BY_PHYSICAL, cpu, area));
        if reply.status != ENOSYS {
            return answer(area, reply);
        }
        let area = GuestAddr::new(0);
        answer(area, A::platform_call(call(REGISTER_BY_VIRTUAL, cpu, area)))
    };
    record::end_use(|| record.prepare(), tell)
}

fn answer(addr: GuestAddr, reply: Reply) -> Result<(), RegisterError> {
    match reply.status {
        0 => Ok(()),
        status => Err(RegisterError::Refused { addr, status }),
    }
}

/// Xen's reading of a vCPU operation about a record of type `R`: where it is
/// (a virtual address for [`REGISTER_BY_VIRTUAL`]), or `None` to switch it off.
/// The error is the status for the guest.
pub fn decode<R: GuestRecord>(op: u32, area: GuestAddr) -> Result<Option<GuestAddr>, i64> {
    match (op, area.get()) {
        (REGISTER_BY_PHYSICAL, NO_AREA) | (REGISTER_BY_VIRTUAL, 0) => Ok(None),
        (REGISTER_BY_PHYSICAL, _) => match R::LAYOUT.check(area) {
            Ok(()) => Ok(Some(area)),
            Err(_) => Err(EINVAL),
        },
        // Nothing is asked of a virtual address: Xen copies to it.
        (REGISTER_BY_VIRTUAL, _) => Ok(Some(area)),
        _ => Err(ENOSYS),
    }
}
