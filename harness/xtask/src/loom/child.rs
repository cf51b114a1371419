//! One trial in a process of its own: a failing model may abort, and the
//! switches are read once a process.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use wait_timeout::ChildExt;

use crate::loom::ending::Ending;
use crate::loom::trial::{Change, Trial};

/// How a trial ended and how long it took.
pub struct Ended {
    pub ending: Ending,
    pub took: Duration,
}

/// Run one trial for at most `limit`.
pub fn attempt(binary: &Path, logs: &Path, trial: &Trial, limit: Duration) -> Result<Ended> {
    let name = format!("{}-{}", trial.model, trial.change);
    let safe = name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let path = logs.join(format!("{safe}.log"));
    let log = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;

    let mut command = Command::new(binary);
    command.args(["run", &trial.model]);
    if let Some(bound) = trial.bound {
        command.args(["--bound", &bound.to_string()]);
    }
    command.env_remove("PV_SEED").env_remove("PV_MUTATE");
    match &trial.change {
        Change::Clean => {}
        Change::Bug(name) => {
            command.env("PV_SEED", name);
        }
        Change::Mutant { mutant, .. } => {
            command.env("PV_MUTATE", mutant.to_string());
        }
    }
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("cannot start {}", binary.display()))?;
    let status = child.wait_timeout(limit)?;
    let took = start.elapsed();
    let ending = if let Some(status) = status {
        let output = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
        read_ending(&trial.model, status, &output)
    } else {
        child.kill()?;
        child.wait()?;
        Ending::OutOfTime
    };
    Ok(Ended { ending, took })
}

/// What an exit status and the output mean.
fn read_ending(model: &str, status: ExitStatus, output: &str) -> Ending {
    if status.success() {
        let account = output
            .lines()
            .rev()
            .find_map(|line| read_account(model, line));
        return account.unwrap_or_else(|| {
            Ending::Broken("ended well without an account of its executions".to_owned())
        });
    }
    if status.code() == Some(2) {
        return Ending::Broken("did not understand its arguments".to_owned());
    }
    // The standard library's refusal of, say, a load that releases.
    if output.contains("there is no such thing as") {
        return Ending::Broken("the operation does not take this ordering".to_owned());
    }
    match status.signal() {
        // Stopped from outside, for instance for want of memory.
        Some(signal @ (2 | 9 | 15)) => Ending::Broken(format!("was stopped by signal {signal}")),
        _ => Ending::Failed,
    }
}

/// `NAME: 12 executions, reached: retry=3 gave-up=0`
fn read_account(model: &str, line: &str) -> Option<Ending> {
    let rest = line.strip_prefix(model)?.strip_prefix(": ")?;
    let (executions, reached) = rest.split_once(" executions")?;
    let executions = executions.parse().ok().filter(|count| *count > 0)?;
    let unreached = reached
        .split([' ', ','])
        .filter_map(|word| word.strip_suffix("=0"))
        .map(str::to_owned)
        .collect();
    Some(Ending::Passed {
        executions,
        unreached,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    #[test]
    fn the_account_is_read_from_the_last_line() {
        let output = "exploring\ntorn: 120 executions, reached: retry=30 gave-up=0\n";
        assert_eq!(
            read_ending("torn", exit(0), output),
            Ending::Passed {
                executions: 120,
                unreached: vec!["gave-up".to_owned()]
            }
        );
    }

    #[test]
    fn a_model_that_explored_nothing_does_not_pass() {
        for output in ["", "torn: 0 executions, reached:", "other: 3 executions"] {
            let ending = read_ending("torn", exit(0), output);
            assert!(matches!(ending, Ending::Broken(_)), "{output}");
        }
    }

    #[test]
    fn a_panic_and_an_abort_are_failures_found() {
        assert_eq!(read_ending("m", exit(101), ""), Ending::Failed);
        assert_eq!(
            read_ending("m", ExitStatus::from_raw(6), ""),
            Ending::Failed
        );
    }

    #[test]
    fn what_says_nothing_about_the_code_is_broken() {
        let refused = "there is no such thing as a release load";
        for (status, output) in [
            (exit(2), ""),
            (exit(101), refused),
            (ExitStatus::from_raw(9), ""),
        ] {
            let ending = read_ending("m", status, output);
            assert!(matches!(ending, Ending::Broken(_)), "{status} {output}");
        }
    }
}
