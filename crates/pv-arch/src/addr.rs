//! Guest-physical addresses.

use core::fmt;

/// A guest-physical address: what a hypervisor understands, unlike a pointer.
///
/// Handing a virtual address to a host is the commonest mistake in hand-written
/// steal-time code, so the two are different types; [`crate::Arch::guest_addr`]
/// is the only way from one to the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct GuestAddr(u64);

impl GuestAddr {
    /// The address with this byte value.
    #[inline]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The byte value.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether the address is a multiple of `align`, a power of two in bytes.
    /// An `align` of 0 is satisfied by address 0 only.
    #[inline]
    pub const fn is_aligned(self, align: u64) -> bool {
        self.0 & align.wrapping_sub(1) == 0
    }

    /// Whether `len` bytes from here stay inside one `page` (a power of two in
    /// bytes). An object that would wrap around the address space does not.
    #[inline]
    pub const fn stays_in_page(self, len: u64, page: u64) -> bool {
        let Some(last) = self.0.checked_add(len.saturating_sub(1)) else {
            return false;
        };
        let mask = !page.wrapping_sub(1);
        self.0 & mask == last & mask
    }
}

impl fmt::Debug for GuestAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GuestAddr({:#x})", self.0)
    }
}

impl fmt::Display for GuestAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignment_is_by_the_low_bits() {
        assert!(GuestAddr::new(0x40).is_aligned(64));
        assert!(!GuestAddr::new(0x41).is_aligned(64));
        assert!(!GuestAddr::new(0x20).is_aligned(64));
    }

    #[test]
    fn an_object_that_ends_at_the_page_end_stays_in_it() {
        assert!(GuestAddr::new(0xfc0).stays_in_page(64, 4096));
        assert!(!GuestAddr::new(0xfc1).stays_in_page(64, 4096));
        assert!(!GuestAddr::new(u64::MAX - 3).stays_in_page(64, 4096));
    }
}
