//! The kernel type of guests that run in threads.

use pv_arch::sync::hint;
use pv_arch::{Arch, CpuCount, CpuId, GuestAddr, Nanos, PlatformCall, Reply, Yielded};
use rustix::thread::{MembarrierCommand, membarrier};

use crate::current::Current;
use crate::script::Probe;
use crate::vm::Vm;

/// A guest kernel on a machine of this harness. Every method panics on a thread
/// that is no vCPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadArch;

impl ThreadArch {
    /// Tell the host what this vCPU does with the watched lock, so that its
    /// script can strike. The host may stop the vCPU inside this call.
    pub fn probe(probe: Probe) {
        Current::get().host(|vm, vcpu| vm.probe(vcpu, probe));
    }

    /// In the stepped engine every call of the architecture is a point at which
    /// time passes and the host may act; in the live one nothing is needed, the
    /// signal comes when it comes.
    fn point() {
        let current = Current::get();
        if current.vm.is_stepped() {
            current.host(|vm, vcpu| vm.exit(vcpu, |_, _| ()));
        }
    }
}

impl Arch for ThreadArch {
    /// Nothing: the only interrupt of this machine is the kick.
    type IrqState = ();

    fn this_cpu() -> CpuId {
        Current::get().vcpu.id
    }

    fn cpu_count() -> CpuCount {
        Current::get().vm.count
    }

    fn now() -> Nanos {
        let current = Current::get();
        if current.vm.is_stepped() {
            current.host(|vm, vcpu| vm.exit(vcpu, |_, now| now))
        } else {
            current.vm.real_now()
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
        // The condition is guest code, so it is evaluated in guest mode. No wake-up
        // can be lost in between: the only interrupt is the kick, and it sticks.
        if still() {
            Current::get().host(Vm::halt);
        }
    }

    fn kick(cpu: CpuId) {
        Current::get().host(|vm, vcpu| vm.kick(vcpu, cpu));
    }

    fn yield_to(cpu: CpuId) -> Yielded {
        Current::get().host(|vm, vcpu| vm.yield_to(vcpu, cpu))
    }

    fn is_preempted(cpu: CpuId) -> bool {
        Self::point();
        let Current { vm, vcpu } = Current::get();
        cpu != vcpu.id && vm.guest.is_preempted(cpu)
    }

    fn guest_addr(object: *const u8, len: usize) -> Option<GuestAddr> {
        Current::get().vm.board.guest_addr(object, len)
    }

    fn platform_call(call: PlatformCall) -> Reply {
        Current::get().host(|vm, vcpu| vm.platform_call(vcpu, call))
    }

    /// By `membarrier`, which serialises every running thread of the process; a
    /// vCPU that does not run was serialised when it was taken away.
    fn serialize(_cpu: CpuId) -> bool {
        membarrier(MembarrierCommand::PrivateExpedited).is_ok()
            || membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
                && membarrier(MembarrierCommand::PrivateExpedited).is_ok()
    }
}
