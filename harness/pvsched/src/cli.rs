//! The command line.

use std::num::NonZeroU32;

use clap::{Args, Parser, Subcommand, ValueEnum};
use pv_arch::Nanos;
use pv_steal::Platform;
use pv_threads::{Engine, Settings, Workload};

/// What a host does to a guest's vCPUs, and what the guest can know of it.
///
/// Without a command: the tour, a few seconds in all, each part labelled with
/// how its figures were obtained.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Cli {
    /// Print one JSON document on standard output instead of tables.
    #[arg(long, global = true)]
    pub json: bool,

    /// What to do; without it, the tour.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run vCPUs under a host that takes them away, and compare accounts.
    ///
    /// Exits with 0 if every check holds, 1 if one does not or the run failed, 2 if
    /// the settings were refused.
    Vcpus(VcpusArgs),
}

/// A machine and how long to run it.
#[derive(Clone, Debug, Args)]
pub struct VcpusArgs {
    /// vCPUs of the guest, 1 to 512.
    #[arg(long, value_name = "V", default_value_t = 8)]
    pub vcpus: u32,
    /// Host CPUs that they share, 1 to 64 and no more than vCPUs.
    #[arg(long, value_name = "P", default_value_t = 2)]
    pub pcpus: u32,
    /// Length of a time slice in milliseconds (decimals allowed).
    #[arg(long, value_name = "MS", default_value = "5", value_parser = milliseconds)]
    pub slice: Nanos,
    /// Length of the run in seconds (decimals allowed).
    #[arg(long, value_name = "S", default_value = "2", value_parser = seconds)]
    pub seconds: Nanos,
    /// Whose records guest and host speak through: kvm-x86, arm, riscv, loongarch,
    /// s390, power or xen.
    #[arg(long, value_name = "NAME", default_value = "kvm-x86", value_parser = platform)]
    pub platform: Platform,
    /// What the guest does.
    #[arg(long, value_enum, default_value_t = WorkloadName::Relay)]
    pub workload: WorkloadName,
    /// Run in virtual time, reproducibly, from this seed, instead of in real time.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Publish halted vCPUs as preempted, as KVM on x86 did until Linux 5.19.
    #[arg(long)]
    pub mark_halted: bool,
    /// Injected fault: lose every N-th kick. The watchdog should notice.
    #[arg(long, value_name = "N")]
    pub drop_kicks: Option<NonZeroU32>,
    /// A vCPU that is halted for longer than this many milliseconds has lost a
    /// wake-up.
    #[arg(long, value_name = "MS", default_value = "2000", value_parser = milliseconds)]
    pub watchdog: Nanos,
}

/// Guest programs by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkloadName {
    /// Teams of two vCPUs that hand a token to and fro: vCPUs run, wait and halt.
    Relay,
    /// Every vCPU computes: vCPUs run and wait.
    Spinners,
}

impl VcpusArgs {
    /// The machine that these arguments describe.
    pub fn settings(&self) -> Settings {
        Settings {
            vcpus: self.vcpus,
            pcpus: self.pcpus,
            slice: self.slice,
            duration: self.seconds,
            platform: self.platform,
            engine: self
                .seed
                .map_or(Engine::Live, |seed| Engine::Stepped { seed }),
            mark_halted: self.mark_halted,
            drop_kicks: self.drop_kicks,
            watchdog: self.watchdog,
            ..Settings::default()
        }
    }

    /// The program that the guest runs.
    pub fn workload(&self) -> Workload {
        match self.workload {
            WorkloadName::Relay => Workload::Relay,
            WorkloadName::Spinners => Workload::Spinners,
        }
    }
}

fn platform(text: &str) -> Result<Platform, String> {
    text.parse().map_err(|_| {
        let names = Platform::ALL.map(Platform::name).join(", ");
        format!("want one of {names}")
    })
}

fn milliseconds(text: &str) -> Result<Nanos, String> {
    decimal(text, 1e6)
}

fn seconds(text: &str) -> Result<Nanos, String> {
    decimal(text, 1e9)
}

/// A time that is `text` times `unit` nanoseconds.
fn decimal(text: &str, unit: f64) -> Result<Nanos, String> {
    /// Beyond this, nanoseconds are no longer exact in a float; 104 days.
    const MOST: f64 = 9e15;
    let number: f64 = text.parse().map_err(|_| "want a number".to_owned())?;
    let nanos = number * unit;
    if !(0.0..=MOST).contains(&nanos) {
        return Err(format!("want 0 to {}", MOST / unit));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was checked"
    )]
    Ok(Nanos::new(nanos.round() as u64))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_take_decimals_and_refuse_nonsense() {
        assert_eq!(milliseconds("0.5"), Ok(Nanos::from_micros(500)));
        assert_eq!(seconds("2"), Ok(Nanos::from_secs(2)));
        for bad in ["", "x", "-1", "nan", "inf", "1e30"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_platform_has_a_name_that_is_understood() {
        for known in Platform::ALL {
            assert_eq!(platform(known.name()), Ok(known));
        }
        assert!(platform("vax").unwrap_err().contains("kvm-x86"));
    }
}
