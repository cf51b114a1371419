//! The mock machine: CPUs, clock, preemption, script, log.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::{Event, Oracle, Step, Trigger, What};
use crate::sync::atomic::AtomicBool;
use crate::{CpuCount, CpuId, GuestAddr, Nanos, PlatformCall, Reply};

type CallHandler = Box<dyn FnMut(CpuId, PlatformCall) -> Reply + Send>;

/// A machine whose every move the test decides.
pub struct Machine {
    pub(super) count: CpuCount,
    /// Pending kicks: the one part of the machine whose ordering matters, so it
    /// is made of the shim's atomics.
    pub(super) kicks: Vec<AtomicBool>,
    state: Mutex<State>,
    /// Halted threads wait here for a kick.
    pub(super) kicked: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) now: Nanos,
    pub(super) per_relax: Nanos,
    pub(super) oracle: Oracle,
    pub(super) has_yield: bool,
    pub(super) has_serialize: bool,
    pub(super) cpus: Vec<Cpu>,
    script: Vec<(Trigger, Vec<Step>)>,
    counts: HashMap<(CpuId, &'static str), u64>,
    pub(super) log: Vec<Event>,
    pub(super) on_call: Option<CallHandler>,
    pub(super) mappings: Vec<(usize, usize, GuestAddr)>,
}

#[derive(Clone, Default)]
pub(super) struct Cpu {
    pub(super) history: Vec<(Nanos, bool)>,
    pub(super) irq_depth: u32,
    pub(super) spurious_wake: bool,
}

impl Machine {
    /// A machine with `cpus` CPUs at time 0, with an exact oracle, directed
    /// yield and serialisation.
    ///
    /// # Panics
    /// If `cpus` is 0.
    pub fn new(cpus: u32) -> Arc<Self> {
        let count = CpuCount::new(cpus).expect("a machine has at least one CPU");
        Arc::new(Self {
            count,
            kicks: count.cpus().map(|_| AtomicBool::new(false)).collect(),
            state: Mutex::new(State {
                has_yield: true,
                has_serialize: true,
                cpus: vec![Cpu::default(); cpus as usize],
                ..State::default()
            }),
            kicked: Condvar::new(),
        })
    }

    /// Make the calling thread be `cpu` of this machine until the result is
    /// dropped. Of several bindings the newest counts.
    ///
    /// # Panics
    /// If the machine has no such CPU.
    pub fn bind(self: &Arc<Self>, cpu: CpuId) -> Bound {
        self.check(cpu);
        Bound {
            binding: super::arch::bind(Arc::clone(self), cpu),
            not_send: std::marker::PhantomData,
        }
    }

    /// Choose how well preemption is reported.
    pub fn set_oracle(&self, oracle: Oracle) {
        self.state().oracle = oracle;
    }

    /// Choose whether the machine has directed yield.
    pub fn set_directed_yield(&self, present: bool) {
        self.state().has_yield = present;
    }

    /// Choose whether the machine has cross-CPU serialisation.
    pub fn set_serialize(&self, present: bool) {
        self.state().has_serialize = present;
    }

    /// Let every turn of a waiting loop move the clock by `step`.
    pub fn advance_per_relax(&self, step: Nanos) {
        self.state().per_relax = step;
    }

    /// Run `steps` when `trigger` happens. Several entries for one trigger run
    /// in the order they were given.
    ///
    /// # Panics
    /// If a step names a CPU that the machine does not have.
    pub fn script(&self, trigger: Trigger, steps: impl IntoIterator<Item = Step>) {
        let steps: Vec<Step> = steps.into_iter().collect();
        for step in &steps {
            if let Step::Preempt(cpu) | Step::Resume(cpu) | Step::Kick(cpu) = step {
                self.check(*cpu);
            }
        }
        self.state().script.push((trigger, steps));
    }

    /// Answer platform calls with `handler`; without one they are refused. The
    /// handler must not use the machine.
    pub fn on_call(&self, handler: impl FnMut(CpuId, PlatformCall) -> Reply + Send + 'static) {
        self.state().on_call = Some(Box::new(handler));
    }

    /// Say that `len` bytes at `object` are at guest-physical `addr`.
    pub fn map(&self, object: *const u8, len: usize, addr: GuestAddr) {
        self.state().mappings.push((object as usize, len, addr));
    }

    /// Move the clock.
    pub fn advance(&self, by: Nanos) {
        self.state().step(Step::Advance(by));
    }

    /// Take `cpu` away (in the record of who runs; its thread is not stopped).
    ///
    /// # Panics
    /// If the machine has no such CPU.
    pub fn preempt(&self, cpu: CpuId) {
        self.check(cpu);
        self.state().step(Step::Preempt(cpu));
    }

    /// Give `cpu` back.
    ///
    /// # Panics
    /// If the machine has no such CPU.
    pub fn resume(&self, cpu: CpuId) {
        self.check(cpu);
        self.state().step(Step::Resume(cpu));
    }

    /// The log so far.
    pub fn log(&self) -> Vec<Event> {
        self.state().log.clone()
    }

    /// The log so far, which then starts afresh.
    pub fn take_log(&self) -> Vec<Event> {
        std::mem::take(&mut self.state().log)
    }

    /// How many turns of waiting loops `cpu` has made.
    pub fn relaxes(&self, cpu: CpuId) -> u64 {
        self.state().count_of(cpu, "relax")
    }

    /// How deeply `cpu` has masked its interrupts.
    pub fn irq_depth(&self, cpu: CpuId) -> u32 {
        self.check(cpu);
        self.state().cpus[cpu.index()].irq_depth
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A test thread that panicked has already failed its test; the others
        // may go on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, cpu: CpuId) {
        if let Err(error) = self.count.check(cpu.get()) {
            panic!("mock machine: {error}");
        }
    }
}

impl State {
    pub(super) fn log(&mut self, cpu: CpuId, what: What) {
        let at = self.now;
        self.log.push(Event { at, cpu, what });
    }

    fn count_of(&self, cpu: CpuId, what: &'static str) -> u64 {
        self.counts.get(&(cpu, what)).copied().unwrap_or(0)
    }

    /// Count an occurrence and run what the script has for it. Returns the CPUs
    /// to kick, which needs the lock released.
    pub(super) fn trigger(
        &mut self,
        cpu: CpuId,
        what: &'static str,
        make: fn(CpuId, u64) -> Trigger,
    ) -> Vec<CpuId> {
        let count = self.counts.entry((cpu, what)).or_default();
        *count += 1;
        let trigger = make(cpu, *count);
        let due: Vec<Step> = self
            .script
            .iter()
            .filter(|(when, _)| *when == trigger)
            .flat_map(|(_, steps)| steps.clone())
            .collect();
        let mut kicks = Vec::new();
        for step in due {
            match step {
                Step::Kick(target) => {
                    self.log(cpu, What::Kicked(target));
                    kicks.push(target);
                }
                Step::WakeSpuriously => self.cpus[cpu.index()].spurious_wake = true,
                other => self.step(other),
            }
        }
        kicks
    }

    pub(super) fn step(&mut self, step: Step) {
        match step {
            Step::Advance(by) => self.now = self.now.plus(by),
            Step::Preempt(cpu) => self.set_preempted(cpu, true),
            Step::Resume(cpu) => self.set_preempted(cpu, false),
            Step::Kick(_) | Step::WakeSpuriously => {
                unreachable!("`trigger` handles what needs the caller")
            }
        }
    }

    fn set_preempted(&mut self, cpu: CpuId, preempted: bool) {
        let now = self.now;
        self.cpus[cpu.index()].history.push((now, preempted));
        let what = if preempted {
            What::Preempted
        } else {
            What::Resumed
        };
        self.log(cpu, what);
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("cpus", &self.count)
            .finish_non_exhaustive()
    }
}

/// The calling thread is a CPU of a mock machine while this lives.
#[derive(Debug)]
pub struct Bound {
    binding: u64,
    not_send: std::marker::PhantomData<*const ()>,
}

impl Drop for Bound {
    fn drop(&mut self) {
        super::arch::unbind(self.binding);
    }
}
