//! Guest memory, as far as records lie in it.

use pv_arch::{CpuCount, CpuId, GuestAddr};
use pv_steal::GuestRecord;

/// Records lie from here on, a page apart.
const BASE: u64 = 0x1000_0000;
const PAGE: u64 = 4096;

/// One record for each vCPU, at a known guest-physical address.
///
/// The records are never freed: a guest registers them, and what is registered
/// must outlive the host's interest in it.
pub(crate) struct Records<R: 'static>(Vec<&'static R>);

impl<R: GuestRecord> Records<R> {
    pub fn new(count: CpuCount, make: impl Fn() -> R) -> Self {
        Self(
            count
                .cpus()
                .map(|_| &*Box::leak(Box::new(make())))
                .collect(),
        )
    }

    /// The record of a vCPU, as the guest kernel knows it.
    pub fn of(&self, cpu: CpuId) -> &'static R {
        self.0[cpu.index()]
    }

    /// The guest-physical address of a record.
    pub fn address_of(cpu: CpuId) -> GuestAddr {
        GuestAddr::new(BASE + u64::from(cpu.get()) * PAGE)
    }

    /// Guest-physical address of an object inside one of the records.
    pub fn locate(&self, object: *const u8, len: usize) -> Option<GuestAddr> {
        let size = R::LAYOUT.size;
        (0_u64..).zip(&self.0).find_map(|(page, record)| {
            let start = std::ptr::from_ref(*record).addr();
            let offset = object.addr().checked_sub(start)?;
            let end = offset.checked_add(len)?;
            (end <= size).then(|| GuestAddr::new(BASE + page * PAGE + offset as u64))
        })
    }

    /// The record that a guest named by its address.
    pub fn at(&self, addr: GuestAddr) -> Option<&'static R> {
        let offset = addr.get().checked_sub(BASE)?;
        if !offset.is_multiple_of(PAGE) {
            return None;
        }
        self.0.get(usize::try_from(offset / PAGE).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use pv_steal::kvm_x86::StealTime;

    use super::*;

    #[test]
    fn an_address_leads_back_to_its_record() {
        let records = Records::new(CpuCount::new(3).unwrap(), StealTime::new);
        for cpu in CpuCount::new(3).unwrap().cpus() {
            let record = records.of(cpu);
            let addr = records
                .locate(std::ptr::from_ref(record).cast(), 64)
                .unwrap();
            assert_eq!(addr, Records::<StealTime>::address_of(cpu));
            assert!(std::ptr::eq(records.at(addr).unwrap(), record));
        }
        assert!(records.at(GuestAddr::new(BASE + 64)).is_none());
        assert!(records.at(GuestAddr::new(BASE + 3 * PAGE)).is_none());
        assert!(records.at(GuestAddr::new(0)).is_none());
        let elsewhere = 0_u8;
        assert!(records.locate(&raw const elsewhere, 1).is_none());
    }
}
