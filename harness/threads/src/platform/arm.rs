//! Arm PV time: three SMCCC calls; the hypervisor says where the record is.

use pv_arch::{CpuCount, CpuId, GuestAddr, PlatformCall, Reply};
use pv_steal::arm::{self, StolenTime};
use pv_steal::{RegisterError, StealSource};

use super::{Board, Driver, Effect, HostView};
use crate::ThreadArch;
use crate::memory::Records;

pub(crate) struct Arm {
    records: Records<StolenTime>,
}

impl Arm {
    pub fn new(count: CpuCount) -> Self {
        Self {
            records: Records::new(count, StolenTime::new),
        }
    }
}

impl Board for Arm {
    fn boot(&'static self, cpu: CpuId) -> Result<&'static dyn Driver, RegisterError> {
        let addr = arm::register::<ThreadArch>()?;
        // The kernel maps what the hypervisor named.
        let record = self
            .records
            .at(addr)
            .ok_or(RegisterError::NotMapped { len: 64 })?;
        record.check_revision()?;
        debug_assert!(std::ptr::eq(record, self.records.of(cpu)));
        Ok(record)
    }

    fn shut_down(&'static self, cpu: CpuId) -> Result<(), RegisterError> {
        let _ = cpu;
        // There is no call for it: the kernel stops reading.
        Ok(())
    }

    fn guest_addr(&self, object: *const u8, len: usize) -> Option<GuestAddr> {
        self.records.locate(object, len)
    }

    fn call(&self, cpu: CpuId, call: PlatformCall, _host: &HostView<'_>) -> (Reply, Effect) {
        let PlatformCall::Smccc { function, arg } = call else {
            return (Reply::REFUSED, Effect::None);
        };
        let reply = arm::host_reply(function, arg, Some(Records::<StolenTime>::address_of(cpu)));
        let effect = match function {
            arm::PV_TIME_ST => Effect::Attach(self.records.of(cpu)),
            _ => Effect::None,
        };
        (reply, effect)
    }
}

impl Driver for StolenTime {
    fn source(&self) -> &dyn StealSource {
        self
    }
}
