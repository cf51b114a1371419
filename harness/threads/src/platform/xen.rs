//! Xen: a vCPU operation registers the run-state record.

use pv_arch::{CpuCount, CpuId, GuestAddr, PlatformCall, Reply};
use pv_steal::xen::{self, RunState64};
use pv_steal::{RegisterError, StealSource};

use super::{Board, Driver, Effect, HostView, registration};
use crate::ThreadArch;
use crate::memory::Records;

pub(crate) struct Xen {
    records: Records<RunState64>,
}

impl Xen {
    pub fn new(count: CpuCount) -> Self {
        Self {
            records: Records::new(count, RunState64::new),
        }
    }
}

impl Board for Xen {
    fn boot(&'static self, cpu: CpuId) -> Result<&'static dyn Driver, RegisterError> {
        let record = self.records.of(cpu);
        xen::register::<ThreadArch, _>(record)?;
        Ok(record)
    }

    fn shut_down(&'static self, cpu: CpuId) -> Result<(), RegisterError> {
        xen::unregister::<ThreadArch, _>(self.records.of(cpu))
    }

    fn guest_addr(&self, object: *const u8, len: usize) -> Option<GuestAddr> {
        self.records.locate(object, len)
    }

    fn call(&self, cpu: CpuId, call: PlatformCall, _host: &HostView<'_>) -> (Reply, Effect) {
        let PlatformCall::XenVcpuOp { op, cpu: of, area } = call else {
            return (Reply::REFUSED, Effect::None);
        };
        if of != cpu {
            return (Reply::status(xen::EINVAL), Effect::None);
        }
        let decoded = xen::decode::<RunState64>(op, area);
        match decoded.and_then(|at| registration(&self.records, at).ok_or(xen::EINVAL)) {
            Ok(effect) => (Reply::status(0), effect),
            Err(status) => (Reply::status(status), Effect::None),
        }
    }
}

impl Driver for RunState64 {
    fn source(&self) -> &dyn StealSource {
        self
    }
}
