//! What kind of machine to build, checked before anything starts.

use std::num::NonZeroU32;

use pv_arch::{CpuCount, Nanos};
use thiserror::Error;

use crate::script::Script;

/// A guest with its host.
#[derive(Clone, Debug)]
pub struct Settings {
    /// vCPUs of the guest: 1 to [`MAX_VCPUS`].
    pub vcpus: u32,
    /// Host CPUs that they share: 1 to [`MAX_PCPUS`].
    pub pcpus: u32,
    /// How long a vCPU runs while others wait.
    pub slice: Nanos,
    /// How long the guest runs.
    pub duration: Nanos,
    /// Whose records guest and host speak through.
    pub platform: pv_steal::Platform,
    /// How vCPUs are stopped.
    pub engine: Engine,
    /// Publish a halted vCPU as preempted, as KVM on x86 did until Linux 5.19.
    pub mark_halted: bool,
    /// Injected fault: lose every n-th kick.
    pub drop_kicks: Option<NonZeroU32>,
    /// A vCPU that is halted for longer than this has lost a wake-up.
    pub watchdog: Nanos,
    /// How long a vCPU may take to end once the run is over.
    pub stop_grace: Nanos,
    /// What the host does beside being fair.
    pub script: Script,
}

/// How vCPUs are stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// At any instruction, by a signal, in real time.
    Live,
    /// At calls of the architecture only, in virtual time, one thread at a time:
    /// the same seed gives the same run.
    Stepped {
        /// Decides how long the code between two calls takes.
        seed: u64,
    },
}

/// The most vCPUs a machine has here.
pub const MAX_VCPUS: u32 = 512;
/// The most host CPUs a machine has here.
pub const MAX_PCPUS: u32 = 64;
/// The shortest slice: below it the harness itself takes most of the time.
pub const MIN_SLICE: Nanos = Nanos::from_micros(100);
/// The shortest run: what it takes to start threads must not be most of it.
pub const MIN_DURATION: Nanos = Nanos::from_millis(5);
/// The longest run.
pub const MAX_DURATION: Nanos = Nanos::from_secs(24 * 3600);

impl Default for Settings {
    /// The machine of the tour: 8 vCPUs on 2 host CPUs, 5 ms slices, 2 s.
    fn default() -> Self {
        Self {
            vcpus: 8,
            pcpus: 2,
            slice: Nanos::from_millis(5),
            duration: Nanos::from_secs(2),
            platform: pv_steal::Platform::KvmX86,
            engine: Engine::Live,
            mark_halted: false,
            drop_kicks: None,
            watchdog: Nanos::from_secs(2),
            stop_grace: Nanos::from_secs(10),
            script: Script::default(),
        }
    }
}

/// Settings that make no machine, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// Too few or too many vCPUs.
    #[error("vcpus is {0}: want 1 to {MAX_VCPUS}")]
    Vcpus(u32),
    /// Too few or too many host CPUs.
    #[error("pcpus is {0}: want 1 to {MAX_PCPUS}")]
    Pcpus(u32),
    /// Host CPUs that could never be used.
    #[error("pcpus is {pcpus}, more than the {vcpus} vcpus: some could never run anything")]
    IdlePcpus {
        /// Host CPUs asked for.
        pcpus: u32,
        /// vCPUs asked for.
        vcpus: u32,
    },
    /// A slice that is too short, or longer than the run.
    #[error("slice is {} ms: want {} ms up to the duration, {} ms", ms(*slice), ms(MIN_SLICE), ms(*duration))]
    Slice {
        /// The slice asked for.
        slice: Nanos,
        /// The duration asked for.
        duration: Nanos,
    },
    /// A run that is too short or too long.
    #[error("duration is {} s: want {} to {} s", ms(*.0) / 1000.0, ms(MIN_DURATION) / 1000.0, ms(MAX_DURATION) / 1000.0)]
    Duration(Nanos),
    /// A watchdog that would bite in ordinary waits.
    #[error("watchdog is {} ms: want at least two slices for each vCPU that shares a host CPU, {} ms", ms(*watchdog), ms(*least))]
    Watchdog {
        /// The watchdog asked for.
        watchdog: Nanos,
        /// The least that makes sense for these vCPUs, host CPUs and slice.
        least: Nanos,
    },
}

/// A time in milliseconds, for people.
#[expect(clippy::cast_precision_loss, reason = "exact below 104 days")]
fn ms(time: Nanos) -> f64 {
    time.get() as f64 / 1e6
}

impl Settings {
    /// Refuse what cannot work.
    pub fn check(&self) -> Result<CpuCount, SettingsError> {
        let count = CpuCount::new(self.vcpus)
            .filter(|_| self.vcpus <= MAX_VCPUS)
            .ok_or(SettingsError::Vcpus(self.vcpus))?;
        if !(1..=MAX_PCPUS).contains(&self.pcpus) {
            return Err(SettingsError::Pcpus(self.pcpus));
        }
        if self.pcpus > self.vcpus {
            return Err(SettingsError::IdlePcpus {
                pcpus: self.pcpus,
                vcpus: self.vcpus,
            });
        }
        if !(MIN_DURATION..=MAX_DURATION).contains(&self.duration) {
            return Err(SettingsError::Duration(self.duration));
        }
        if self.slice < MIN_SLICE || self.slice > self.duration {
            return Err(SettingsError::Slice {
                slice: self.slice,
                duration: self.duration,
            });
        }
        let turns = u64::from(self.vcpus.div_ceil(self.pcpus)) * 2;
        let least = Nanos::new(self.slice.get().saturating_mul(turns));
        if self.watchdog < least {
            return Err(SettingsError::Watchdog {
                watchdog: self.watchdog,
                least,
            });
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(change: impl FnOnce(&mut Settings)) -> Result<CpuCount, SettingsError> {
        let mut settings = Settings::default();
        change(&mut settings);
        settings.check()
    }

    #[test]
    fn each_bad_setting_is_refused_with_its_value() {
        assert!(with(|_| ()).is_ok());
        assert_eq!(with(|s| s.vcpus = 0), Err(SettingsError::Vcpus(0)));
        assert_eq!(with(|s| s.vcpus = 513), Err(SettingsError::Vcpus(513)));
        assert_eq!(with(|s| s.pcpus = 0), Err(SettingsError::Pcpus(0)));
        assert_eq!(
            with(|s| s.pcpus = 9),
            Err(SettingsError::IdlePcpus { pcpus: 9, vcpus: 8 })
        );
        let error = with(|s| s.slice = Nanos::new(99_999)).unwrap_err();
        assert!(error.to_string().contains("0.099999 ms"), "{error}");
        assert!(with(|s| s.slice = Nanos::from_secs(3)).is_err());
        for bad in [Nanos::MAX, Nanos::from_millis(4)] {
            assert_eq!(
                with(|s| s.duration = bad),
                Err(SettingsError::Duration(bad))
            );
        }
        assert_eq!(
            with(|s| s.watchdog = Nanos::from_millis(39)),
            Err(SettingsError::Watchdog {
                watchdog: Nanos::from_millis(39),
                least: Nanos::from_millis(40)
            })
        );
    }
}
