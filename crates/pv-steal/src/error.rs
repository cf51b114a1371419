//! What can go wrong, with the place and the value.

use core::fmt;

use pv_arch::GuestAddr;

/// A record could not be read consistently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
