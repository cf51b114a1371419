//! Nothing goes past the shim.
//!
//! Two checks, since each sees what the other cannot. Clippy under
//! `cfg(pv_loom)` knows types, through any alias, but sees only what is compiled
//! there; the reading of the sources sees every file, but only names.

use std::path::Path;

use anyhow::{Context, Result, bail};
use proc_macro2::TokenStream;

use crate::command::{cargo, run, with_flags};
use crate::tokens::paths;
use crate::workspace::{Workspace, rust_files};

/// Folders whose sources are read.
const READ: [&str; 3] = ["crates", "harness", "tests"];
/// The shim itself.
const SHIM: &str = "crates/pv-arch/src/sync";

pub fn check(workspace: &Workspace) -> Result<()> {
    let found = read_sources(workspace)?;
    for line in &found {
        println!("{line}");
    }
    let mut command = cargo(workspace, ["clippy", "--lib"]);
    for library in workspace.crates()? {
        command.args(["-p", &library.name]);
    }
    command.args(["--", "-D", "warnings"]);
    command.args(["-D", "clippy::disallowed_types"]);
    command.args(["-D", "clippy::disallowed_methods"]);
    let target = workspace.target("loom");
    run(with_flags(&mut command, "--cfg pv_loom", &target))?;
    if !found.is_empty() {
        bail!("{} places go past pv_arch::sync", found.len());
    }
    Ok(())
}

fn read_sources(workspace: &Workspace) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut files = 0;
    for folder in READ {
        for file in rust_files(&workspace.path(folder))? {
            let shown = file.strip_prefix(workspace.root()).unwrap_or(&file);
            if shown.starts_with(SHIM) {
                continue;
            }
            files += 1;
            let source = std::fs::read_to_string(&file)?;
            found.extend(
                bypasses(&source)
                    .with_context(|| format!("cannot read {}", shown.display()))?
                    .into_iter()
                    .map(|(line, path)| describe(shown, line, &path)),
            );
        }
    }
    println!("read {files} files outside the shim");
    Ok(found)
}

fn describe(file: &Path, line: usize, path: &str) -> String {
    format!("{}:{line}: {path}: use pv_arch::sync", file.display())
}

/// The paths in `source` that lead to atomics or cells past the shim.
fn bypasses(source: &str) -> Result<Vec<(usize, String)>> {
    let tokens: TokenStream = source.parse().map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(paths(tokens)
        .into_iter()
        .filter(|path| goes_past(&path.segments))
        .map(|path| (path.line, path.segments.join("::")))
        .collect())
}

fn goes_past(path: &[String]) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        // `use std::sync;` or `use std::cell::*;` would hide what follows.
        ["core" | "std", "sync" | "cell"]
        | ["core" | "std", "sync" | "cell", "*" | "self"]
        | ["core" | "std", "sync", "atomic", ..]
        | ["core" | "std", "cell", "UnsafeCell", ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(source: &str) -> usize {
        bypasses(source).unwrap().len()
    }

    #[test]
    fn every_way_to_name_an_atomic_is_found() {
        for source in [
            "use core::sync::atomic::AtomicU32;",
            "use std::{fmt, sync::{Arc, atomic::{AtomicBool}}};",
            "static X: std::sync::atomic::AtomicU8 = y;",
            "fn f() { m! { core::cell::UnsafeCell::new(1) } }",
            "use std::sync::*;",
            "use std::sync::{self};",
            "use ::core::sync as s;",
        ] {
            assert_eq!(count(source), 1, "{source}");
        }
    }

    #[test]
    fn the_shim_locks_and_channels_are_not() {
        for source in [
            "use pv_arch::sync::atomic::AtomicU32;",
            "use pv_arch::sync::cell::UnsafeCell;",
            "use std::sync::{Arc, Mutex, mpsc};",
            "use std::cell::Cell;",
            "// std::sync::atomic::AtomicU8",
        ] {
            assert_eq!(count(source), 0, "{source}");
        }
    }
}
