//! The guest kernel: what it keeps for each vCPU, and what it accounts.
//!
//! It reads nothing but its records, its clock and its own memory.

use pv_arch::sync::atomic::Ordering;
use pv_arch::{Arch, CpuCount, CpuId, Nanos};
use pv_steal::{FaultCounts, StealAccount, StealClock};

use crate::ThreadArch;
use crate::current::Current;
use crate::platform::Driver;
use crate::timeline::Times;
use crate::vm::Vm;

/// A guest program: the same code on every vCPU.
///
/// It must not allocate, print or take locks of the standard library while it
/// runs: its thread may be stopped at any instruction, and with it whatever it
/// holds. It ends soon after [`GuestCpu::is_stopping`] says so.
pub trait Program: Send + Sync + 'static {
    /// What to do on `cpu`.
    fn run(&self, cpu: &mut GuestCpu);

    /// Whether `cpu`, which has halted, should be awake: what it waits for has
    /// come. The host asks at the end of the run, when no kick can come any more,
    /// and before it calls a long sleep a lost wake-up. `None` if the program
    /// cannot tell. Must not allocate.
    fn is_owed_wake_up(&self, cpu: CpuId) -> Option<bool> {
        let _ = cpu;
        None
    }

    /// Whether what the program did is right, looked at after the run; the error
    /// says what is wrong.
    fn verify(&self) -> Result<(), String> {
        Ok(())
    }
}

/// The guest kernel on one vCPU.
pub struct GuestCpu {
    vm: &'static Vm,
    id: CpuId,
    driver: &'static dyn Driver,
    clock: StealClock,
    account: StealAccount,
    last: Nanos,
    times: Times,
    next_look: u32,
}

impl std::fmt::Debug for GuestCpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuestCpu")
            .field("id", &self.id)
            .field("times", &self.times)
            .finish_non_exhaustive()
    }
}

/// What the guest on one vCPU found at the end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GuestResult {
    pub times: Times,
    pub faults: FaultCounts,
    /// What the host had counted when the guest began to count ..
    pub host_before: Times,
    /// .. and when it ended.
    pub host_after: Times,
}

/// How often to try for a moment at which guest and host have the same steal.
const MOMENT_TRIES: u32 = 16;
/// How long it may take.
const MOMENT: Nanos = Nanos::from_micros(100);

impl GuestCpu {
    /// Boot: register the record and begin to account.
    pub(crate) fn boot(
        vm: &'static Vm,
        id: CpuId,
    ) -> Result<(Self, Times), pv_steal::RegisterError> {
        let driver = vm.board.boot(id)?;
        vm.guest.introduce(id, driver);
        let mut cpu = Self {
            vm,
            id,
            driver,
            clock: StealClock::new(),
            account: StealAccount::new(),
            last: Nanos::ZERO,
            times: Times::default(),
            next_look: id.get(),
        };
        let host = cpu.same_moment(|cpu| {
            cpu.clock.rebase();
            cpu.last = cpu.clock.read::<ThreadArch>(cpu.driver.source()).at;
        });
        Ok((cpu, host))
    }

    /// Account the rest, give the record up.
    pub(crate) fn shut_down(mut self, host_before: Times) -> GuestResult {
        let host_after = self.same_moment(Self::tick);
        GuestResult {
            times: self.times,
            faults: self.clock.faults(),
            host_before,
            host_after,
        }
    }

    /// This vCPU's number.
    pub fn id(&self) -> CpuId {
        self.id
    }

    /// How many vCPUs the guest has.
    pub fn count(&self) -> CpuCount {
        self.vm.count
    }

    /// Whether the run is over.
    pub fn is_stopping(&self) -> bool {
        self.vm.stopping.load(Ordering::Relaxed)
    }

    /// What the guest has accounted so far. (`wake_ns` is always 0: a guest
    /// cannot tell.)
    pub fn times(&self) -> Times {
        self.times
    }

    /// Account the time since the last call: what was not stolen was used.
    pub fn tick(&mut self) {
        let used = self.account_interval();
        self.times.run_ns += used.get();
    }

    /// Halt while `still()`, and account that time as idle.
    pub fn halt_while(&mut self, still: impl FnMut() -> bool) {
        self.tick();
        self.driver.set_idle(true);
        ThreadArch::halt_while(still);
        self.driver.set_idle(false);
        let unused = self.account_interval();
        self.times.idle_ns += unused.get();
    }

    /// Look at the next other vCPU, in turn.
    pub fn look_around(&mut self) {
        let count = self.count().get();
        self.next_look = (self.next_look + 1) % count;
        let target = CpuId::new(self.next_look);
        if target == self.id {
            return;
        }
        let is_preempted = ThreadArch::is_preempted(target);
        self.vm.guest.looked_at(target, is_preempted);
    }

    /// Give the record up and register it again, as around an unplug of this CPU,
    /// while others may be looking at it. What is stolen meanwhile is not seen.
    pub fn register_again(&mut self) -> Result<(), pv_steal::RegisterError> {
        self.tick();
        self.vm.board.shut_down(self.id)?;
        self.vm.board.boot(self.id)?;
        self.clock.rebase();
        self.tick();
        Ok(())
    }

    /// Work for about `rounds` times a hundred nanoseconds, looking around and
    /// accounting now and then, as a kernel with a timer tick would.
    pub fn compute(&mut self, rounds: u32) {
        /// Rounds between two looks at another vCPU ..
        const LOOK_EVERY: u32 = 16;
        /// .. and between two ticks.
        const TICK_EVERY: u32 = 256;
        for round in 1..=rounds {
            std::hint::black_box(churn(round));
            ThreadArch::relax_bounded();
            if round.is_multiple_of(LOOK_EVERY) {
                self.look_around();
            }
            if round.is_multiple_of(TICK_EVERY) {
                self.tick();
                if self.is_stopping() {
                    return;
                }
            }
        }
    }

    fn account_interval(&mut self) -> Nanos {
        let reading = self.clock.read::<ThreadArch>(self.driver.source());
        let interval = reading.at.since(self.last);
        self.last = self.last.max(reading.at);
        let split = self.account.split(reading.total, interval);
        self.times.steal_ns += split.stolen.get();
        split.used
    }

    /// What the host has counted. For comparing only: no guest can ask that.
    fn host_times() -> Times {
        Current::get().host(|vm, vcpu| vm.exit(vcpu, |core, now| core.times_now(vcpu, now)))
    }

    /// Do `work` and take what the host has counted, such that neither the host
    /// nor the operating system came between the two.
    fn same_moment(&mut self, mut work: impl FnMut(&mut Self)) -> Times {
        let mut host = Times::default();
        for _ in 0..MOMENT_TRIES {
            let before = self.driver.source().steal();
            let began = ThreadArch::now();
            work(self);
            host = Self::host_times();
            let took = ThreadArch::now().since(began);
            if self.driver.source().steal() == before && took < MOMENT {
                break;
            }
        }
        host
    }
}

/// Some hundred cycles of work that nothing can take away.
fn churn(seed: u32) -> u32 {
    let mut x = seed | 1;
    for _ in 0..48 {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
    }
    x
}
