//! What can go wrong, with the place and the value.

use core::fmt;

use pv_arch::{CpuId, GuestAddr};

/// A record could not be read consistently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The version stayed odd: the host is in the middle of an update, or died
    /// there.
    StuckInUpdate {
        /// The odd version seen last.
        version: u32,
        /// How often it was looked at.
        tries: u32,
    },
    /// The version changed during every try.
    KeepsChanging {
        /// The version seen last.
        version: u32,
        /// How often it was looked at.
        tries: u32,
    },
    /// Xen: the record was in a transition, or made one, during every try.
    InTransition {
        /// `state_entry_time` as seen last; bit 63 = in a transition.
        entry: u64,
        /// How often it was looked at.
        tries: u32,
    },
    /// s390: only a CPU itself can read how long it ran.
    OtherCpu {
        /// Whose steal was asked for.
        asked: CpuId,
        /// Who asked.
        here: CpuId,
    },
    /// The machine refused the instruction that reads the counter.
    Refused {
        /// Its raw status.
        status: i64,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StuckInUpdate { version, tries } => write!(
                f,
                "steal record: version {version} is odd (update in progress) after {tries} tries"
            ),
            Self::KeepsChanging { version, tries } => write!(
                f,
                "steal record: changed during each of {tries} tries, version is now {version}"
            ),
            Self::InTransition { entry, tries } => write!(
                f,
                "steal record: in a transition during each of {tries} tries, state_entry_time is {entry:#x}"
            ),
            Self::OtherCpu { asked, here } => {
                write!(f, "steal of {asked} cannot be read on {here}")
            }
            Self::Refused { status } => write!(
                f,
                "steal: the machine refused to read the counter with status {status}"
            ),
        }
    }
}

impl core::error::Error for ReadError {}

/// A record could not be registered or unregistered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterError {
    /// The kernel knows no guest-physical address for the record's `len` bytes.
    NotMapped {
        /// Size of the record in bytes.
        len: usize,
    },
    /// The address is not a multiple of `align`.
    Misaligned {
        /// The address.
        addr: GuestAddr,
        /// What it must be a multiple of, in bytes.
        align: u64,
    },
    /// The record would cross a page boundary.
    CrossesPage {
        /// The address.
        addr: GuestAddr,
        /// Size of the record in bytes.
        len: u64,
        /// Size of the page in bytes.
        page: u64,
    },
    /// The host does not offer this record.
    NotOffered,
    /// s390: a CPU can begin to count only for itself.
    OtherCpu {
        /// Whose time was to be counted.
        asked: CpuId,
        /// Who asked.
        here: CpuId,
    },
    /// Arm: the host's record is of a revision that this crate does not know.
    UnknownRevision {
        /// `revision`; 0 is known.
        revision: u32,
        /// `attributes`; 0 is known.
        attributes: u32,
    },
    /// The host refused the call.
    Refused {
        /// The address that was offered to it.
        addr: GuestAddr,
        /// Its raw status.
        status: i64,
    },
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMapped { len } => write!(
                f,
                "steal record: its {len} bytes have no guest-physical address"
            ),
            Self::Misaligned { addr, align } => {
                write!(f, "steal record: {addr} is not a multiple of {align}")
            }
            Self::CrossesPage { addr, len, page } => write!(
                f,
                "steal record: {len} bytes at {addr} cross a boundary of {page} bytes"
            ),
            Self::NotOffered => write!(f, "steal record: the host does not offer it"),
            Self::OtherCpu { asked, here } => {
                write!(f, "steal of {asked} cannot be counted on {here}")
            }
            Self::UnknownRevision {
                revision,
                attributes,
            } => write!(
                f,
                "steal record: revision {revision} with attributes {attributes:#x} is not known"
            ),
            Self::Refused { addr, status } => {
                write!(
                    f,
                    "steal record: the host refused {addr} with status {status}"
                )
            }
        }
    }
}

impl core::error::Error for RegisterError {}
