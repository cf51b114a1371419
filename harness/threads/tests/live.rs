//! The live engine: vCPUs are really taken away, and the guest knows it.

use std::hint::black_box;

use pv_arch::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use pv_arch::{Arch, CpuId, Nanos, Yielded};
use pv_steal::Platform;
use pv_threads::{
    Engine, GuestCpu, Program, Report, RunError, Settings, ThreadArch, VcpuReport, Workload, run,
};

fn settings(vcpus: u32, ms: u64) -> Settings {
    Settings {
        vcpus,
        duration: Nanos::from_millis(ms),
        ..Settings::default()
    }
}

fn run_workload(settings: Settings, workload: Workload) -> Result<Report, RunError> {
    let program = workload.program(&settings)?;
    run(settings, program, |_| ())
}

fn assert_balanced(report: &Report) {
    assert!(
        report.is_balanced(),
        "{:#?} {:?}",
        report.checks,
        report.program_error
    );
}

fn sum(report: &Report, of: impl Fn(&VcpuReport) -> u64) -> u64 {
    report.vcpus.iter().map(of).sum()
}

#[test]
fn the_accounts_balance_on_every_platform() {
    for platform in Platform::ALL {
        let settings = Settings {
            platform,
            ..settings(8, 400)
        };
        let report = run_workload(settings, Workload::Relay).unwrap();
        println!("{platform}");
        assert_balanced(&report);
        assert!(sum(&report, |vcpu| vcpu.guest.steal_ns) > 0, "{platform}");
        let seen = sum(&report, |vcpu| vcpu.seen_preempted);
        // Arm's record does not tell; all the others do.
        assert_eq!(seen == 0, platform == Platform::Arm, "{platform}: {seen}");
    }
}

#[test]
fn two_eight_and_sixty_four_vcpus_lose_no_wake_up_in_five_seconds() {
    for vcpus in [2, 8, 64] {
        let settings = Settings {
            // A loaded computer may keep a team-mate waiting for seconds.
            watchdog: Nanos::from_secs(4),
            ..settings(vcpus, 5000)
        };
        let report = run_workload(settings, Workload::Relay).unwrap();
        assert_balanced(&report);
        let halts = sum(&report, |vcpu| vcpu.counts.halts);
        assert!(
            halts > u64::from(vcpus),
            "{vcpus} vCPUs halted {halts} times"
        );
    }
}

#[test]
fn one_team_that_sleeps_for_ever_is_caught_by_the_watchdog() {
    let settings = Settings {
        drop_kicks: std::num::NonZeroU32::new(400),
        watchdog: Nanos::from_millis(100),
        ..settings(8, 20_000)
    };
    let error = run_workload(settings, Workload::Relay).unwrap_err();
    assert!(
        matches!(error, RunError::LostWakeUp { asleep, kicks_dropped: 1.., .. }
            if asleep > Nanos::from_millis(100)),
        "{error}"
    );
}

#[test]
fn a_guest_in_which_nobody_is_awake_is_caught_at_once() {
    let settings = Settings {
        drop_kicks: std::num::NonZeroU32::new(20),
        watchdog: Nanos::from_secs(20),
        ..settings(2, 20_000)
    };
    let error = run_workload(settings, Workload::Relay).unwrap_err();
    assert!(
        matches!(
            error,
            RunError::AllHalted {
                kicks_dropped: 1..,
                ..
            }
        ),
        "{error}"
    );
}

/// Kicks itself, then halts; sends kicks and yields where no vCPU is.
#[derive(Default)]
struct Selfish {
    in_host_only: bool,
}

impl Program for Selfish {
    fn run(&self, cpu: &mut GuestCpu) {
        while !cpu.is_stopping() {
            ThreadArch::kick(CpuId::new(99));
            assert_eq!(ThreadArch::yield_to(CpuId::new(99)), Yielded::NothingToGain);
            assert_eq!(ThreadArch::yield_to(cpu.id()), Yielded::NothingToGain);
            assert!(!ThreadArch::is_preempted(cpu.id()));
            assert!(!ThreadArch::is_preempted(CpuId::new(99)));
            if !self.in_host_only {
                ThreadArch::kick(cpu.id());
                ThreadArch::kick(cpu.id());
                ThreadArch::halt_while(|| true);
            }
        }
    }
}

#[test]
fn a_kick_to_a_running_vcpu_ends_its_next_halt_at_once() {
    for engine in [Engine::Live, Engine::Stepped { seed: 5 }] {
        let settings = Settings {
            engine,
            ..settings(2, 100)
        };
        let report = run(settings, Box::<Selfish>::default(), |_| ()).unwrap();
        for vcpu in &report.vcpus {
            assert!(vcpu.counts.kicks > 10, "{engine:?} {:?}", vcpu.counts);
            assert_eq!(vcpu.counts.halts, 0, "{engine:?}");
        }
    }
}

#[test]
fn a_vcpu_that_hardly_leaves_host_mode_is_taken_away_on_the_way_out() {
    let settings = Settings {
        pcpus: 1,
        ..settings(2, 600)
    };
    let selfish = Selfish { in_host_only: true };
    let report = run(settings, Box::new(selfish), |_| ()).unwrap();
    for vcpu in &report.vcpus {
        let share = vcpu.host.run_ns * 100 / vcpu.wall_ns;
        assert!(
            (25..=75).contains(&share),
            "vCPU {} ran {share} %",
            vcpu.cpu
        );
    }
}

/// Catches a panic out of a halt condition, and goes on.
struct Stubborn;

impl Program for Stubborn {
    fn run(&self, cpu: &mut GuestCpu) {
        let caught = std::panic::catch_unwind(|| {
            ThreadArch::halt_while(|| panic!("in a condition"));
        });
        assert!(caught.is_err());
        while !cpu.is_stopping() {
            cpu.compute(100);
        }
    }
}

#[test]
fn a_guest_that_catches_a_panic_is_still_taken_away() {
    let settings = Settings {
        pcpus: 1,
        ..settings(2, 600)
    };
    let report = run(settings, Box::new(Stubborn), |_| ()).unwrap();
    assert_balanced(&report);
    for vcpu in &report.vcpus {
        assert!(vcpu.counts.preemptions > 3, "{:?}", vcpu.counts);
    }
}

/// Spends its time in a halt condition.
struct Thoughtful;

impl Program for Thoughtful {
    fn run(&self, cpu: &mut GuestCpu) {
        while !cpu.is_stopping() {
            ThreadArch::halt_while(|| {
                let until = ThreadArch::now().plus(Nanos::from_millis(50));
                while ThreadArch::now() < until {
                    ThreadArch::relax_bounded();
                }
                false
            });
        }
    }
}

#[test]
fn a_halt_condition_is_guest_code_and_can_be_preempted() {
    let settings = Settings {
        pcpus: 1,
        ..settings(2, 600)
    };
    let report = run(settings, Box::new(Thoughtful), |_| ()).unwrap();
    for vcpu in &report.vcpus {
        assert!(vcpu.counts.preemptions > 10, "{:?}", vcpu.counts);
    }
}

#[test]
fn spinning_vcpus_share_the_host_cpus_fairly() {
    let report = run_workload(settings(6, 1200), Workload::Spinners).unwrap();
    assert_balanced(&report);
    for vcpu in &report.vcpus {
        // Two sixths of the time, give or take what a loaded computer does.
        let share = vcpu.host.run_ns * 100 / vcpu.wall_ns;
        assert!(
            (20..=45).contains(&share),
            "vCPU {} ran {share} %",
            vcpu.cpu
        );
    }
}

/// Counts in a loop without a single call, until somebody stops it.
#[derive(Default)]
struct Closed {
    over: AtomicBool,
    turns: [AtomicU64; 3],
}

impl Program for Closed {
    fn run(&self, cpu: &mut GuestCpu) {
        let turns = &self.turns[cpu.id().index()];
        while !cpu.is_stopping() {
            turns.fetch_add(1, Ordering::Relaxed);
            black_box(&self.over);
        }
    }

    fn verify(&self) -> Result<(), String> {
        let starved = self
            .turns
            .iter()
            .position(|turns| turns.load(Ordering::Relaxed) == 0);
        starved.map_or(Ok(()), |cpu| Err(format!("vCPU {cpu} never ran")))
    }
}

#[test]
fn a_vcpu_in_a_loop_without_calls_is_taken_away() {
    let settings = Settings {
        pcpus: 1,
        ..settings(3, 600)
    };
    let report = run(settings, Box::<Closed>::default(), |_| ()).unwrap();
    assert_balanced(&report);
    for vcpu in &report.vcpus {
        assert!(vcpu.counts.preemptions >= 3, "{:?}", vcpu.counts);
        assert!(vcpu.host.steal_ns > vcpu.wall_ns / 2);
    }
}

/// vCPU 0 halts for the whole run; vCPU 1 watches how that looks.
#[derive(Default)]
struct Sleeper {
    asleep: AtomicBool,
    looks: AtomicU64,
    preempted: AtomicU64,
}

impl Program for &'static Sleeper {
    fn run(&self, cpu: &mut GuestCpu) {
        if cpu.id() == CpuId::BOOT {
            self.asleep.store(true, Ordering::Release);
            while !cpu.is_stopping() {
                cpu.halt_while(|| true);
            }
            return;
        }
        while !self.asleep.load(Ordering::Acquire) {
            ThreadArch::relax_unbounded();
        }
        while !cpu.is_stopping() {
            self.looks.fetch_add(1, Ordering::Relaxed);
            if ThreadArch::is_preempted(CpuId::BOOT) {
                self.preempted.fetch_add(1, Ordering::Relaxed);
            }
            cpu.compute(8);
        }
    }
}

#[test]
fn a_halted_vcpu_looks_preempted_on_hosts_that_mark_it() {
    for mark_halted in [false, true] {
        let sleeper: &'static Sleeper = Box::leak(Box::default());
        let settings = Settings {
            mark_halted,
            ..settings(2, 200)
        };
        run(settings, Box::new(sleeper), |_| ()).unwrap();
        let looks = sleeper.looks.load(Ordering::Relaxed);
        let preempted = sleeper.preempted.load(Ordering::Relaxed);
        // The first looks may come before the halt.
        let share = preempted * 100 / looks.max(1);
        assert_eq!(share > 50, mark_halted, "{preempted} of {looks}");
    }
}

/// vCPU 0 gives its time to vCPU 1 whenever that one is preempted.
#[derive(Default)]
struct Giver {
    boosted: AtomicU64,
    refused: AtomicU64,
}

impl Program for &'static Giver {
    fn run(&self, cpu: &mut GuestCpu) {
        while !cpu.is_stopping() {
            cpu.compute(16);
            let target = CpuId::new(1);
            if cpu.id() == CpuId::BOOT {
                let counter = match ThreadArch::yield_to(target) {
                    Yielded::Boosted => &self.boosted,
                    Yielded::NothingToGain | Yielded::Unsupported => &self.refused,
                };
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

#[test]
fn a_directed_yield_runs_a_preempted_target() {
    let program: &'static Giver = Box::leak(Box::default());
    let settings = Settings {
        pcpus: 1,
        ..settings(2, 200)
    };
    let report = run(settings, Box::new(program), |_| ()).unwrap();
    assert_balanced(&report);
    let boosted = program.boosted.load(Ordering::Relaxed);
    assert!(boosted >= 5, "{boosted}");
    assert_eq!(report.vcpus[1].counts.boosts, boosted);
    // On one host CPU the target is always preempted while vCPU 0 runs.
    assert_eq!(program.refused.load(Ordering::Relaxed), 0);
    let [giver, target] = [0, 1].map(|vcpu| report.vcpus[vcpu].host.run_ns);
    assert!(target > giver, "{target}");
}

/// Everybody registers its record again and again, under the eyes of the others.
struct Registrars;

impl Program for Registrars {
    fn run(&self, cpu: &mut GuestCpu) {
        while !cpu.is_stopping() {
            cpu.compute(1000);
            cpu.register_again().expect("it worked before");
        }
    }
}

#[test]
fn a_record_can_be_registered_again_while_others_look_at_it() {
    for platform in Platform::ALL {
        let settings = Settings {
            platform,
            ..settings(6, 200)
        };
        let report = run(settings, Box::new(Registrars), |_| ()).unwrap();
        for vcpu in &report.vcpus {
            assert_eq!(vcpu.clock_faults, 0, "{platform}");
            let host = vcpu.host_while_booted;
            let percent = vcpu.wall_ns / 100;
            let differ = vcpu.guest.total_ns().abs_diff(host.total_ns());
            assert!(differ <= percent, "{platform}: {differ}");
            // What is stolen between the two registrations is not seen. On s390
            // what the operating system takes looks stolen as well.
            let invented = vcpu.guest.steal_ns.saturating_sub(host.steal_ns);
            assert!(
                invented <= percent || platform == Platform::S390,
                "{platform}: {invented}"
            );
        }
    }
}

struct Panics;

impl Program for Panics {
    fn run(&self, cpu: &mut GuestCpu) {
        assert!(cpu.id() != CpuId::new(2), "guest bug");
        while !cpu.is_stopping() {
            cpu.halt_while(|| true);
        }
    }
}

#[test]
fn a_panic_in_the_guest_ends_the_run_with_its_place() {
    let error = run(settings(4, 60_000), Box::new(Panics), |_| ()).unwrap_err();
    assert!(
        matches!(&error, RunError::GuestPanicked { cpu, message }
            if *cpu == CpuId::new(2) && message == "guest bug"),
        "{error}"
    );
}

#[test]
fn a_program_that_finds_its_result_wrong_spoils_the_report() {
    struct Wrong;
    impl Program for Wrong {
        fn run(&self, _cpu: &mut GuestCpu) {}
        fn verify(&self) -> Result<(), String> {
            Err("no".to_owned())
        }
    }
    let report = run(settings(2, 50), Box::new(Wrong), |_| ()).unwrap();
    assert!(!report.is_balanced());
}
