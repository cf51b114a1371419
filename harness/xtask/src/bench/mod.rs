//! Time and instructions of hot paths, beside a plain load.
//!
//! `tests/bench` has the operations; criterion takes their time, callgrind
//! counts their instructions, and here both come together in one table.

mod callgrind;
mod criterion;

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::{cargo, output, run};
use crate::prerequisite::{self, Prerequisite};
use crate::table::Table;
use crate::workspace::Workspace;

/// One operation: `group/name`, and what it is compared with in its group.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Op {
    id: String,
    baseline: String,
}

pub fn measure(workspace: &Workspace, name: Option<&str>) -> Result<()> {
    let missing = prerequisite::provide(&[Prerequisite::CCompiler, Prerequisite::Valgrind]);
    if let Some(message) = missing.values().next() {
        bail!("{message}");
    }
    let mut build = cargo(
        workspace,
        ["build", "--release", "-p", "bench", "--bin", "count"],
    );
    run(&mut build)?;
    let count = workspace.target("release").join("count");
    let all = read_list(&output(Command::new(&count).arg("list"))?)?;
    let chosen = choose(&all, name)?;

    let home = workspace.target("bench");
    let ids: Vec<&str> = chosen.iter().map(|op| op.id.as_str()).collect();
    let times = criterion::medians(workspace, &home, &ids)?;
    let mut instructions = Vec::new();
    for op in &chosen {
        println!("counting instructions of {}", op.id);
        instructions.push(callgrind::per_operation(&count, &home, &op.id)?);
    }

    let mut table = Table::new(&["operation", "ns (median)", "ratio", "instructions", "ratio"]);
    for (at, op) in chosen.iter().enumerate() {
        let base = chosen.iter().position(|other| other.id == op.baseline);
        let base = base.with_context(|| format!("{} is not measured", op.baseline))?;
        table.row([
            op.id.clone(),
            format!("{:.3}", times[at]),
            format!("{:.2}", times[at] / times[base]),
            format!("{:.2}", instructions[at]),
            format!("{:.2}", instructions[at] / instructions[base]),
        ]);
    }
    println!("\n{table}");
    println!("Each row includes the loop around the operation. Ratios are to the plain load");
    println!("of the same cache line. Time depends on the machine; instructions do not.");
    Ok(())
}

/// The operations whose name contains `name`, and what they are compared with.
fn choose(all: &[Op], name: Option<&str>) -> Result<Vec<Op>> {
    let named = |op: &&Op| name.is_none_or(|name| op.id.contains(name));
    let wanted: Vec<&Op> = all.iter().filter(named).collect();
    if wanted.is_empty() {
        let known: Vec<_> = all.iter().map(|op| op.id.as_str()).collect();
        bail!(
            "no operation is called {}; there are {}",
            name.unwrap_or_default(),
            known.join(", ")
        );
    }
    let needed = |op: &&Op| {
        wanted
            .iter()
            .any(|wanted| wanted.id == op.id || wanted.baseline == op.id)
    };
    Ok(all.iter().filter(needed).cloned().collect())
}

/// `count list`: a line an operation, its id and its baseline.
fn read_list(text: &str) -> Result<Vec<Op>> {
    text.lines()
        .map(|line| {
            let (id, baseline) = line
                .split_once(' ')
                .with_context(|| format!("`count list` printed {line:?}"))?;
            Ok(Op {
                id: id.to_owned(),
                baseline: baseline.to_owned(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ops() -> Vec<Op> {
        read_list("record/load record/load\nrecord/steal record/load\nlock/tas lock/load").unwrap()
    }

    #[test]
    fn a_chosen_operation_brings_its_baseline() {
        let chosen = choose(&ops(), Some("steal")).unwrap();
        let ids: Vec<_> = chosen.iter().map(|op| op.id.as_str()).collect();
        assert_eq!(ids, ["record/load", "record/steal"]);
        assert_eq!(choose(&ops(), None).unwrap().len(), 3);
    }

    #[test]
    fn an_unknown_operation_is_refused() {
        let error = choose(&ops(), Some("yield")).unwrap_err().to_string();
        assert!(error.contains("record/steal"), "{error}");
        assert!(read_list("no-baseline").is_err());
    }
}
