//! Reports for people and for programs.

use std::fmt::Display;
use std::io::{self, Write};

use comfy_table::{CellAlignment, Table, presets};
use pv_threads::{Report, Times, VcpuReport};
use serde::Serialize;

/// More vCPUs than this are summed up instead of listed.
const MOST_ROWS: usize = 16;

/// Print `value` as one JSON document.
pub fn json(value: &impl Serialize) -> io::Result<()> {
    text(&serde_json::to_string_pretty(value)?)
}

/// Print some lines.
pub fn text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Say on standard error what went wrong. If nobody can hear it, the exit code
/// still tells.
pub fn error(error: &impl Display) {
    let _ = writeln!(io::stderr(), "error: {error}");
}

/// Print a run of the threaded harness.
pub fn report(report: &Report) -> io::Result<()> {
    let parts = [
        headline(report),
        vcpu_table(report).to_string(),
        host_line(report),
        checks(report),
    ];
    text(&parts.join("\n\n"))
}

fn headline(report: &Report) -> String {
    let seed = report
        .seed
        .map_or_else(String::new, |seed| format!(", seed {seed}"));
    let crowded = if report.seed.is_none() && report.pcpus as usize > report.real_cpus {
        format!(
            "\n  note: this computer has {} CPUs, so its own scheduler shares them among the {} host CPUs",
            report.real_cpus, report.pcpus
        )
    } else {
        String::new()
    };
    format!(
        "{} vCPUs on {} host CPUs, slice {} ms, records of {}\n  how: {}{seed}{crowded}",
        report.vcpus.len(),
        report.pcpus,
        milli(report.slice_ns),
        report.platform,
        report.method,
    )
}

fn vcpu_table(report: &Report) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header([
        "vCPU",
        "host: run",
        "steal",
        "after wake",
        "idle",
        "guest: run",
        "steal",
        "idle",
        "CPU time",
        "preempted",
        "halted",
        "seen preempted",
    ]);
    if report.vcpus.len() <= MOST_ROWS {
        for vcpu in &report.vcpus {
            table.add_row(row(&vcpu.cpu.to_string(), vcpu, report.tells_preempted));
        }
    } else {
        let mut by_steal: Vec<&VcpuReport> = report.vcpus.iter().collect();
        by_steal.sort_by_key(|vcpu| vcpu.host.steal_ns);
        let rows = [
            ("least stolen", 0),
            ("median", by_steal.len() / 2),
            ("most stolen", by_steal.len() - 1),
        ];
        for (name, index) in rows {
            let vcpu = by_steal[index];
            let name = format!("{name}: {}", vcpu.cpu);
            table.add_row(row(&name, vcpu, report.tells_preempted));
        }
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn row(name: &str, vcpu: &VcpuReport, tells_preempted: bool) -> Vec<String> {
    let Times {
        run_ns,
        steal_ns,
        idle_ns,
        wake_ns,
    } = vcpu.host_while_booted;
    let host = [run_ns, steal_ns, wake_ns, idle_ns];
    let guest = [vcpu.guest.run_ns, vcpu.guest.steal_ns, vcpu.guest.idle_ns];
    let times = host.into_iter().chain(guest).map(milli);
    let cpu_time = vcpu.cpu_time_ns.map_or_else(|| "-".to_owned(), milli);
    let seen = match vcpu.looks {
        _ if !tells_preempted => "not told".to_owned(),
        0 => "-".to_owned(),
        looks => format!("{:.0} %", percent(vcpu.seen_preempted, looks)),
    };
    [name.to_owned()]
        .into_iter()
        .chain(times)
        .chain([
            cpu_time,
            format!("{}x", vcpu.counts.preemptions),
            format!("{}x", vcpu.counts.halts),
            seen,
        ])
        .collect()
}

fn host_line(report: &Report) -> String {
    let ran: u64 = report.vcpus.iter().map(|vcpu| vcpu.host.run_ns).sum();
    let dropped = match report.kicks_dropped {
        0 => String::new(),
        n => format!("\n{n} kicks were dropped on purpose."),
    };
    let (rest, cpu_time) = if report.seed.is_some() {
        ("", "")
    } else {
        (
            "; the rest went into waking\n  threads up",
            "\n  CPU time: what the operating system says the thread used; less than run where\n  \
             other programs took this computer's CPUs.",
        )
    };
    format!(
        "Times in ms, from when each vCPU's record was registered. Host CPUs were given to\n  \
         vCPUs for {} ms, of which vCPUs ran {} ms{rest}.\n  \
         after wake: the part of steal between a wake-up and running; it is not marked as\n  \
         preempted everywhere. seen preempted: how often other vCPUs found the mark when\n  \
         they looked.{cpu_time}{dropped}",
        milli(report.pcpu_busy_ns),
        milli(ran),
    )
}

fn checks(report: &Report) -> String {
    let mut lines: Vec<String> = report
        .checks
        .iter()
        .map(|check| {
            let verdict = verdict(check.holds);
            if check.limit == 0.0 {
                format!("{verdict} {}: {} exceptions", check.name, check.worst)
            } else {
                format!(
                    "{verdict} {}: off by {:.3} % of wall time at most (limit {} %)",
                    check.name,
                    check.worst / 10.0,
                    check.limit / 10.0
                )
            }
        })
        .collect();
    lines.push(match &report.program_error {
        None => format!(
            "{} the guest's program finds its own result right",
            verdict(true)
        ),
        Some(error) => format!("{} the guest's program: {error}", verdict(false)),
    });
    let all = lines.len();
    let failed = lines
        .iter()
        .filter(|line| line.starts_with(verdict(false)))
        .count();
    lines.push(match failed {
        0 => format!("{all} checks, all hold"),
        n => format!("{all} checks, {n} FAILED"),
    });
    lines.join("\n")
}

fn verdict(holds: bool) -> &'static str {
    if holds { "ok    " } else { "FAILED" }
}

#[expect(clippy::cast_precision_loss, reason = "a percentage for people")]
fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole as f64
}

/// Nanoseconds as milliseconds with one decimal where that says something.
fn milli(ns: u64) -> String {
    let tenths = (ns + 50_000) / 100_000;
    if tenths.is_multiple_of(10) || tenths >= 1000 {
        format!("{}", (tenths + 5) / 10)
    } else {
        format!("{}.{}", tenths / 10, tenths % 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_rounded() {
        assert_eq!(milli(5_000_000), "5");
        assert_eq!(milli(500_000), "0.5");
        assert_eq!(milli(1_234_567_890), "1235");
    }
}
