//! Xen: a vCPU operation registers the run-state record.

use pv_arch::{CpuCount, CpuId, GuestAddr, PlatformCall, Reply};
use pv_steal::xen::{self, RunState64};
use pv_steal::{RegisterError, StealSource};

use super::{Board, Driver, Effect, HostView};
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
        match call {
            PlatformCall::XenVcpuOp { op, cpu: of, area } if of == cpu => {
                match xen::decode::<RunState64>(op, area) {
                    Ok(None) => (Reply::status(0), Effect::Detach),
                    Ok(Some(addr)) => match self.records.at(addr) {
                        Some(record) => (Reply::status(0), Effect::Attach(record)),
                        None => (Reply::status(xen::EINVAL), Effect::None),
                    },
                    Err(status) => (Reply::status(status), Effect::None),
                }
            }
            _ => (Reply::REFUSED, Effect::None),
        }
    }
}

impl Driver for RunState64 {
    fn source(&self) -> &dyn StealSource {
        self
    }
}
