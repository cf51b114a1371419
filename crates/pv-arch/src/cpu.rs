//! CPU numbers.

use core::fmt;

/// The number of one virtual CPU, counted from 0 by the guest kernel.
///
/// It is the kernel's own numbering, not an APIC id, MPIDR or hart id: turning
/// one into the other is the business of the [`crate::Arch`] implementation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct CpuId(u32);

impl CpuId {
    /// The CPU that booted the kernel.
    pub const BOOT: Self = Self(0);

    /// CPU number `number`, not checked against any machine; see
    /// [`CpuCount::check`] for numbers that come from outside.
    #[inline]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number as an index into a table of CPUs.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpu{}", self.0)
    }
}

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpu{}", self.0)
    }
}

/// How many CPUs a guest has (at least one); the numbers below it are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuCount(u32);

impl CpuCount {
    /// A uniprocessor.
    pub const ONE: Self = Self(1);

    /// `count` CPUs, or `None` for 0: a guest with no CPU does not run.
    #[inline]
    pub const fn new(count: u32) -> Option<Self> {
        if count == 0 { None } else { Some(Self(count)) }
    }

    /// The count.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The CPU with this number, if the guest has it.
    #[inline]
    pub const fn check(self, number: u32) -> Result<CpuId, CpuOutOfRange> {
        if number < self.0 {
            Ok(CpuId(number))
        } else {
            Err(CpuOutOfRange {
                number,
                count: self.0,
            })
        }
    }

    /// All CPUs, from [`CpuId::BOOT`] up.
    #[inline]
    pub fn cpus(self) -> impl ExactSizeIterator<Item = CpuId> + DoubleEndedIterator + Clone {
        (0..self.0).map(CpuId)
    }
}

/// A CPU number that the guest does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuOutOfRange {
    /// The number that was asked for.
    pub number: u32,
    /// How many CPUs there are; valid numbers are below it.
    pub count: u32,
}

impl fmt::Display for CpuOutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, count } = self;
        write!(
            f,
            "CPU {number} is out of range: this guest has {count} CPUs, numbered from 0"
        )
    }
}

impl core::error::Error for CpuOutOfRange {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_invalid_number_is_the_count() {
        let three = CpuCount::new(3).unwrap();
        assert_eq!(three.check(2), Ok(CpuId::new(2)));
        let error = three.check(3).unwrap_err();
        assert_eq!(
            error,
            CpuOutOfRange {
                number: 3,
                count: 3
            }
        );
        assert!(error.to_string().contains("CPU 3"));
        assert_eq!(three.cpus().len(), 3);
    }

    #[test]
    fn a_guest_without_cpus_cannot_be_named() {
        assert_eq!(CpuCount::new(0), None);
    }
}
