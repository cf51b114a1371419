//! The parts of `cargo xtask test`, run one after the other, and the account
//! at the end. There is no third outcome: a part that cannot run has failed.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};

use crate::prerequisite::{self, Missing, Prerequisite};
use crate::workspace::Workspace;

/// One part of the test.
pub struct Part {
    /// How it is named on the command line.
    pub name: &'static str,
    /// What passes when it passes.
    pub about: &'static str,
    /// What must be installed.
    pub needs: &'static [Prerequisite],
    /// Do it; an error is a failure.
    pub run: fn(&Workspace) -> Result<()>,
}

/// What became of one part.
struct Done {
    name: &'static str,
    took: Duration,
    failure: Option<String>,
}

/// What became of all.
#[derive(Default)]
struct Summary(Vec<Done>);

/// Run the named parts of `all`, or all of them; an error if one fails.
pub fn run(workspace: &Workspace, all: &'static [Part], names: &[String]) -> Result<()> {
    let chosen = choose(all, names)?;
    let needs: Vec<_> = chosen.iter().flat_map(|part| part.needs).copied().collect();
    let missing = prerequisite::provide(&needs);
    let mut summary = Summary::default();
    for part in chosen {
        println!("\n== {}: {}", part.name, part.about);
        let done = run_one(workspace, part, &missing);
        println!("== {done}");
        summary.0.push(done);
    }
    println!("\n{summary}");
    if summary.failed() > 0 {
        bail!("{} failed", summary.failures());
    }
    Ok(())
}

/// The named parts, in the order of the table.
fn choose(all: &'static [Part], names: &[String]) -> Result<Vec<&'static Part>> {
    for name in names {
        if !all.iter().any(|part| part.name == name) {
            let known: Vec<_> = all.iter().map(|part| part.name).collect();
            bail!(
                "there is no part {name}; the parts are {}",
                known.join(", ")
            );
        }
    }
    Ok(all
        .iter()
        .filter(|part| names.is_empty() || names.iter().any(|name| name == part.name))
        .collect())
}

fn run_one(workspace: &Workspace, part: &Part, missing: &Missing) -> Done {
    let start = Instant::now();
    let lacks = part.needs.iter().find_map(|need| missing.get(need));
    let result = match lacks {
        Some(message) => Err(anyhow!("{message}")),
        None => (part.run)(workspace),
    };
    Done {
        name: part.name,
        took: start.elapsed(),
        failure: result.err().map(|error| format!("{error:#}")),
    }
}

impl Summary {
    fn failed(&self) -> usize {
        let failed = |done: &&Done| done.failure.is_some();
        self.0.iter().filter(failed).count()
    }

    fn failures(&self) -> String {
        let failed = self.0.iter().filter(|done| done.failure.is_some());
        failed.map(|done| done.name).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.took.as_secs_f64();
        match &self.failure {
            None => write!(f, "{:<10} ok      {seconds:>7.1} s", self.name),
            Some(why) => write!(f, "{:<10} FAILED  {seconds:>7.1} s  {why}", self.name),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for done in &self.0 {
            writeln!(f, "{done}")?;
        }
        let (all, failed) = (self.0.len(), self.failed());
        write!(f, "parts: {} passed, {failed} failed", all - failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static PARTS: &[Part] = &[
        Part {
            name: "good",
            about: "passes",
            needs: &[],
            run: |_| Ok(()),
        },
        Part {
            name: "bad",
            about: "fails",
            needs: &[],
            run: |_| bail!("on purpose"),
        },
        Part {
            name: "needy",
            about: "would pass if it could run",
            needs: &[Prerequisite::Valgrind],
            run: |_| Ok(()),
        },
    ];

    fn workspace() -> Workspace {
        Workspace::find().unwrap()
    }

    fn summary(missing: &Missing) -> Summary {
        let run = |part| run_one(&workspace(), part, missing);
        Summary(PARTS.iter().map(run).collect())
    }

    #[test]
    fn the_last_line_counts_passed_and_failed_parts() {
        let text = summary(&Missing::new()).to_string();
        assert_eq!(text.lines().count(), 4);
        assert_eq!(text.lines().last(), Some("parts: 2 passed, 1 failed"));
        assert!(text.contains("on purpose"));
    }

    #[test]
    fn a_part_whose_prerequisite_is_missing_has_failed() {
        let missing = Missing::from([(Prerequisite::Valgrind, "no valgrind".to_owned())]);
        let summary = summary(&missing);
        assert_eq!(summary.failures(), "bad, needy");
        assert!(summary.to_string().contains("no valgrind"));
    }

    #[test]
    fn one_failed_part_fails_the_run() {
        assert!(run(&workspace(), PARTS, &["good".to_owned()]).is_ok());
        let error = run(&workspace(), PARTS, &["good".to_owned(), "bad".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "bad failed");
    }

    #[test]
    fn an_unknown_part_is_refused_and_the_known_ones_named() {
        let error = choose(PARTS, &["god".to_owned()]).err().unwrap();
        assert_eq!(
            error.to_string(),
            "there is no part god; the parts are good, bad, needy"
        );
    }
}
