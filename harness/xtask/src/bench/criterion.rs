//! Wall-clock time, by criterion.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::command::{cargo, run};
use crate::workspace::Workspace;

/// What is read of criterion's `estimates.json`.
#[derive(Deserialize)]
struct Estimates {
    median: Estimate,
}

#[derive(Deserialize)]
struct Estimate {
    /// Nanoseconds.
    point_estimate: f64,
}

/// Measure these operations, in one run, and return the median of each in
/// nanoseconds.
pub fn medians(workspace: &Workspace, home: &Path, ids: &[&str]) -> Result<Vec<f64>> {
    // Nothing of an earlier run may be taken for this one's.
    if home.exists() {
        std::fs::remove_dir_all(home)?;
    }
    std::fs::create_dir_all(home)?;
    let filter = format!("^({})$", ids.join("|"));
    let mut command = cargo(workspace, ["bench", "-p", "bench", "--bench", "all", "--"]);
    run(command
        .args([&filter, "--quiet"])
        .env("CRITERION_HOME", home))?;
    ids.iter().map(|id| median(home, id)).collect()
}

fn median(home: &Path, id: &str) -> Result<f64> {
    let path = home.join(id).join("new/estimates.json");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("criterion left no {}", path.display()))?;
    let estimates: Estimates = serde_json::from_str(&text)?;
    Ok(estimates.median.point_estimate)
}
