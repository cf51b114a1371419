//! Times of the record, whole or in halves.
//!
//! Halves can be read consistently because the writer stores the low half of a
//! new entry time before the high one (which carries the mark), each with
//! Release, and the reader
//!
//! 1. first loads low, then high: a low half of the new time means that the new
//!    data are visible, or that the high half shows the mark;
//! 2. last loads high, then low: if any new data were seen, the high half shows
//!    the mark, or is the new one and brings the new low half with it.
//!
//! So data of two transitions come with a mark or with two different times.

use pv_arch::sync::atomic::{AtomicU32, Ordering};

#[cfg(not(pv_loom))]
pub(super) use crate::field::GuardedU64 as Time64;
/// A time of a 64-bit guest, which a model has whole: [`Packed`] is the halves.
#[cfg(pv_loom)]
pub(super) use crate::field::WholeU64 as Time64;

/// A 64-bit little-endian time, as the record's writer and readers use it.
pub trait Word: Sync + 'static {
    /// The value; of halves, the low one is loaded first.
    fn load(&self, order: Ordering) -> u64;
    /// The value; of halves, the high one is loaded first.
    fn load_high_first(&self, order: Ordering) -> u64;
    /// Set the value; of halves, the low one is stored first.
    fn store(&self, value: u64, order: Ordering);
}

impl Word for Time64 {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    #[inline(always)]
    fn load_high_first(&self, order: Ordering) -> u64 {
        self.load_high_first(order)
    }

    #[inline(always)]
    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }
}

/// A time that is only 4-aligned, always in halves.
#[derive(Debug)]
#[repr(C)]
pub struct Packed {
    low: AtomicU32,
    high: AtomicU32,
}

impl Packed {
    pv_arch::const_new! {
        pub fn new() -> Self {
            Self {
                low: AtomicU32::new(0),
                high: AtomicU32::new(0),
            }
        }
    }
}

impl Word for Packed {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        let low = u32::from_le(self.low.load(order));
        let high = u32::from_le(self.high.load(order));
        u64::from(high) << 32 | u64::from(low)
    }

    #[inline(always)]
    fn load_high_first(&self, order: Ordering) -> u64 {
        let high = u32::from_le(self.high.load(order));
        let low = u32::from_le(self.low.load(order));
        u64::from(high) << 32 | u64::from(low)
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "split on purpose")]
    fn store(&self, value: u64, order: Ordering) {
        self.low.store((value as u32).to_le(), order);
        self.high.store(((value >> 32) as u32).to_le(), order);
    }
}
