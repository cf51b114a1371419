//! The stepped engine: the same seed gives the same run.

use pv_arch::sync::atomic::{AtomicU32, Ordering};
use pv_arch::{Arch, CpuId, Nanos};
use pv_steal::Platform;
use pv_threads::{
    Engine, GuestCpu, Probe, Program, Report, RunError, Settings, Stop, Strike, ThreadArch,
    Workload, run,
};

fn stepped(seed: u64, change: impl FnOnce(&mut Settings)) -> Result<Report, RunError> {
    let mut settings = Settings {
        duration: Nanos::from_millis(200),
        engine: Engine::Stepped { seed },
        ..Settings::default()
    };
    change(&mut settings);
    let program = Workload::Relay.program(&settings)?;
    run(settings, program, |_| ())
}

#[test]
fn one_seed_is_one_run() {
    let text = |seed| format!("{:?}", stepped(seed, |_| ()).unwrap());
    let first = text(1);
    for _ in 0..3 {
        assert_eq!(text(1), first);
    }
    assert_ne!(text(2), first);
}

#[test]
fn the_accounts_balance_on_every_platform_and_machine() {
    for platform in Platform::ALL {
        for (vcpus, pcpus) in [(1, 1), (3, 1), (8, 3), (16, 16)] {
            let report = stepped(7, |settings| {
                settings.platform = platform;
                settings.vcpus = vcpus;
                settings.pcpus = pcpus;
                settings.duration = Nanos::from_millis(40);
            })
            .unwrap();
            assert!(
                report.is_balanced(),
                "{platform} {vcpus} on {pcpus}: {:#?} {:?}",
                report.checks,
                report.program_error
            );
        }
    }
}

#[test]
fn virtual_time_runs_to_the_end_on_every_host_cpu() {
    let report = stepped(3, |_| ()).unwrap();
    for vcpu in &report.vcpus {
        let late = vcpu.wall_ns.abs_diff(200_000_000);
        assert!(late < 10_000_000, "vCPU {}: {} ns", vcpu.cpu, vcpu.wall_ns);
    }
    let offered = 2 * report.wall_ns();
    assert!(report.pcpu_busy_ns > offered * 9 / 10);
}

#[test]
fn dropped_kicks_are_caught() {
    let error = stepped(5, |settings| {
        settings.drop_kicks = std::num::NonZeroU32::new(20);
        settings.duration = Nanos::from_secs(20);
        settings.watchdog = Nanos::from_millis(300);
    })
    .unwrap_err();
    assert!(
        matches!(
            error,
            RunError::LostWakeUp {
                kicks_dropped: 1..,
                ..
            } | RunError::AllHalted {
                kicks_dropped: 1..,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn bad_settings_are_refused() {
    let error = stepped(1, |settings| settings.pcpus = 0).unwrap_err();
    assert!(matches!(error, RunError::Settings(_)), "{error}");
}

/// Waits for a lock that nobody gives back, then halts for ever.
struct HeldSleepers(AtomicU32);

impl Program for HeldSleepers {
    fn run(&self, cpu: &mut GuestCpu) {
        ThreadArch::probe(Probe::Waits);
        self.0.fetch_add(1, Ordering::Relaxed);
        while !cpu.is_stopping() {
            ThreadArch::halt_while(|| true);
        }
    }
}

#[test]
fn a_held_vcpu_that_halts_does_not_stop_time() {
    let settings = Settings {
        vcpus: 4,
        duration: Nanos::from_millis(100),
        engine: Engine::Stepped { seed: 1 },
        script: vec![Stop {
            strike: Strike::MiddleWaiter { waiters: 3 },
            away: Nanos::from_millis(5),
            yields_end_it: false,
        }],
        ..Settings::default()
    };
    let program = Box::new(HeldSleepers(AtomicU32::new(0)));
    let error = run(settings, program, |_| ()).unwrap_err();
    assert!(matches!(error, RunError::AllHalted { .. }), "{error}");
}

/// A ring in which each vCPU kicks the next and halts, doing nothing else.
struct Hot;

impl Program for Hot {
    fn run(&self, cpu: &mut GuestCpu) {
        let next = (cpu.id().get() + 1) % cpu.count().get();
        while !cpu.is_stopping() {
            ThreadArch::kick(CpuId::new(next));
            cpu.halt_while(|| true);
        }
    }
}

#[test]
fn a_guest_that_halts_all_the_time_balances_too() {
    for (vcpus, pcpus) in [(2, 1), (2, 2), (8, 2)] {
        let settings = Settings {
            vcpus,
            pcpus,
            duration: Nanos::from_millis(100),
            engine: Engine::Stepped { seed: 1 },
            ..Settings::default()
        };
        let report = run(settings, Box::new(Hot), |_| ()).unwrap();
        assert!(
            report.is_balanced(),
            "{vcpus} on {pcpus}: {:#?}",
            report.checks
        );
    }
}
