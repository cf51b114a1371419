//! Formatting and clippy.

use anyhow::Result;

use crate::command::{cargo, run};
use crate::workspace::Workspace;

pub fn format(workspace: &Workspace) -> Result<()> {
    run(&mut cargo(workspace, ["fmt", "--all", "--check"]))
}

pub fn clippy(workspace: &Workspace) -> Result<()> {
    let everything = ["clippy", "--workspace", "--all-targets", "--all-features"];
    run(cargo(workspace, everything).args(["--", "-D", "warnings"]))?;
    // The libraries once more as a kernel takes them: no_std, no features.
    let mut bare = cargo(workspace, ["clippy", "--lib", "--no-default-features"]);
    for library in workspace.crates()? {
        bare.args(["-p", &library.name]);
    }
    run(bare.args(["--", "-D", "warnings"]))
}
