//! Which machine and vCPU the calling thread is.

use std::cell::Cell;

use pv_arch::CpuId;

use crate::vcpu::Vcpu;
use crate::vm::Vm;

/// A vCPU on its own thread, with the machine that it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Current {
    pub vm: &'static Vm,
    pub vcpu: &'static Vcpu,
}

thread_local! {
    /// Has no destructor and is constant until set, so a signal handler may
    /// read it.
    static CURRENT: Cell<Option<Current>> = const { Cell::new(None) };
}

impl Current {
    /// Make the calling thread this vCPU, in host mode.
    pub fn adopt(vm: &'static Vm, cpu: CpuId) -> Self {
        let vcpu = &vm.vcpus[cpu.index()];
        vcpu.adopt_thread();
        let current = Self { vm, vcpu };
        CURRENT.set(Some(current));
        current
    }

    /// # Panics
    /// On a thread that is no vCPU: guest code runs nowhere else.
    pub fn get() -> Self {
        CURRENT
            .get()
            .expect("guest code must run on a vCPU's thread")
    }

    /// Leave guest mode, do `work` for this vCPU, and come back.
    pub fn host<R>(self, work: impl FnOnce(&'static Vm, usize) -> R) -> R {
        let work = || work(self.vm, self.vcpu.id.index());
        self.vcpu.in_host(work, || self.make_room(false))
    }

    /// Let guest code run.
    pub fn enter_guest(self) {
        self.vcpu.enter_guest(|| self.make_room(false));
    }

    fn make_room(self, was_in_guest: bool) {
        self.vm.preempt(self.vcpu.id.index(), was_in_guest);
    }
}

/// The preemption signal came on this thread.
pub(crate) fn interrupted() {
    if let Some(current) = CURRENT.get() {
        let from_guest = || current.make_room(true);
        let on_the_way_back = || current.make_room(false);
        current.vcpu.interrupted(from_guest, on_the_way_back);
    }
}
