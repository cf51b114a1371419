//! RISC-V: the steal-time accounting extension of the SBI.

use pv_arch::{CpuCount, CpuId, GuestAddr, PlatformCall, Reply};
use pv_steal::riscv::{self, SbiError, StealTime, Xlen};
use pv_steal::{RegisterError, StealSource};

use super::{Board, Driver, Effect, HostView, registration};
use crate::ThreadArch;
use crate::memory::Records;

pub(crate) struct RiscV {
    records: Records<StealTime>,
}

impl RiscV {
    pub fn new(count: CpuCount) -> Self {
        Self {
            records: Records::new(count, StealTime::new),
        }
    }
}

impl Board for RiscV {
    fn boot(&'static self, cpu: CpuId) -> Result<&'static dyn Driver, RegisterError> {
        let record = self.records.of(cpu);
        riscv::register::<ThreadArch>(record)?;
        Ok(record)
    }

    fn shut_down(&'static self, cpu: CpuId) -> Result<(), RegisterError> {
        riscv::unregister::<ThreadArch>(self.records.of(cpu))
    }

    fn guest_addr(&self, object: *const u8, len: usize) -> Option<GuestAddr> {
        self.records.locate(object, len)
    }

    fn call(&self, _cpu: CpuId, call: PlatformCall, _host: &HostView<'_>) -> (Reply, Effect) {
        let PlatformCall::Sbi {
            extension,
            function,
            args,
        } = call
        else {
            return (Reply::REFUSED, Effect::None);
        };
        match (extension, function) {
            (riscv::BASE_EXTENSION, riscv::PROBE_EXTENSION) => {
                let offered = args[0] == u64::from(riscv::EXTENSION);
                (Reply::value(u64::from(offered)), Effect::None)
            }
            (riscv::EXTENSION, riscv::SET_SHMEM) => self.set_shmem(args),
            _ => (Reply::status(SbiError::NotSupported.code()), Effect::None),
        }
    }
}

impl RiscV {
    fn set_shmem(&self, args: [u64; 3]) -> (Reply, Effect) {
        let decoded = riscv::decode(args, Xlen::NATIVE);
        let effect =
            decoded.and_then(|at| registration(&self.records, at).ok_or(SbiError::InvalidAddress));
        match effect {
            Ok(effect) => (Reply::status(0), effect),
            Err(error) => (Reply::status(error.code()), Effect::None),
        }
    }
}

impl Driver for StealTime {
    fn source(&self) -> &dyn StealSource {
        self
    }
}
