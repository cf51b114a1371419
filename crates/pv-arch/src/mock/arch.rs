//! The kernel type of the mock.

use std::cell::RefCell;
use std::sync::Arc;

use super::Machine;
use crate::{Arch, CpuCount, CpuId, GuestAddr, Nanos, PlatformCall, Reply, Yielded};

#[cfg(pv_loom)]
use loom::thread_local;

thread_local! {
    /// Who this thread is; the newest binding is last.
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's macro takes no const")]
    static BINDINGS: RefCell<Vec<Binding>> = RefCell::new(Vec::new());
}

struct Binding {
    number: u64,
    machine: Arc<Machine>,
    cpu: CpuId,
}

/// Returns the number of the binding, for [`unbind`].
pub(super) fn bind(machine: Arc<Machine>, cpu: CpuId) -> u64 {
    BINDINGS.with(|bindings| {
        let mut bindings = bindings.borrow_mut();
        let number = bindings.last().map_or(0, |newest| newest.number + 1);
        bindings.push(Binding {
            number,
            machine,
            cpu,
        });
        number
    })
}

pub(super) fn unbind(number: u64) {
    BINDINGS.with(|bindings| {
        let mut bindings = bindings.borrow_mut();
        bindings.retain(|binding| binding.number != number);
    });
}

fn current() -> (Arc<Machine>, CpuId) {
    BINDINGS.with(|bindings| {
        let bindings = bindings.borrow();
        let newest = bindings
            .last()
            .expect("this thread is no CPU of a mock machine: call Machine::bind first");
        (Arc::clone(&newest.machine), newest.cpu)
    })
}

/// A kernel whose machine is the [`Machine`] that the calling thread is bound
/// to (with [`Machine::bind`]). Every method panics on a thread that is not.
#[derive(Clone, Copy, Debug, Default)]
pub struct MockArch;

impl Arch for MockArch {
    /// The nesting depth before the save.
    type IrqState = u32;

    fn this_cpu() -> CpuId {
        current().1
    }

    fn cpu_count() -> CpuCount {
        current().0.cpu_count()
    }

    fn now() -> Nanos {
        let (machine, cpu) = current();
        machine.now(cpu)
    }

    fn relax_bounded() {
        let (machine, cpu) = current();
        machine.relax(cpu);
        crate::sync::hint::relax_bounded();
    }

    fn relax_unbounded() {
        let (machine, cpu) = current();
        machine.relax(cpu);
        crate::sync::hint::relax_unbounded();
    }

    fn irq_save() -> u32 {
        let (machine, cpu) = current();
        machine.irq_save(cpu)
    }

    fn irq_restore(before: u32) {
        let (machine, cpu) = current();
        machine.irq_restore(cpu, before);
    }

    fn halt_while(still: impl FnMut() -> bool) {
        let (machine, cpu) = current();
        machine.halt_while(cpu, still);
    }

    fn kick(target: CpuId) {
        let (machine, cpu) = current();
        machine.kick(cpu, target);
    }

    fn yield_to(target: CpuId) -> Yielded {
        let (machine, cpu) = current();
        machine.yield_to(cpu, target)
    }

    fn is_preempted(target: CpuId) -> bool {
        let (machine, cpu) = current();
        machine.is_preempted(cpu, target)
    }

    fn guest_addr(object: *const u8, len: usize) -> Option<GuestAddr> {
        current().0.guest_addr(object, len)
    }

    fn platform_call(call: PlatformCall) -> Reply {
        let (machine, cpu) = current();
        machine.platform_call(cpu, call)
    }

    fn serialize(target: CpuId) -> bool {
        let (machine, cpu) = current();
        machine.serialize(cpu, target)
    }
}
