//! Tests that a test runner runs.

use std::process::Command;

use anyhow::Result;

use crate::command::{cargo, run, with_flags};
use crate::workspace::Workspace;

/// Which program runs the tests.
enum Runner {
    Nextest,
    CargoTest,
}

impl Runner {
    /// Choose, and say which and why.
    fn choose(workspace: &Workspace) -> Self {
        let mut ask = cargo(workspace, ["nextest", "--version"]);
        let version = ask.stderr(std::process::Stdio::null()).output();
        match version {
            Ok(answer) if answer.status.success() => {
                let text = String::from_utf8_lossy(&answer.stdout);
                let first = text.lines().next().unwrap_or("cargo-nextest").to_owned();
                println!("runner: {first} (it is installed; each test in its own process)");
                Self::Nextest
            }
            _ => {
                println!(
                    "runner: cargo test (cargo-nextest is not installed; to have it: \
                     cargo install --locked cargo-nextest)"
                );
                Self::CargoTest
            }
        }
    }

    /// The command that runs the tests of all kinds of target but examples in
    /// documentation.
    fn command(&self, workspace: &Workspace) -> Command {
        match self {
            Self::Nextest => cargo(workspace, ["nextest", "run", "--no-fail-fast"]),
            Self::CargoTest => cargo(
                workspace,
                ["test", "--no-fail-fast", "--lib", "--bins", "--tests"],
            ),
        }
    }
}

pub fn tests(workspace: &Workspace) -> Result<()> {
    let runner = Runner::choose(workspace);
    let mut command = runner.command(workspace);
    command.args(["--workspace", "--all-features"]);
    if let Runner::CargoTest = runner {
        // The threaded harness wants the machine for itself; nextest is told so
        // in its configuration, `cargo test` only knows one way.
        command.args(["--", "--test-threads=1"]);
    }
    run(&mut command)
}

pub fn doc_tests(workspace: &Workspace) -> Result<()> {
    let args = ["test", "--doc", "--workspace", "--all-features"];
    run(&mut cargo(workspace, args))?;
    let args = ["doc", "--workspace", "--no-deps", "--all-features"];
    run(cargo(workspace, args).env("RUSTDOCFLAGS", "-D warnings"))
}

pub fn split64(workspace: &Workspace) -> Result<()> {
    let mut command = Runner::choose(workspace).command(workspace);
    command.args(["-p", "pv-steal", "--all-features"]);
    let target = workspace.target("split64");
    run(with_flags(&mut command, "--cfg pv_split64", &target))
}
