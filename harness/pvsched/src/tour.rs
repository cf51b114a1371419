//! The tour: what a host does, part by part, in a few seconds.

use std::io;

use clap::Parser;
use serde::Serialize;

use pv_threads::Report;

use crate::cli::{Cli, Command};
use crate::{Outcome, show, vcpus};

/// The tour, as JSON.
#[derive(Serialize)]
struct Tour<'a> {
    tour: Vec<Part<'a>>,
}

/// One part of it.
#[derive(Serialize)]
struct Part<'a> {
    title: &'a str,
    result: &'a Report,
}

const VCPUS: &str = "vCPUs that are really taken away";
const VCPUS_COMMAND: [&str; 2] = ["pvsched", "vcpus"];

/// Give the tour.
pub fn run(json: bool) -> io::Result<Outcome> {
    let Some(Command::Vcpus(args)) = Cli::parse_from(VCPUS_COMMAND).command else {
        unreachable!("the command is written above");
    };
    let report = match vcpus::measure(&args) {
        Ok(report) => report,
        Err(error) => return vcpus::failed(&error, json),
    };
    if json {
        show::json(&Tour {
            tour: vec![Part {
                title: VCPUS,
                result: &report,
            }],
        })?;
    } else {
        show::text(&format!(
            "{VCPUS}\n\n\
             A guest's CPUs are threads of a host. Here {} vCPUs share {} host CPUs; in each\n\
             of {} teams one vCPU computes while the other has halted. A vCPU that wants to\n\
             run and is not let is being stolen from; the guest learns it from a record. A vCPU\n\
             that wakes takes the CPU from one that has run more, so some are preempted far\n\
             more often than slices end, and their team-mates hardly ever.\n",
            report.vcpus.len(),
            report.pcpus,
            report.vcpus.len() / 2,
        ))?;
        show::report(&report)?;
        show::text("\nThis part with other settings: cargo run --release -- vcpus --help")?;
    }
    Ok(vcpus::judge(&report))
}
