//! Building a machine, running a guest on it, and the host's timer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pv_arch::{CpuId, Nanos};
use rustix::time::{ClockId, clock_gettime};

use crate::core::{Core, cpu_id};
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
    let vm: &'static Vm = Box::leak(Box::new(Vm::new(settings, count)));
    let program: &'static dyn Program = Box::leak(program);

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
            core.fail(failure, now);
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
    let mut stop_by = Nanos::MAX;
    let mut core = vm.lock();
    while !core.sched.all_absent() {
        let now = vm.now_of_host();
        if !vm.is_stepped() {
            tick(vm, &mut core, now);
        }
        if core.stopping {
            let real = vm.real_now();
            stop_by = stop_by.at_most(real.plus(vm.settings.stop_grace));
            if real > stop_by {
                return Err(does_not_stop(vm, &mut core));
            }
        }
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
        core.stop(now);
    }
    if !core.stopping {
        watch(vm, core, now);
    }
    vm.publish_stop(core);
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
fn watch(vm: &Vm, core: &mut Core, now: Nanos) {
    let kicks_dropped = core.kicks_dropped;
    let failure = if core.sched.all_halted() {
        RunError::AllHalted {
            at: now,
            kicks_dropped,
        }
    } else if let Some((vcpu, asleep)) = core.overslept(vm.settings.watchdog, now) {
        RunError::LostWakeUp {
            cpu: cpu_id(vcpu),
            asleep,
            watchdog: vm.settings.watchdog,
            kicks_dropped,
        }
    } else {
        return;
    };
    core.fail(failure, now);
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

fn does_not_stop(vm: &Vm, core: &mut Core) -> RunError {
    let running = (0..core.vcpus.len())
        .find(|vcpu| core.sched.state(*vcpu) != State::Absent)
        .unwrap_or(0);
    core.failure.take().unwrap_or(RunError::DoesNotStop {
        cpu: cpu_id(running),
        grace: vm.settings.stop_grace,
    })
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
