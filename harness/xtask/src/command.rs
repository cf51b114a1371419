//! Running other programs.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// A cargo command at the top of the workspace.
pub fn cargo<'a>(workspace: &Workspace, args: impl IntoIterator<Item = &'a str>) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(workspace.root()).args(args);
    command
}

/// Compile with these flags only, into a target directory of their own.
pub fn with_flags<'a>(command: &'a mut Command, flags: &str, target: &Path) -> &'a mut Command {
    command
        .env("RUSTFLAGS", flags)
        .env("CARGO_TARGET_DIR", target)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
}

/// Run with the output shown; an error if it fails.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    println!("$ {shown}");
    let status = command
        .status()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(())
}

/// Run and return what it printed; its errors are shown.
pub fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` ended with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed no text"))
}

/// Whether the command can be started and succeeds; its output is dropped.
pub fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The command as one would type it.
fn show(command: &Command) -> String {
    let mut words = Vec::new();
    for (name, value) in command.get_envs() {
        if let (true, Some(value)) = (name == "RUSTFLAGS", value) {
            words.push(format!("RUSTFLAGS=\"{}\"", value.display()));
        }
    }
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    words.push(name.display().to_string());
    words.extend(command.get_args().map(|arg| arg.display().to_string()));
    words.join(" ")
}
