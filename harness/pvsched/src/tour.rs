//! The tour: what a host does, part by part, in a few seconds.

use std::io;

use clap::Parser;
use serde::Serialize;

use crate::cli::{Cli, Command};
use crate::{Outcome, show, vcpus};

/// One part of the tour, as JSON.
#[derive(Serialize)]
struct Part<'a, T> {
    title: &'a str,
    result: T,
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
        show::json(&[Part {
            title: VCPUS,
            result: &report,
        }])?;
    } else {
        show::text(&format!(
            "1. {VCPUS}\n\n\
             A guest's CPUs are threads of a host. Here {} vCPUs share {} host CPUs; in each\n\
             of {} teams one vCPU computes while the other has halted. A vCPU that wants to\n\
             run and is not let is being stolen from; the guest learns it from a record.\n",
            report.vcpus.len(),
            report.pcpus,
            report.vcpus.len() / 2,
        ))?;
        show::report(&report)?;
        show::text("\nThis part with other settings: pvsched vcpus --help")?;
    }
    Ok(vcpus::judge(&report))
}
