//! `pvsched vcpus`: one run of the threaded harness.

use std::io;

use pv_threads::{Report, RunError};

use crate::cli::VcpusArgs;
use crate::progress::Bar;
use crate::{Outcome, show};

/// Run it, show it, judge it.
pub fn run(args: &VcpusArgs, json: bool) -> io::Result<Outcome> {
    match measure(args) {
        Ok(report) => {
            if json {
                show::json(&report)?;
            } else {
                show::report(&report)?;
            }
            Ok(judge(&report))
        }
        Err(error) => failed(&error, json),
    }
}

/// Run it.
pub fn measure(args: &VcpusArgs) -> Result<Report, RunError> {
    let settings = args.settings();
    let program = args.workload().program(&settings)?;
    let bar = Bar::new("vCPUs");
    pv_threads::run(settings, program, |permille| bar.set_permille(permille))
}

/// Whether a report is good.
pub fn judge(report: &Report) -> Outcome {
    if report.is_balanced() {
        Outcome::Good
    } else {
        Outcome::Bad
    }
}

/// Say why there is no report.
pub fn failed(error: &RunError, json: bool) -> io::Result<Outcome> {
    show::error(error);
    if json {
        show::json(&serde_json::json!({ "error": error.to_string() }))?;
    }
    Ok(match error {
        RunError::Settings(_) => Outcome::Refused,
        _ => Outcome::Bad,
    })
}
