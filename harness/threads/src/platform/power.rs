//! POWER: one hypervisor call registers the virtual processor area.

use pv_arch::{CpuCount, CpuId, GuestAddr, PlatformCall, Reply};
use pv_steal::power::{self, Request, VirtualProcessorArea};
use pv_steal::{RegisterError, StealSource};

use super::{Board, Driver, Effect, HostView, registration};
use crate::ThreadArch;
use crate::memory::Records;

pub(crate) struct Power {
    records: Records<VirtualProcessorArea>,
}

impl Power {
    pub fn new(count: CpuCount) -> Self {
        Self {
            records: Records::new(count, VirtualProcessorArea::new),
        }
    }
}

impl Board for Power {
    fn boot(&'static self, cpu: CpuId) -> Result<&'static dyn Driver, RegisterError> {
        let area = self.records.of(cpu);
        power::register::<ThreadArch>(area)?;
        Ok(area)
    }

    fn shut_down(&'static self, cpu: CpuId) -> Result<(), RegisterError> {
        power::unregister::<ThreadArch>(self.records.of(cpu))
    }

    fn guest_addr(&self, object: *const u8, len: usize) -> Option<GuestAddr> {
        self.records.locate(object, len)
    }

    fn call(&self, cpu: CpuId, call: PlatformCall, _host: &HostView<'_>) -> (Reply, Effect) {
        let PlatformCall::Papr {
            token: power::H_REGISTER_VPA,
            args,
        } = call
        else {
            return (Reply::REFUSED, Effect::None);
        };
        let effect = match power::decode(args, power::SIZE) {
            Ok(Request::Register { cpu: of, addr }) if of == cpu => {
                registration(&self.records, Some(addr))
            }
            Ok(Request::Deregister { cpu: of }) if of == cpu => Some(Effect::Detach),
            _ => None,
        };
        match effect {
            Some(effect) => (Reply::status(power::H_SUCCESS), effect),
            None => (Reply::status(power::H_PARAMETER), Effect::None),
        }
    }
}

impl Driver for VirtualProcessorArea {
    fn source(&self) -> &dyn StealSource {
        self
    }

    fn set_idle(&self, idle: bool) {
        VirtualProcessorArea::set_idle(self, idle);
    }
}
