//! Preemption at chosen moments: a spinlock's holder, and its middle waiter.

use pv_arch::sync::atomic::{AtomicU64, Ordering};
use pv_arch::{Arch, CpuId, Nanos};
use pv_threads::{
    Engine, GuestCpu, Probe, Program, Report, Settings, Stop, Strike, ThreadArch, run,
};

const AWAY: Nanos = Nanos::from_millis(20);

/// Every vCPU takes one test-and-set lock again and again.
#[derive(Default)]
struct Lockers {
    lock: spin::Mutex<u64>,
    acquired: AtomicU64,
    longest_wait: AtomicU64,
    yield_to_holder: bool,
    holder: AtomicU64,
}

impl Program for &'static Lockers {
    fn run(&self, cpu: &mut GuestCpu) {
        while !cpu.is_stopping() {
            let began = ThreadArch::now();
            ThreadArch::probe(Probe::Waits);
            let mut guard = loop {
                if let Some(guard) = self.lock.try_lock() {
                    break guard;
                }
                if self.yield_to_holder {
                    let holder = self.holder.load(Ordering::Relaxed);
                    ThreadArch::yield_to(CpuId::new(u32::try_from(holder).unwrap_or(0)));
                }
                ThreadArch::relax_unbounded();
            };
            self.holder.store(cpu.id().get().into(), Ordering::Relaxed);
            ThreadArch::probe(Probe::Acquired);
            let waited = ThreadArch::now().since(began);
            self.longest_wait.fetch_max(waited.get(), Ordering::Relaxed);
            *guard += 1;
            cpu.compute(4);
            drop(guard);
            ThreadArch::probe(Probe::Released);
            self.acquired.fetch_add(1, Ordering::Relaxed);
            cpu.compute(4);
        }
    }

    fn verify(&self) -> Result<(), String> {
        let counted = *self.lock.lock();
        let acquired = self.acquired.load(Ordering::Relaxed);
        if counted == acquired {
            Ok(())
        } else {
            Err(format!("{acquired} acquisitions counted {counted}"))
        }
    }
}

fn play(engine: Engine, stop: Option<Stop>, yield_to_holder: bool) -> (Report, Nanos) {
    let lockers: &'static Lockers = Box::leak(Box::new(Lockers {
        yield_to_holder,
        ..Lockers::default()
    }));
    let settings = Settings {
        vcpus: 4,
        pcpus: 4,
        duration: Nanos::from_millis(100),
        slice: Nanos::from_millis(5),
        engine,
        script: stop.into_iter().collect(),
        ..Settings::default()
    };
    let report = run(settings, Box::new(lockers), |_| ()).unwrap();
    assert!(report.is_balanced(), "{:#?}", report.checks);
    let longest = Nanos::new(lockers.longest_wait.load(Ordering::Relaxed));
    (report, longest)
}

fn holder(nth: u64, yields_end_it: bool) -> Stop {
    Stop {
        strike: Strike::Holder { nth, repeat: false },
        away: AWAY,
        yields_end_it,
    }
}

fn strikes(report: &Report) -> u64 {
    report.vcpus.iter().map(|vcpu| vcpu.counts.strikes).sum()
}

const STEPPED: Engine = Engine::Stepped { seed: 11 };

#[test]
fn everybody_waits_for_a_holder_that_is_stopped() {
    for engine in [STEPPED, Engine::Live] {
        let (report, longest) = play(engine, Some(holder(50, false)), false);
        assert!(report.acquisitions > 50);
        assert_eq!(strikes(&report), 1);
        assert!(longest >= AWAY, "{engine:?}: {longest}");
    }
    let (report, longest) = play(STEPPED, None, false);
    assert_eq!(strikes(&report), 0);
    assert!(longest < AWAY, "{longest}");
}

#[test]
fn a_directed_yield_brings_the_holder_back_unless_it_is_held_firmly() {
    let (_, longest) = play(STEPPED, Some(holder(50, true)), true);
    assert!(longest < AWAY, "{longest}");
    let (_, longest) = play(STEPPED, Some(holder(50, false)), true);
    assert!(longest >= AWAY, "{longest}");
}

#[test]
fn the_middle_waiter_is_stopped_and_the_others_go_on() {
    let stop = Stop {
        strike: Strike::MiddleWaiter { waiters: 3 },
        away: AWAY,
        yields_end_it: false,
    };
    let (report, longest) = play(STEPPED, Some(stop), false);
    assert_eq!(strikes(&report), 1);
    let struck = report
        .vcpus
        .iter()
        .find(|vcpu| vcpu.counts.strikes == 1)
        .unwrap();
    assert!(struck.host.steal_ns >= AWAY.get());
    // A test-and-set lock has no order: only the stopped one waited.
    assert!(longest >= AWAY, "{longest}");
    assert!(report.acquisitions > 500, "{}", report.acquisitions);
}
