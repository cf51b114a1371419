//! The two sides of a record, whatever its layout.

use pv_arch::{Arch, GuestAddr, Nanos};

use crate::{ReadError, RegisterError};

/// What a guest can learn: how long it was kept waiting, and whether it is now.
pub trait StealSource {
    /// Total time that this vCPU was runnable but not running, since an instant
    /// that only the host knows. Raw: it may jump or step back when the guest
    /// is migrated; [`crate::StealClock`] makes a clock of it.
    fn steal(&self) -> Result<Nanos, ReadError>;

    /// Whether the vCPU is kept waiting right now. A hint: stale either way.
    fn preemption(&self) -> Preemption;

    /// [`preemption`](Self::preemption) as the yes or no that a lock wants;
    /// not knowing is no.
    #[inline(always)]
    fn is_preempted(&self) -> bool {
        self.preemption() == Preemption::Preempted
    }
}

/// Whether a vCPU is kept waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Preemption {
    /// It runs, or has no wish to.
    Running,
    /// It wants to run and does not. (Some hosts also say so of a vCPU that
    /// halted by itself: KVM x86 until Linux 5.19.)
    Preempted,
    /// This record cannot tell.
    Unknown,
}

/// What a hypervisor does with a record. One host thread at a time writes a
/// given record.
pub trait HostRecord {
    /// The vCPU is about to run guest code, at host time `now`; it has been kept
    /// waiting for `steal` in all.
    fn enter(&self, now: Nanos, steal: Nanos);

    /// The vCPU, halted until now, wants to run again, at host time `now`.
    /// Records that do not tell a halted vCPU from a waiting one ignore it.
    fn wake(&self, now: Nanos) {
        let _ = now;
    }

    /// The vCPU stopped running guest code, at host time `now`.
    fn leave(&self, now: Nanos, why: Leave);
}

/// Why a vCPU left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leave {
    /// It was scheduled out while it wanted to run.
    Preempted,
    /// It halted, and this host publishes that as what it is.
    Halted,
    /// It halted, on a host that marks every vCPU which leaves its CPU as
    /// preempted (KVM x86 until Linux 5.19).
    HaltedMarkedPreempted,
    /// It was paused or unplugged by the host's administrator.
    Offline,
}

impl Leave {
    /// Whether a record that has only a `preempted` mark gets it.
    pub(crate) const fn marks_preempted(self) -> bool {
        match self {
            Self::Preempted | Self::HaltedMarkedPreempted => true,
            Self::Halted | Self::Offline => false,
        }
    }
}

/// Size, alignment and placement of a record in guest memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLayout {
    /// Bytes that the host may write.
    pub size: usize,
    /// The address must be a multiple of this.
    pub align: u64,
    /// The record must not cross a boundary of this many bytes; 0 = any.
    pub page: u64,
}

impl RecordLayout {
    /// Whether a record may be at `addr`.
    pub const fn check(&self, addr: GuestAddr) -> Result<(), RegisterError> {
        let len = self.size as u64;
        if !addr.is_aligned(self.align) {
            return Err(RegisterError::Misaligned {
                addr,
                align: self.align,
            });
        }
        if self.page != 0 && !addr.stays_in_page(len, self.page) {
            return Err(RegisterError::CrossesPage {
                addr,
                len,
                page: self.page,
            });
        }
        Ok(())
    }

    /// The checked guest-physical address of `record`, as the kernel `A` knows it.
    pub(crate) fn locate<A: Arch, R: GuestRecord>(
        &self,
        record: &'static R,
    ) -> Result<GuestAddr, RegisterError> {
        let object = core::ptr::from_ref(record).cast::<u8>();
        let addr =
            A::guest_addr(object, self.size).ok_or(RegisterError::NotMapped { len: self.size })?;
        self.check(addr)?;
        Ok(addr)
    }
}

/// Register a record: `tell` asks the host to use it. `forget` comes first,
/// because what an earlier use left is no longer true.
pub(crate) fn begin_use<T>(forget: impl FnOnce(), tell: impl FnOnce() -> T) -> T {
    if !pv_arch::seeded_bug!("record.register-keeps-mark") {
        forget();
    }
    tell()
}

/// Unregister a record: `tell` asks the host to stop using it. `forget` comes
/// last, because until it was told the host may write.
pub(crate) fn end_use<T>(forget: impl Fn(), tell: impl FnOnce() -> T) -> T {
    if pv_arch::seeded_bug!("record.forget-before-unregister") {
        forget();
        return tell();
    }
    let answer = tell();
    forget();
    answer
}

/// A record that lies in memory shared by guest and host.
///
/// # Safety
///
/// An implementor promises that
/// 1. it is `repr(C)` and all its fields are made of atomics of the shim only, so
///    that every byte pattern is valid and a concurrent write by the host is no
///    data race;
/// 2. [`LAYOUT`](Self::LAYOUT) gives its size, and an alignment that it has.
pub unsafe trait GuestRecord: Sized + Sync + 'static {
    /// Where it may lie.
    const LAYOUT: RecordLayout;

    /// Name and byte offset of every field, in the order of the layout.
    const FIELDS: &'static [(&'static str, usize)];
}

/// Write [`GuestRecord::FIELDS`] of a record.
macro_rules! fields {
    ($($field:ident),* $(,)?) => {
        &[$((stringify!($field), core::mem::offset_of!(Self, $field))),*]
    };
}
pub(crate) use fields;

/// Pin a record's size, alignment (in bytes) and the offset of every field.
macro_rules! pin_layout {
    ($record:ty, $size:literal bytes, aligned to $align:literal, {
        $($field:ident @ $offset:literal),* $(,)?
    }) => {
        // Under a model checker the fields are bigger than what they stand for.
        #[cfg(not(pv_loom))]
        const _: () = {
            use core::mem::{align_of, offset_of, size_of};

            use static_assertions::const_assert_eq;

            const_assert_eq!(size_of::<$record>(), $size);
            const_assert_eq!(align_of::<$record>(), $align);
            $(const_assert_eq!(offset_of!($record, $field), $offset);)*
        };
    };
}
pub(crate) use pin_layout;
