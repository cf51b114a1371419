//! Building a machine, running a guest on it, and the host's timer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pv_arch::{CpuId, Nanos};
use rustix::time::{ClockId, clock_gettime};

use crate::core::{Core, Owed, cpu_id};
use crate::current::{self, Current};
use crate::error::RunError;
use crate::guest::{GuestCpu, GuestResult, Program};
use crate::report::{Report, VcpuResult};
use crate::sched::State;
use crate::settings::Settings;
use crate::signal;
use crate::vm::Vm;

/// The controller looks at everything at least this often.
const LONGEST_NAP: Nanos = Nanos::from_millis(10);
/// The caller hears of progress this often.
const PROGRESS_EVERY: Duration = Duration::from_millis(20);

/// Run `program` on a machine of these settings, to the end.
///
/// `progress` is called now and then with the part of the run that is over, in
/// permille, from the calling thread.
///
/// # Panics
/// Only if the harness itself is wrong; a panic of the guest is a [`RunError`].
pub fn run(
    settings: Settings,
    program: Box<dyn Program>,
    mut progress: impl FnMut(u32),
) -> Result<Report, RunError> {
    let count = settings.check()?;
    signal::install(current::interrupted).map_err(|errno| RunError::Os {
        what: "installing the preemption signal",
        error: errno.into(),
    })?;
    // Never freed; see `Vm`.
    let program: &'static dyn Program = Box::leak(program);
    let is_owed: Owed = Box::leak(Box::new(|cpu| program.is_owed_wake_up(cpu)));
    let vm: &'static Vm = Box::leak(Box::new(Vm::new(settings, count, is_owed)));

    let threads: Vec<JoinHandle<VcpuResult>> = count
        .cpus()
        .map(|cpu| {
            thread::Builder::new()
                .name(format!("vcpu {}", cpu.get()))
                .spawn(move || vcpu_thread(vm, cpu, program))
                .map_err(|error| RunError::Os {
                    what: "creating a vCPU's thread",
                    error,
                })
        })
        .collect::<Result<_, _>>()?;
    vm.power_on();
    // The timer has a thread of its own: `progress` may allocate, and must be
    // able to wait for a vCPU that was stopped inside the allocator.
    let timer = thread::Builder::new()
        .name("host timer".to_owned())
        .spawn(move || control(vm))
        .map_err(|error| RunError::Os {
            what: "creating the host's timer thread",
            error,
        })?;
    while !timer.is_finished() {
        thread::sleep(PROGRESS_EVERY);
        progress(permille(vm.now_of_host(), vm.settings.duration));
    }
    timer.join().expect("the host's timer does not panic")?;

    let results: Vec<VcpuResult> = threads
        .into_iter()
        .map(|thread| thread.join().expect("a vCPU's thread catches its panics"))
        .collect();
    let mut core = vm.lock();
    if let Some(failure) = core.failure.take() {
        return Err(failure);
    }
    Ok(Report::new(vm, &core, &results, program.verify()))
}

/// What a vCPU's thread does from beginning to end.
fn vcpu_thread(vm: &'static Vm, cpu: CpuId, program: &'static dyn Program) -> VcpuResult {
    let current = Current::adopt(vm, cpu);
    let vcpu = current.vcpu;
    vcpu.gate.pass();
    if !vm.is_stepped() {
        vm.enter(cpu.index());
    }
    current.enter_guest();

    let outcome = catch_unwind(AssertUnwindSafe(|| guest(vm, cpu, program)));

    vcpu.leave_guest();
    let failure = match &outcome {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(RunError::Register { cpu, error: *error }),
        Err(panic) => Some(RunError::GuestPanicked {
            cpu,
            message: panic_message(panic.as_ref()),
        }),
    };
    // The thread's own account, on its own clocks, before the host closes its.
    let wall = {
        let core = vm.lock();
        vm.now_of_running(&core, cpu.index()).since(vm.powered_on())
    };
    vm.exit(cpu.index(), |core, now| {
        if let Some(failure) = failure {
            core.fail(failure);
        }
        core.finish(cpu.index(), now);
    });
    VcpuResult {
        guest: outcome.ok().and_then(Result::ok).unwrap_or_default(),
        wall,
        cpu_time: cpu_time(),
    }
}

fn guest(
    vm: &'static Vm,
    cpu: CpuId,
    program: &dyn Program,
) -> Result<GuestResult, pv_steal::RegisterError> {
    let (mut guest, host_before) = GuestCpu::boot(vm, cpu)?;
    program.run(&mut guest);
    let result = guest.shut_down(host_before);
    vm.board.shut_down(cpu)?;
    Ok(result)
}

/// The host's timer: ends slices and holds, ends the run, watches for vCPUs that
/// sleep for ever. Allocates nothing while vCPUs run: one of them may have been
/// stopped inside the allocator.
fn control(vm: &'static Vm) -> Result<(), RunError> {
    let mut patience = Patience::default();
    let mut core = vm.lock();
    while !core.sched.all_absent() {
        let now = vm.now_of_host();
        if !vm.is_stepped() {
            tick(vm, &mut core, now);
        }
        patience.check(vm, &mut core, now)?;
        let nap = nap(vm, &core, now);
        let (guard, _) = vm
            .changed
            .wait_timeout(core, nap)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        core = guard;
    }
    Ok(())
}

/// One turn of the live engine's timer.
fn tick(vm: &Vm, core: &mut Core, now: Nanos) {
    if now >= vm.settings.duration && !core.stopping {
        core.stop();
    }
    if !core.stopping {
        watch(core, now);
    }
    vm.publish_stop(core);
    if core.is_over_but_for_sleepers() {
        core.wake_the_rest(now);
    }
    vm.dispatch(core, now);
    for pcpu in 0..vm.settings.pcpus as usize {
        if let Some(vcpu) = core.sched.expired(pcpu, now)
            && !core.vcpus[vcpu].resched
        {
            vm.request_preempt(core, vcpu, now);
        }
    }
}

/// Look for lost wake-ups.
fn watch(core: &mut Core, now: Nanos) {
    if core.sched.all_halted() {
        core.fail(core.nobody_is_awake(now));
    } else if let Some(failure) = core.overslept(now) {
        core.fail(failure);
    }
}

fn nap(vm: &Vm, core: &Core, now: Nanos) -> Duration {
    let next = core
        .sched
        .next_event(now)
        .unwrap_or(Nanos::MAX)
        .at_most(vm.settings.duration.max(now));
    let nap = next.since(now).at_most(LONGEST_NAP);
    // A slice that is over but not yet acted upon must not make this spin.
    Duration::from_nanos(nap.get().max(50_000))
}

/// How long the host has waited for the guest, in real time.
#[derive(Default)]
struct Patience {
    stopping_since: Option<Nanos>,
    /// The latest virtual time seen, and since when.
    stood_still: Option<(Nanos, Nanos)>,
}

impl Patience {
    /// Give up on a guest that does not stop, or that lets no virtual time pass.
    fn check(&mut self, vm: &Vm, core: &mut Core, now: Nanos) -> Result<(), RunError> {
        let grace = vm.settings.stop_grace;
        let real = vm.real_now();
        if core.stopping {
            let since = *self.stopping_since.get_or_insert(real);
            if real.since(since) > grace {
                return Err(does_not_stop(core, grace));
            }
        }
        if vm.is_stepped() {
            let (then, since) = *self.stood_still.get_or_insert((now, real));
            if then != now {
                self.stood_still = Some((now, real));
            } else if real.since(since) > grace {
                return Err(RunError::TimeStandsStill { real: grace });
            }
        }
        Ok(())
    }
}

fn does_not_stop(core: &mut Core, grace: Nanos) -> RunError {
    let present = |vcpu: &usize| core.sched.state(*vcpu) != State::Absent;
    let cpu = cpu_id((0..core.vcpus.len()).find(present).unwrap_or(0));
    core.failure
        .take()
        .unwrap_or(RunError::DoesNotStop { cpu, grace })
}

fn permille(now: Nanos, duration: Nanos) -> u32 {
    let permille = now.get().saturating_mul(1000) / duration.get().max(1);
    u32::try_from(permille.min(1000)).unwrap_or(1000)
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no message".to_owned())
}

fn cpu_time() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    Nanos::from_secs(part(time.tv_sec)).plus(Nanos::new(part(time.tv_nsec)))
}
