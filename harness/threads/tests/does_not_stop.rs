//! A guest that goes on for ever is reported, not waited for. In a test binary of
//! its own, since its threads cannot be ended.

use pv_arch::{CpuId, Nanos};
use pv_threads::{Engine, GuestCpu, Program, RunError, Settings, run};

struct Endless;

impl Program for Endless {
    fn run(&self, cpu: &mut GuestCpu) {
        while cpu.id() == CpuId::new(1) || !cpu.is_stopping() {
            cpu.halt_while(|| false);
        }
    }
}

#[test]
fn a_guest_that_does_not_stop_is_named() {
    let settings = Settings {
        vcpus: 2,
        duration: Nanos::from_millis(50),
        stop_grace: Nanos::from_millis(200),
        ..Settings::default()
    };
    let error = run(settings, Box::new(Endless), |_| ()).unwrap_err();
    assert!(
        matches!(error, RunError::DoesNotStop { cpu, .. } if cpu == CpuId::new(1)),
        "{error}"
    );
}

/// Never calls its architecture.
struct Silent;

impl Program for Silent {
    fn run(&self, cpu: &mut GuestCpu) {
        while !cpu.is_stopping() {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_guest_that_lets_no_virtual_time_pass_is_reported() {
    let settings = Settings {
        vcpus: 2,
        engine: Engine::Stepped { seed: 1 },
        stop_grace: Nanos::from_millis(200),
        ..Settings::default()
    };
    let error = run(settings, Box::new(Silent), |_| ()).unwrap_err();
    assert!(matches!(error, RunError::TimeStandsStill { .. }), "{error}");
}
