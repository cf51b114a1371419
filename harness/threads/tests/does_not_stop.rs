//! A guest that goes on for ever is reported, not waited for. In a process of
//! its own, since its thread cannot be ended.

use pv_arch::{CpuId, Nanos};
use pv_threads::{GuestCpu, Program, RunError, Settings, run};

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
