//! The kernel type of guests that run in threads.

use pv_arch::sync::hint;
use pv_arch::{Arch, CpuCount, CpuId, GuestAddr, Nanos, PlatformCall, Reply, Yielded};
use rustix::thread::{MembarrierCommand, membarrier};

use crate::script::Probe;
use crate::vcpu::current;

/// A guest kernel on a machine of this harness. Every method panics on a thread
/// that is no vCPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadArch;

impl ThreadArch {
    /// Tell the host what this vCPU does with the watched lock, so that its
    /// script can strike. The host may stop the vCPU inside this call.
    pub fn probe(probe: Probe) {
        let (vm, vcpu) = current();
        vcpu.in_host(vm, || vm.probe(vcpu.id.index(), probe));
    }

    /// In the stepped engine every call of the architecture is a point at which
    /// time passes and the host may act; in the live one nothing is needed, the
    /// signal comes when it comes.
    fn point() {
        let (vm, vcpu) = current();
        if vm.stepper().is_some() {
            vcpu.in_host(vm, || vm.exit(vcpu.id.index(), |_, _| ()));
        }
    }
}

impl Arch for ThreadArch {
    /// Nothing: the only interrupt of this machine is the kick.
    type IrqState = ();

    fn this_cpu() -> CpuId {
        current().1.id
    }

    fn cpu_count() -> CpuCount {
        current().0.count
    }

    fn now() -> Nanos {
        let (vm, vcpu) = current();
        match vm.stepper() {
            None => vm.real_now(),
            Some(_) => vcpu.in_host(vm, || vm.exit(vcpu.id.index(), |_, now| now)),
        }
    }

    fn relax_bounded() {
        Self::point();
        hint::relax_bounded();
    }

    fn relax_unbounded() {
        Self::point();
        hint::relax_unbounded();
    }

    fn irq_save() {}

    fn irq_restore((): ()) {}

    fn halt_while(mut still: impl FnMut() -> bool) {
        let (vm, vcpu) = current();
        vcpu.in_host(vm, || {
            if still() {
                vm.halt(vcpu.id.index());
            }
        });
    }

    fn kick(cpu: CpuId) {
        let (vm, vcpu) = current();
        vcpu.in_host(vm, || vm.kick(vcpu.id.index(), cpu));
    }

    fn yield_to(cpu: CpuId) -> Yielded {
        let (vm, vcpu) = current();
        vcpu.in_host(vm, || vm.yield_to(vcpu.id.index(), cpu))
    }

    fn is_preempted(cpu: CpuId) -> bool {
        Self::point();
        let (vm, vcpu) = current();
        cpu != vcpu.id && vm.guest.is_preempted(cpu)
    }

    fn guest_addr(object: *const u8, len: usize) -> Option<GuestAddr> {
        current().0.board.guest_addr(object, len)
    }

    fn platform_call(call: PlatformCall) -> Reply {
        let (vm, vcpu) = current();
        vcpu.in_host(vm, || vm.platform_call(vcpu.id.index(), call))
    }

    /// By `membarrier`, which serialises every running thread of the process; a
    /// vCPU that does not run was serialised when it was taken away.
    fn serialize(_cpu: CpuId) -> bool {
        membarrier(MembarrierCommand::PrivateExpedited).is_ok()
            || membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
                && membarrier(MembarrierCommand::PrivateExpedited).is_ok()
    }
}
