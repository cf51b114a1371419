//! The version protocol that several records share.
//!
//! The host makes the version odd, writes, and makes it even again. A reader
//! takes the version, the data, and the version once more; an odd or changed
//! version means that the data may be of two updates. This is a sequence lock
//! with one writer.

use pv_arch::sync::atomic::{AtomicU32, fence};
use pv_arch::sync::hint;

use crate::ReadError;

/// How often a reader tries before it gives up. An update takes the host some
/// nanoseconds; one that is seen to last 64 looks is not going to end.
#[cfg(not(pv_loom))]
pub const READ_TRIES: u32 = 64;
/// Under a model checker, just enough to come to the second try.
#[cfg(pv_loom)]
pub const READ_TRIES: u32 = 2;

pv_arch::orderings! {
    /// The first look at the version comes before the data.
    fn first_look = Acquire;
    /// The data itself is ordered by what stands around it.
    pub(crate) fn guarded = Relaxed;
    /// A fence: the data comes before the second look.
    fn before_second_look = Acquire;
    /// The second look, ordered by the fence before it.
    fn second_look = Relaxed;
    /// The writer makes the version odd; the fence after it orders the data.
    fn make_odd = Relaxed;
    /// A fence: the odd version comes before the data.
    fn after_odd = Release;
    /// The data comes before the even version.
    fn make_even = Release;
}

/// Read what `version` guards with `look`, which must load with [`guarded`].
#[inline]
pub(crate) fn read<T>(version: &AtomicU32, look: impl Fn() -> T) -> Result<T, ReadError> {
    let mut last = 0;
    for _ in 0..READ_TRIES {
        let before = u32::from_le(version.load(first_look()));
        last = before;
        if before & 1 == 0 || pv_arch::seeded_bug!("seq.ignore-odd") {
            let value = look();
            fence(before_second_look());
            last = u32::from_le(version.load(second_look()));
            if last == before || pv_arch::seeded_bug!("seq.no-second-look") {
                return Ok(value);
            }
        }
        hint::relax_bounded();
    }
    Err(gave_up(last))
}

#[cold]
fn gave_up(version: u32) -> ReadError {
    let tries = READ_TRIES;
    if version & 1 == 1 {
        ReadError::StuckInUpdate { version, tries }
    } else {
        ReadError::KeepsChanging { version, tries }
    }
}

/// Let `update` write what `version` guards, storing with [`guarded`]. A version
/// left odd by a host that died, or by junk in the memory, is made good.
#[inline]
pub(crate) fn write(version: &AtomicU32, update: impl FnOnce()) {
    // Only this thread writes the version, so its own last value is the newest.
    let found = u32::from_le(version.load(make_odd()));
    let odd = if pv_arch::seeded_bug!("seq.blind-increment") {
        found.wrapping_add(1)
    } else {
        found.wrapping_add(1) | 1
    };
    if !pv_arch::seeded_bug!("seq.never-odd") {
        version.store(odd.to_le(), make_odd());
    }
    fence(after_odd());
    update();
    version.store(odd.wrapping_add(1).to_le(), make_even());
}

/// Leave `version` and `steal` as a host does that dies in the middle of its
/// first update: the version is odd, and half of `value` is written.
#[cfg(pv_loom)]
pub(crate) fn die_in_update(version: &AtomicU32, steal: &crate::field::GuardedU64, value: u64) {
    version.store(1_u32.to_le(), make_odd());
    steal.store(value & u64::from(u32::MAX), guarded());
}

#[cfg(all(test, not(pv_loom)))]
mod tests {
    use pv_arch::sync::atomic::Ordering::Relaxed;

    use super::*;

    fn version(value: u32) -> AtomicU32 {
        AtomicU32::new(value.to_le())
    }

    #[test]
    fn an_update_moves_the_version_by_two() {
        let version = version(0);
        write(&version, || assert_eq!(version.load(Relaxed) & 1, 1));
        write(&version, || ());
        assert_eq!(u32::from_le(version.load(Relaxed)), 4);
    }

    #[test]
    fn a_version_left_odd_is_made_even_again() {
        let version = version(7);
        write(&version, || ());
        assert_eq!(u32::from_le(version.load(Relaxed)), 10);
    }

    #[test]
    fn a_version_wraps() {
        let version = version(u32::MAX);
        write(&version, || ());
        assert_eq!(u32::from_le(version.load(Relaxed)), 2);
    }

    #[test]
    fn a_reader_gives_up_on_a_version_that_stays_odd() {
        assert_eq!(
            read(&version(5), || unreachable!(
                "an odd version guards nothing"
            )),
            Err::<(), _>(ReadError::StuckInUpdate {
                version: 5,
                tries: READ_TRIES
            })
        );
    }

    #[test]
    fn a_reader_gives_up_on_a_record_that_keeps_changing() {
        let version = version(0);
        let result = read(&version, || write(&version, || ()));
        assert_eq!(
            result,
            Err(ReadError::KeepsChanging {
                version: 2 * READ_TRIES,
                tries: READ_TRIES
            })
        );
    }
}
