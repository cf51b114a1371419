//! The firmware and the hypervisor interface of each platform.
//!
//! A [`Board`] plays both ends: the guest kernel's boot code, which registers
//! its record with `pv-steal` through the door, and the hypervisor, which
//! decodes the call and attaches `pv-steal`'s writer to that memory. The two
//! halves share nothing but the call and guest memory.

mod arm;
mod kvm_x86;
mod loongarch;
mod power;
mod riscv;
mod s390;
mod xen;

use pv_arch::{CpuCount, CpuId, GuestAddr, Nanos, PlatformCall, Reply};
use pv_steal::{GuestRecord, HostRecord, Platform, RegisterError, StealSource};

use crate::core::{Core, Record};
use crate::memory::Records;
use crate::timeline::Phase;

/// Both ends of one platform's protocol.
pub(crate) trait Board: Send + Sync {
    /// Guest: register this vCPU's record. Runs on that vCPU, in guest mode.
    fn boot(&'static self, cpu: CpuId) -> Result<&'static dyn Driver, RegisterError>;

    /// Guest: give the record up. Runs on that vCPU, in guest mode.
    fn shut_down(&'static self, cpu: CpuId) -> Result<(), RegisterError>;

    /// Where an object lies in guest-physical memory.
    fn guest_addr(&self, object: *const u8, len: usize) -> Option<GuestAddr>;

    /// Host: answer a platform call of `cpu`.
    fn call(&self, cpu: CpuId, call: PlatformCall, host: &HostView<'_>) -> (Reply, Effect);
}

/// What the guest kernel keeps of a registered record.
pub(crate) trait Driver: Sync {
    /// Where steal and preemption of this vCPU are read.
    fn source(&self) -> &dyn StealSource;

    /// The guest's own mark that this vCPU halts, where the platform has one.
    fn set_idle(&self, idle: bool) {
        let _ = idle;
    }
}

/// What a call does to the vCPU's record on the host's side.
pub(crate) enum Effect {
    None,
    Attach(Record),
    Detach,
}

/// What a guest's registration does: `at` is the address that it named, or
/// `None` to switch its record off. No record lies at another address.
fn registration<R>(records: &Records<R>, at: Option<GuestAddr>) -> Option<Effect>
where
    R: GuestRecord + HostRecord,
{
    match at {
        None => Some(Effect::Detach),
        Some(addr) => Some(Effect::Attach(records.at(addr)?)),
    }
}

/// What the host knows while it answers a call.
pub(crate) struct HostView<'a> {
    pub core: &'a Core,
    pub now: Nanos,
}

impl HostView<'_> {
    /// Time that a vCPU has been on a host CPU.
    fn ran(&self, cpu: CpuId) -> Nanos {
        let times = self.core.times_now(cpu.index(), self.now);
        Nanos::new(times.run_ns)
    }

    /// Whether a vCPU has a host CPU.
    fn is_running(&self, cpu: CpuId) -> bool {
        self.core.vcpus[cpu.index()].timeline.phase() == Phase::Running
    }
}

/// The board of a platform for a machine of this size.
pub(crate) fn board(platform: Platform, count: CpuCount) -> Box<dyn Board> {
    match platform {
        Platform::KvmX86 => Box::new(kvm_x86::KvmX86::new(count)),
        Platform::Arm => Box::new(arm::Arm::new(count)),
        Platform::RiscV => Box::new(riscv::RiscV::new(count)),
        Platform::LoongArch => Box::new(loongarch::LoongArch::new(count)),
        Platform::S390 => Box::new(s390::S390::new(count)),
        Platform::Power => Box::new(power::Power::new(count)),
        Platform::Xen => Box::new(xen::Xen::new(count)),
    }
}
