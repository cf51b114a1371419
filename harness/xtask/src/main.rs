//! Everything about this workspace that takes more than one command.
//!
//! ```text
//!   cargo xtask test [PART...]     all that a pull request must pass
//!   cargo xtask loom [MODEL]       models, each seeded bug, each weakened ordering
//!   cargo xtask mutants            the weakened orderings only
//!   cargo xtask link               the freestanding link and what it may contain
//!   cargo xtask bench [NAME]       time and instructions beside a plain load
//! ```

mod bench;
mod command;
mod link;
mod loom;
mod part;
mod parts;
mod prerequisite;
mod shim;
mod table;
mod tokens;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use crate::loom::{Depth, Scope};
use crate::workspace::Workspace;

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "Checks and measurements of this workspace"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run all parts of the test, or those named.
    Test {
        /// Parts to run; all if none is named.
        parts: Vec<String>,
        /// Print the parts and end.
        #[arg(long)]
        list: bool,
    },
    /// Check the models: clean, with each seeded bug, with each weakened ordering.
    Loom(LoomArgs),
    /// Check that each weakened memory ordering is noticed by a model.
    Mutants(LoomArgs),
    /// Build the freestanding binaries and check what is in them.
    Link,
    /// Measure hot paths beside a plain load of the same cache line.
    Bench {
        /// Only operations whose `group/name` contains this.
        name: Option<String>,
    },
}

#[derive(Args)]
struct LoomArgs {
    /// Only this model.
    model: Option<String>,
    /// Preemption bound for every model, instead of its own.
    #[arg(long)]
    bound: Option<u32>,
    /// Use each model's deep bound: nightly, not for a pull request.
    #[arg(long, conflicts_with = "bound")]
    deep: bool,
}

impl LoomArgs {
    fn scope(self, mutants_only: bool) -> Scope {
        let depth = match (self.bound, self.deep) {
            (Some(bound), _) => Depth::Fixed(bound),
            (None, true) => Depth::Deep,
            (None, false) => Depth::PullRequest,
        };
        Scope {
            model: self.model,
            depth,
            mutants_only,
        }
    }
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    let workspace = Workspace::find()?;
    match command {
        Command::Test { list: true, .. } => {
            for part in parts::ALL {
                println!("{:<10} {}", part.name, part.about);
            }
            Ok(())
        }
        Command::Test { parts, list: false } => part::run(&workspace, parts::ALL, &parts),
        Command::Loom(args) => loom::check(&workspace, &args.scope(false)),
        Command::Mutants(args) => loom::check(&workspace, &args.scope(true)),
        Command::Link => link::check(&workspace),
        Command::Bench { name } => bench::measure(&workspace, name.as_deref()),
    }
}
