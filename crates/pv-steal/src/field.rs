//! Fields of records: integers that somebody else writes.

#[cfg(any(pv_loom, pv_split64, not(target_has_atomic = "64")))]
pub(crate) use halves::HalvesU64 as GuardedU64;
#[cfg(not(any(pv_loom, pv_split64, not(target_has_atomic = "64"))))]
pub(crate) use whole::WholeU64 as GuardedU64;
#[cfg(pv_loom)]
pub(crate) use whole::WholeU64;

/// A 64-bit little-endian field that may be read and written in halves, so it
/// is consistent only under a version (see [`crate::seq`]). Halves are what a
/// 32-bit guest without 64-bit atomics sees, and the worst case for a model.
#[cfg(any(pv_loom, pv_split64, not(target_has_atomic = "64")))]
mod halves {
    use pv_arch::sync::atomic::{AtomicU32, Ordering};

    #[derive(Debug)]
    #[repr(C, align(8))]
    pub struct HalvesU64 {
        low: AtomicU32,
        high: AtomicU32,
    }

    impl HalvesU64 {
        pv_arch::const_new! {
            pub fn new() -> Self {
                Self {
                    low: AtomicU32::new(0),
                    high: AtomicU32::new(0),
                }
            }
        }

        #[inline(always)]
        pub fn load(&self, order: Ordering) -> u64 {
            let low = u32::from_le(self.low.load(order));
            let high = u32::from_le(self.high.load(order));
            u64::from(high) << 32 | u64::from(low)
        }

        /// Like [`load`](Self::load), the other half first. (Models read whole
        /// times, or halves that are only 4-aligned.)
        #[cfg(not(pv_loom))]
        #[inline(always)]
        pub fn load_high_first(&self, order: Ordering) -> u64 {
            let high = u32::from_le(self.high.load(order));
            let low = u32::from_le(self.low.load(order));
            u64::from(high) << 32 | u64::from(low)
        }

        #[inline(always)]
        #[expect(clippy::cast_possible_truncation, reason = "split on purpose")]
        pub fn store(&self, value: u64, order: Ordering) {
            self.low.store((value as u32).to_le(), order);
            self.high.store(((value >> 32) as u32).to_le(), order);
        }
    }
}

/// A 64-bit little-endian field, whole.
#[cfg(any(pv_loom, not(any(pv_split64, not(target_has_atomic = "64")))))]
mod whole {
    use pv_arch::sync::atomic::{AtomicU64, Ordering};

    #[derive(Debug)]
    #[repr(transparent)]
    pub struct WholeU64(AtomicU64);

    impl WholeU64 {
        pv_arch::const_new! {
            pub fn new() -> Self { Self(AtomicU64::new(0)) }
        }

        #[inline(always)]
        pub fn load(&self, order: Ordering) -> u64 {
            u64::from_le(self.0.load(order))
        }

        #[inline(always)]
        pub fn load_high_first(&self, order: Ordering) -> u64 {
            self.load(order)
        }

        #[inline(always)]
        pub fn store(&self, value: u64, order: Ordering) {
            self.0.store(value.to_le(), order);
        }
    }
}

/// Bytes of a record that nobody here looks at. A model checker, for which every
/// atomic is an object to watch, does without them.
#[cfg(not(pv_loom))]
pub(crate) type Unused<const LEN: usize> = [pv_arch::sync::atomic::AtomicU8; LEN];
#[cfg(pv_loom)]
pub(crate) type Unused<const LEN: usize> = [pv_arch::sync::atomic::AtomicU8; 0];

/// That many [`Unused`] bytes, all zero.
macro_rules! zeros {
    ($len:literal) => {{
        #[cfg(not(pv_loom))]
        {
            [const { pv_arch::sync::atomic::AtomicU8::new(0) }; $len]
        }
        #[cfg(pv_loom)]
        {
            []
        }
    }};
}
pub(crate) use zeros;
