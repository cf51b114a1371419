//! What a run showed, and whether the accounts balance.

use pv_arch::Nanos;
use pv_steal::Platform;
use serde::Serialize;

use crate::core::{Core, Counts};
use crate::guest::GuestResult;
use crate::settings::Engine;
use crate::timeline::Times;
use crate::vm::Vm;

/// What a vCPU's thread brings back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VcpuResult {
    pub guest: GuestResult,
    /// From power-on to the end, by the thread's own clock reading.
    pub wall: Nanos,
    /// What the operating system says the thread used.
    pub cpu_time: Nanos,
}

/// One vCPU: what the host did beside what the guest saw.
#[derive(Clone, Debug, Serialize)]
pub struct VcpuReport {
    /// The guest's number of it.
    pub cpu: u32,
    /// From power-on to the end.
    pub wall_ns: u64,
    /// The host's account of all of it.
    pub host: Times,
    /// The host's account of the time in which the guest kept one as well.
    pub host_while_booted: Times,
    /// The guest's account, from its record.
    pub guest: Times,
    /// CPU time of the thread, from the operating system (live engine only).
    pub cpu_time_ns: Option<u64>,
    /// Events.
    pub counts: Counts,
    /// How often other vCPUs looked whether it is preempted.
    pub looks: u64,
    /// How often they found that it is.
    pub seen_preempted: u64,
    /// Readings that the guest's steal clock did not believe.
    pub clock_faults: u32,
}

impl VcpuReport {
    /// CPU time that neither the guest's running nor the host's work explains.
    fn unexplained_cpu_time_ns(&self) -> u64 {
        let Counts {
            preemptions,
            halts,
            yields,
            ..
        } = self.counts;
        let switches = preemptions + halts + yields + 1;
        let explained = self.host.run_ns + switches * HOST_WORK_NS;
        self.cpu_time_ns.unwrap_or(0).saturating_sub(explained)
    }
}

/// A statement that must hold for a run to count.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What is compared.
    pub name: &'static str,
    /// What `worst` and `limit` count.
    pub unit: &'static str,
    /// The largest deviation found.
    pub worst: f64,
    /// The largest deviation allowed.
    pub limit: f64,
    /// Whether it holds.
    pub holds: bool,
}

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// How the figures were obtained, for whoever reads them.
    pub method: &'static str,
    /// Whose records were used.
    pub platform: &'static str,
    /// Whether these records tell that a vCPU is preempted.
    pub tells_preempted: bool,
    /// Host CPUs that the vCPUs shared.
    pub pcpus: u32,
    /// Length of a slice.
    pub slice_ns: u64,
    /// Seed of the stepped engine.
    pub seed: Option<u64>,
    /// CPUs of this computer: more host CPUs than these share them.
    pub real_cpus: usize,
    /// Each vCPU.
    pub vcpus: Vec<VcpuReport>,
    /// Time that host CPUs were given to vCPUs, all together.
    pub pcpu_busy_ns: u64,
    /// Kicks that an injected fault dropped.
    pub kicks_dropped: u64,
    /// Acquisitions of the watched lock.
    pub acquisitions: u64,
    /// What the program says is wrong with its own result.
    pub program_error: Option<String>,
    /// What must hold.
    pub checks: Vec<Check>,
}

/// Accounts may differ by one percent of the wall time.
const LIMIT: f64 = 10.0;
/// Run and idle time may differ by five, beside what the way into and out of each
/// halt takes (in virtual time: some calls of the architecture): that is run time
/// for the host and idle time for the guest.
const SPLIT_LIMIT: f64 = 50.0;
/// A run that is shorter is judged as if it were this long.
const SHORT_NS: u64 = 100_000_000;
/// What a vCPU's thread does for the host when it is switched out and in again.
const HOST_WORK_NS: u64 = 20_000;

const LIVE: &str = "threads, real time: vCPUs are threads, stopped at any instruction by a signal";
const STEPPED: &str = "threads, virtual time: stopped at calls of the architecture";

impl Report {
    pub(crate) fn new(
        vm: &Vm,
        core: &Core,
        results: &[VcpuResult],
        verified: Result<(), String>,
    ) -> Self {
        let settings = &vm.settings;
        let is_live = settings.engine == Engine::Live;
        let vcpus: Vec<VcpuReport> = vm
            .count
            .cpus()
            .zip(results)
            .map(|(cpu, result)| {
                let (looks, seen_preempted) = vm.guest.looks_at(cpu);
                VcpuReport {
                    cpu: cpu.get(),
                    wall_ns: result.wall.get(),
                    host: core.times(cpu.index()),
                    host_while_booted: result.guest.host_after - result.guest.host_before,
                    guest: result.guest.times,
                    cpu_time_ns: is_live.then_some(result.cpu_time.get()),
                    counts: core.vcpus[cpu.index()].counts,
                    looks,
                    seen_preempted,
                    clock_faults: result.guest.faults.sum(),
                }
            })
            .collect();
        let (method, seed) = match settings.engine {
            Engine::Live => (LIVE, None),
            Engine::Stepped { seed } => (STEPPED, Some(seed)),
        };
        let pcpu_busy_ns = core.pcpu_busy().get();
        let mut report = Self {
            method,
            platform: settings.platform.name(),
            tells_preempted: settings.platform != Platform::Arm,
            pcpus: settings.pcpus,
            slice_ns: settings.slice.get(),
            seed,
            real_cpus: std::thread::available_parallelism().map_or(1, usize::from),
            vcpus,
            pcpu_busy_ns,
            kicks_dropped: core.kicks_dropped,
            acquisitions: core.watch.acquisitions(),
            program_error: verified.err(),
            checks: Vec::new(),
        };
        report.checks = report.check(settings.platform);
        report
    }

    /// Whether everything holds.
    pub fn is_balanced(&self) -> bool {
        self.program_error.is_none() && self.checks.iter().all(|check| check.holds)
    }

    /// The longest of the vCPUs' wall times.
    pub fn wall_ns(&self) -> u64 {
        self.vcpus
            .iter()
            .map(|vcpu| vcpu.wall_ns)
            .max()
            .unwrap_or(0)
    }

    fn check(&self, platform: Platform) -> Vec<Check> {
        let sees = |host: Times| visible(platform, host);
        // On s390 a preemption in the instructions around a halt is idle time
        // to the guest, and no record tells it otherwise.
        let steal_limit = match platform {
            Platform::S390 => SPLIT_LIMIT,
            _ => LIMIT,
        };
        let (run_split, idle_split, way_ns) = match self.seed {
            None => (
                "run: guest = host (but 10 us a halt)",
                "idle: guest = host (but 10 us a halt)",
                10_000,
            ),
            Some(_) => (
                "run: guest = host (but 60 us a halt)",
                "idle: guest = host (but 60 us a halt)",
                60_000,
            ),
        };
        let unexplained = |vcpu: &VcpuReport, difference: u64| {
            difference.saturating_sub(vcpu.counts.halts * way_ns)
        };
        let mut checks = vec![
            self.worst("host: run + steal + idle = wall", LIMIT, |vcpu| {
                vcpu.host.total_ns().abs_diff(vcpu.wall_ns)
            }),
            self.worst("steal: guest = host", steal_limit, |vcpu| {
                let host = sees(vcpu.host_while_booted).steal_ns;
                vcpu.guest.steal_ns.abs_diff(host)
            }),
            self.worst(run_split, SPLIT_LIMIT, |vcpu| {
                let host = sees(vcpu.host_while_booted).run_ns;
                unexplained(vcpu, vcpu.guest.run_ns.abs_diff(host))
            }),
            self.worst(idle_split, SPLIT_LIMIT, |vcpu| {
                let host = sees(vcpu.host_while_booted).idle_ns;
                unexplained(vcpu, vcpu.guest.idle_ns.abs_diff(host))
            }),
        ];
        if self.seed.is_none() {
            checks.push(self.worst(
                "away = no CPU time (but 20 us of host work a switch)",
                LIMIT,
                VcpuReport::unexplained_cpu_time_ns,
            ));
        }
        checks.push(self.host_cpus_are_not_oversold());
        let faults: u32 = self.vcpus.iter().map(|vcpu| vcpu.clock_faults).sum();
        checks.push(Check {
            name: "the guest believed every reading",
            unit: "readings",
            worst: f64::from(faults),
            limit: 0.0,
            holds: faults == 0,
        });
        checks
    }

    /// All time that vCPUs ran was time that some host CPU was given to them.
    fn host_cpus_are_not_oversold(&self) -> Check {
        let ran: u64 = self.vcpus.iter().map(|vcpu| vcpu.host.run_ns).sum();
        let sold = u64::from(self.pcpus) * self.wall_ns();
        let excess = ran.saturating_sub(self.pcpu_busy_ns) + self.pcpu_busy_ns.saturating_sub(sold);
        limited(
            "vCPUs run only on the host CPUs there are",
            LIMIT,
            permille(excess, self.wall_ns()),
        )
    }

    fn worst(
        &self,
        name: &'static str,
        limit: f64,
        deviation_ns: impl Fn(&VcpuReport) -> u64,
    ) -> Check {
        let worst = self
            .vcpus
            .iter()
            .map(|vcpu| permille(deviation_ns(vcpu), vcpu.wall_ns.max(SHORT_NS)))
            .fold(0.0, f64::max);
        limited(name, limit, worst)
    }
}

/// What a guest on this platform can see of the host's account: on s390 the
/// wait after a wake-up looks like a longer halt.
fn visible(platform: Platform, host: Times) -> Times {
    match platform {
        Platform::S390 => Times {
            steal_ns: host.steal_ns - host.wake_ns,
            idle_ns: host.idle_ns + host.wake_ns,
            ..host
        },
        _ => host,
    }
}

fn limited(name: &'static str, limit: f64, worst: f64) -> Check {
    Check {
        name,
        unit: "permille of wall time",
        worst,
        limit,
        holds: worst <= limit,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a report; 2^52 ns are 52 days")]
fn permille(part: u64, whole: u64) -> f64 {
    part as f64 * 1000.0 / whole.max(1) as f64
}
