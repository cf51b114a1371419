//! Driving the models in `tests/loom`.
//!
//! A model passes if it passes clean and fails with every mistake that can be
//! switched on in it: its seeded bugs, and each named memory ordering weakened.
//! A mistake that it does not notice is an error here, unless the model argues
//! why it is none.

mod child;
mod contract;
mod ending;
mod trial;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::command::{cargo, output, run, with_flags};
use crate::loom::child::{Ended, attempt};
use crate::loom::contract::Model;
use crate::loom::trial::{Trial, Verdict, judge, plan};
use crate::table::Table;
use crate::workspace::Workspace;

/// How far to explore.
#[derive(Clone, Copy, Debug)]
pub enum Depth {
    /// Each model's bound for a pull request.
    PullRequest,
    /// Each model's deep bound.
    Deep,
    /// This bound for all.
    Fixed(u32),
}

impl Depth {
    /// How long one exploration may take.
    const fn limit(self) -> Duration {
        match self {
            Self::PullRequest => Duration::from_mins(10),
            Self::Deep | Self::Fixed(_) => Duration::from_hours(4),
        }
    }
}

/// What to check.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Only this model.
    pub model: Option<String>,
    pub depth: Depth,
    /// Weakened orderings only.
    pub mutants_only: bool,
}

/// The part of `cargo xtask test`.
pub fn part(workspace: &Workspace) -> Result<()> {
    let scope = Scope {
        model: None,
        depth: Depth::PullRequest,
        mutants_only: false,
    };
    check(workspace, &scope)
}

pub fn check(workspace: &Workspace, scope: &Scope) -> Result<()> {
    let binary = build(workspace)?;
    check_with(&binary, &workspace.target("loom").join("logs"), scope)
}

fn build(workspace: &Workspace) -> Result<PathBuf> {
    if !workspace.path("tests/loom/Cargo.toml").is_file() {
        bail!("there are no models: tests/loom is missing");
    }
    let target = workspace.target("loom");
    let mut command = cargo(workspace, ["build", "--release", "-p", "loom-models"]);
    run(with_flags(&mut command, "--cfg pv_loom", &target))?;
    Ok(target.join("release/loom-models"))
}

/// Check the models of `binary`; each trial's output goes to a file in `logs`.
fn check_with(binary: &Path, logs: &Path, scope: &Scope) -> Result<()> {
    let list = output(std::process::Command::new(binary).args(["list", "--json"]))?;
    let models: Vec<Model> =
        serde_json::from_str(&list).context("`loom-models list --json` broke the contract")?;
    let trials = plan(&models, scope)?;
    std::fs::create_dir_all(logs)?;
    let results = run_all(binary, logs, trials, scope.depth.limit())?;

    let mut table = Table::new(&["model", "trial", "bound", "executions", "s", "result"]);
    let mut wrong = Vec::new();
    for (trial, ended) in &results {
        let verdict = judge(trial, &ended.ending);
        if let Verdict::Wrong(why) = &verdict {
            wrong.push(format!("{}: {}: {why}", trial.model, trial.change));
        }
        table.row([
            trial.model.clone(),
            trial.change.to_string(),
            trial
                .bound
                .map_or("none".to_owned(), |bound| bound.to_string()),
            ended
                .ending
                .executions()
                .map_or("-".to_owned(), |n| n.to_string()),
            format!("{:.1}", ended.took.as_secs_f64()),
            verdict.to_string(),
        ]);
    }
    println!("\n{table}");
    let right = results.len() - wrong.len();
    println!("trials: {right} as they should be, {} wrong", wrong.len());
    if !wrong.is_empty() {
        println!("output of each trial: {}", logs.display());
        bail!("{}", wrong.join("; "));
    }
    Ok(())
}

/// Run all trials on all processors; the results are in the order of the trials.
fn run_all(
    binary: &Path,
    logs: &Path,
    trials: Vec<Trial>,
    limit: Duration,
) -> Result<Vec<(Trial, Ended)>> {
    let count = trials.len();
    let todo: Mutex<VecDeque<(usize, Trial)>> =
        Mutex::new(trials.into_iter().enumerate().collect());
    let done: Mutex<Vec<(usize, Trial, Result<Ended>)>> = Mutex::new(Vec::new());
    let workers = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(count);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let next = todo.lock().map_or(None, |mut todo| todo.pop_front());
                    let Some((number, trial)) = next else { break };
                    let ended = attempt(binary, logs, &trial, limit);
                    if let Ok(mut done) = done.lock() {
                        println!(
                            "{}/{count} {} {}",
                            done.len() + 1,
                            trial.model,
                            trial.change
                        );
                        done.push((number, trial, ended));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    if done.len() != count {
        bail!("{} of {count} trials came back", done.len());
    }
    done.sort_by_key(|(number, ..)| *number);
    done.into_iter()
        .map(|(_, trial, ended)| Ok((trial, ended?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A program that keeps the contract and has one model, whose only mutant
    /// survives iff `survives`, and is argued for iff `argued`.
    fn fake(folder: &Path, survives: bool, argued: bool) -> PathBuf {
        let argument = r#"{"site":"seq::look","order":"Relaxed","reason":"ordered by the fence"}"#;
        let argument = if argued { argument } else { "" };
        let mutant = if survives { "true" } else { "false" };
        let script = format!(
            r#"#!/bin/sh
if [ "$1" = list ]; then
    echo '[{{"name":"torn","bound":2,"deep_bound":3,"bugs":["seq.no-check"],
        "mutants":[{{"site":"seq::look","order":"Relaxed"}}],"why_survives":[{argument}]}}]'
    exit 0
fi
[ "$*" = "run torn --bound 2" ] || exit 2
[ -z "$PV_SEED" ] || exit 101
[ -z "$PV_MUTATE" ] || {mutant} || exit 101
echo "torn: 12 executions, reached: retry=3"
"#
        );
        let path = folder.join("fake");
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn verdict(survives: bool, argued: bool) -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let binary = fake(folder.path(), survives, argued);
        let scope = Scope {
            model: None,
            depth: Depth::PullRequest,
            mutants_only: false,
        };
        check_with(&binary, &folder.path().join("logs"), &scope)
    }

    #[test]
    fn mistakes_that_are_noticed_pass() {
        verdict(false, false).unwrap();
    }

    #[test]
    fn a_mutant_that_survives_without_an_argument_fails() {
        let error = verdict(true, false).unwrap_err().to_string();
        assert!(error.contains("seq::look=Relaxed"), "{error}");
        assert!(error.contains("survives"), "{error}");
    }

    #[test]
    fn a_mutant_that_survives_with_an_argument_passes() {
        verdict(true, true).unwrap();
    }

    #[test]
    fn an_argument_for_a_mutant_that_is_noticed_fails() {
        let error = verdict(false, true).unwrap_err().to_string();
        assert!(error.contains("argument"), "{error}");
    }
}
