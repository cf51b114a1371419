//! s390: no record; two instructions, one of which asks about another CPU.

use pv_arch::{CpuCount, CpuId, GuestAddr, PlatformCall, Reply};
use pv_steal::s390::{self, StolenTime};
use pv_steal::{RegisterError, StealSource};

use super::{Board, Driver, Effect, HostView};
use crate::ThreadArch;

pub(crate) struct S390 {
    count: CpuCount,
    times: Vec<StolenTime<ThreadArch>>,
}

impl S390 {
    pub fn new(count: CpuCount) -> Self {
        Self {
            count,
            times: count.cpus().map(StolenTime::new).collect(),
        }
    }
}

impl Board for S390 {
    fn boot(&'static self, cpu: CpuId) -> Result<&'static dyn Driver, RegisterError> {
        let time = &self.times[cpu.index()];
        s390::register::<ThreadArch>(time)?;
        Ok(time)
    }

    fn shut_down(&'static self, cpu: CpuId) -> Result<(), RegisterError> {
        s390::unregister::<ThreadArch>(&self.times[cpu.index()]);
        Ok(())
    }

    fn guest_addr(&self, _object: *const u8, _len: usize) -> Option<GuestAddr> {
        None
    }

    fn call(&self, cpu: CpuId, call: PlatformCall, host: &HostView<'_>) -> (Reply, Effect) {
        let reply = match call {
            PlatformCall::CpuTimer => Reply::value(host.ran(cpu).get()),
            PlatformCall::Sigp {
                order: s390::SENSE_RUNNING,
                cpu: of,
            } if self.count.check(of.get()).is_ok() => s390::sense_reply(host.is_running(of)),
            PlatformCall::Sigp { .. } => s390::invalid_order_reply(),
            _ => Reply::REFUSED,
        };
        (reply, Effect::None)
    }
}

impl Driver for StolenTime<ThreadArch> {
    fn source(&self) -> &dyn StealSource {
        self
    }

    fn set_idle(&self, idle: bool) {
        if idle {
            self.begin_wait();
        } else {
            self.end_wait();
        }
    }
}
