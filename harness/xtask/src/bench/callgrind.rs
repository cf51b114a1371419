//! Instruction counts, by callgrind.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Iterations of the shorter run.
const N: u32 = 100_000;

/// Instructions per operation: the difference between 2N and N iterations,
/// through N. What is outside the loop cancels out.
pub fn per_operation(count: &Path, home: &Path, id: &str) -> Result<f64> {
    let short = total(count, home, id, N)?;
    let long = total(count, home, id, 2 * N)?;
    let difference = long
        .checked_sub(short)
        .and_then(|difference| u32::try_from(difference).ok())
        .with_context(|| format!("{id}: {short} instructions for N, {long} for 2N"))?;
    Ok(f64::from(difference) / f64::from(N))
}

fn total(count: &Path, home: &Path, id: &str, iterations: u32) -> Result<u64> {
    let out = home.join("callgrind.out");
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(count)
        .args([id, &iterations.to_string()])
        .output()
        .context("cannot start valgrind")?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("valgrind ended with {}:\n{text}", output.status);
    }
    read_total(&text).with_context(|| format!("valgrind gave no count:\n{text}"))
}

/// `==12== Collected : 3456`
fn read_total(text: &str) -> Option<u64> {
    let number = text
        .lines()
        .find_map(|line| line.split_once("Collected :"))?
        .1;
    number.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read_from_the_summary() {
        let text = "==7== Events    : Ir\n==7== Collected : 310521\n==7== \n";
        assert_eq!(read_total(text), Some(310_521));
        assert_eq!(read_total("==7== Events : Ir"), None);
    }
}
