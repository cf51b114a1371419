//! KVM on x86: CPUID and one model-specific register.

use pv_arch::{CpuCount, CpuId, GuestAddr, PlatformCall, Reply};
use pv_steal::kvm_x86::{self, Features, StealTime};
use pv_steal::{RegisterError, StealSource};

use super::{Board, Driver, Effect, HostView, registration};
use crate::ThreadArch;
use crate::memory::Records;

pub(crate) struct KvmX86 {
    records: Records<StealTime>,
}

impl KvmX86 {
    pub fn new(count: CpuCount) -> Self {
        Self {
            records: Records::new(count, StealTime::new),
        }
    }

    fn write_msr(&self, value: u64) -> (Reply, Effect) {
        let decoded = kvm_x86::decode_msr(value).ok();
        match decoded.and_then(|at| registration(&self.records, at)) {
            Some(effect) => (Reply::status(0), effect),
            None => (Reply::REFUSED, Effect::None),
        }
    }
}

impl Board for KvmX86 {
    fn boot(&'static self, cpu: CpuId) -> Result<&'static dyn Driver, RegisterError> {
        let record = self.records.of(cpu);
        kvm_x86::register::<ThreadArch>(record)?;
        Ok(record)
    }

    fn shut_down(&'static self, cpu: CpuId) -> Result<(), RegisterError> {
        kvm_x86::unregister::<ThreadArch>(self.records.of(cpu))
    }

    fn guest_addr(&self, object: *const u8, len: usize) -> Option<GuestAddr> {
        self.records.locate(object, len)
    }

    fn call(&self, _cpu: CpuId, call: PlatformCall, _host: &HostView<'_>) -> (Reply, Effect) {
        match call {
            PlatformCall::Cpuid { leaf } => (cpuid(leaf), Effect::None),
            PlatformCall::WriteMsr {
                index: kvm_x86::MSR_STEAL_TIME,
                value,
            } => self.write_msr(value),
            _ => (Reply::REFUSED, Effect::None),
        }
    }
}

fn cpuid(leaf: u32) -> Reply {
    const FEATURES: u32 = kvm_x86::FIRST_LEAF + 1;
    let offered = Features::STEAL_TIME | Features::PV_UNHALT | Features::PV_SCHED_YIELD;
    let [ebx, ecx, edx] = kvm_x86::SIGNATURE;
    let values = match leaf {
        kvm_x86::FIRST_LEAF => [FEATURES, ebx, ecx, edx],
        FEATURES => [offered.bits(), 0, 0, 0],
        _ => [0; 4],
    };
    Reply::registers(values.map(u64::from))
}

impl Driver for StealTime {
    fn source(&self) -> &dyn StealSource {
        self
    }
}
