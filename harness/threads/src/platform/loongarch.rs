//! KVM on `LoongArch`: a configuration word and one hypercall.

use std::sync::OnceLock;

use pv_arch::{CpuCount, CpuId, GuestAddr, Nanos, PlatformCall, Reply};
use pv_steal::loongarch::{self, Features, HypercallError, StealTime};
use pv_steal::{Preemption, ReadError, RegisterError, StealSource};

use super::{Board, Driver, Effect, HostView, registration};
use crate::ThreadArch;
use crate::memory::Records;

pub(crate) struct LoongArch {
    records: Records<StealTime>,
    registered: Vec<Registered>,
}

impl LoongArch {
    pub fn new(count: CpuCount) -> Self {
        let records = Records::new(count, StealTime::new);
        let registered = count
            .cpus()
            .map(|cpu| Registered {
                record: records.of(cpu),
                features: OnceLock::new(),
            })
            .collect();
        Self {
            records,
            registered,
        }
    }
}

impl Board for LoongArch {
    fn boot(&'static self, cpu: CpuId) -> Result<&'static dyn Driver, RegisterError> {
        let registered = &self.registered[cpu.index()];
        let features = loongarch::register::<ThreadArch>(registered.record)?;
        registered.features.get_or_init(|| features);
        Ok(registered)
    }

    fn shut_down(&'static self, cpu: CpuId) -> Result<(), RegisterError> {
        loongarch::unregister::<ThreadArch>(self.records.of(cpu))
    }

    fn guest_addr(&self, object: *const u8, len: usize) -> Option<GuestAddr> {
        self.records.locate(object, len)
    }

    fn call(&self, _cpu: CpuId, call: PlatformCall, _host: &HostView<'_>) -> (Reply, Effect) {
        match call {
            PlatformCall::Cpucfg { word } => (cpucfg(word), Effect::None),
            PlatformCall::LoongArchHypercall {
                service: loongarch::SERVICE,
                function: loongarch::FUNC_NOTIFY,
                args,
            } => self.notify(args),
            _ => (Reply::REFUSED, Effect::None),
        }
    }
}

impl LoongArch {
    fn notify(&self, args: [u64; 2]) -> (Reply, Effect) {
        let decoded = loongarch::decode(args);
        let effect = decoded
            .and_then(|at| registration(&self.records, at).ok_or(HypercallError::InvalidParameter));
        match effect {
            Ok(effect) => (Reply::status(0), effect),
            Err(error) => (Reply::status(error.code()), Effect::None),
        }
    }
}

fn cpucfg(word: u32) -> Reply {
    let offered = Features::STEAL_TIME | Features::PREEMPT;
    Reply::value(match word {
        loongarch::CPUCFG_SIGNATURE => loongarch::SIGNATURE.into(),
        loongarch::CPUCFG_FEATURES => offered.bits().into(),
        _ => 0,
    })
}

/// A record together with what the host said of it.
struct Registered {
    record: &'static StealTime,
    features: OnceLock<Features>,
}

impl StealSource for Registered {
    fn steal(&self) -> Result<Nanos, ReadError> {
        self.record.steal()
    }

    fn preemption(&self) -> Preemption {
        let features = self.features.get().copied();
        self.record
            .preemption_under(features.unwrap_or(Features::empty()))
    }
}

impl Driver for Registered {
    fn source(&self) -> &dyn StealSource {
        self
    }
}
