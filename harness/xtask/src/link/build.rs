//! Building `tests/link` without a runtime.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{cargo, output, run, with_flags};
use crate::workspace::Workspace;

/// A mistake to build in.
#[derive(Clone, Copy)]
pub enum Seed {
    None,
    /// One entry point can index out of range.
    Panic,
    /// One entry point can overflow, which is a panic where overflow is checked.
    Overflow,
    /// One function is declared and nowhere defined.
    Missing,
}

impl Seed {
    const fn flag(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Panic => " --cfg pv_seed_panic",
            Self::Overflow => " --cfg pv_seed_overflow",
            Self::Missing => " --cfg pv_seed_missing",
        }
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "nothing seeded",
            Self::Panic => "seeded panic",
            Self::Overflow => "seeded overflow",
            Self::Missing => "seeded missing symbol",
        })
    }
}

/// The two binaries.
pub struct Built {
    /// Every entry point except formatting.
    pub hot: PathBuf,
    /// Formatting.
    pub text: PathBuf,
}

/// No runtime, no libraries, one file at a fixed address. The linker lets
/// undefined symbols pass, because the check on the image names them better;
/// the seeded missing symbol proves that it does. Overflow is checked, as it
/// is in some kernels.
const FLAGS: &str = "--cfg pv_freestanding -C relocation-model=static -C overflow-checks=on \
    -C link-arg=-nostartfiles -C link-arg=-nostdlib -C link-arg=-static -C link-arg=-no-pie \
    -C link-arg=-Wl,--build-id=none -C link-arg=-Wl,--unresolved-symbols=ignore-all";

pub fn build(workspace: &Workspace, seed: Seed) -> Result<Built> {
    let host = host()?;
    let target = workspace.target("link");
    // With an explicit target the flags do not reach build scripts.
    let mut command = cargo(workspace, ["build", "-p", "link-test", "--bins"]);
    command.args(["--profile", "freestanding", "--target", &host]);
    let flags = format!("{FLAGS}{}", seed.flag());
    run(with_flags(&mut command, &flags, &target))?;
    let folder = target.join(host).join("freestanding");
    Ok(Built {
        hot: folder.join("link-test"),
        text: folder.join("link-text"),
    })
}

/// The triple that this compiler compiles for by itself.
fn host() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let text = output(Command::new(rustc).arg("-vV"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .context("`rustc -vV` names no host")
}
