//! `pvsched`: what a host does to a guest's vCPUs, and what the guest can know
//! of it. Without arguments it gives a tour.

mod cli;
mod progress;
mod show;
mod tour;
mod vcpus;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};

/// How a command ended, as an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Everything that was checked holds: 0.
    Good,
    /// It ran, and something is wrong with the result: 1.
    Bad,
    /// It did not run, since the settings make no sense: 2 (as for arguments
    /// that cannot be understood).
    Refused,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        Self::from(match outcome {
            Outcome::Good => 0,
            Outcome::Bad => 1,
            Outcome::Refused => 2,
        })
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        None => tour::run(cli.json),
        Some(Command::Vcpus(args)) => vcpus::run(&args, cli.json),
    };
    match outcome {
        Ok(outcome) => outcome.into(),
        // Whoever reads has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Outcome::Good.into(),
        Err(error) => {
            show::error(&format_args!("cannot write the result: {error}"));
            Outcome::Bad.into()
        }
    }
}
