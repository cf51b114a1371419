//! `list` and `run`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{model, table};

/// Loom models of the workspace's crates.
///
/// The environment switches one mistake on: `PV_SEED=BUG`, or
/// `PV_MUTATE=SITE=ORDERING`. The model must then fail.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print the models and the mistakes that each must notice.
    List {
        /// As a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Explore one model; the exit code is not 0 if it fails.
    Run {
        /// The model's name.
        name: String,
        /// How many preemptions an execution may have.
        #[arg(long)]
        bound: Option<usize>,
    },
}

pub fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::List { json } => list(json),
        Command::Run { name, bound } => run(&name, bound),
    }
}

fn list(json: bool) -> ExitCode {
    let problems = table::problems();
    for problem in &problems {
        eprintln!("loom-models: {problem}");
    }
    let models: Vec<_> = table::models().collect();
    if json {
        match serde_json::to_string_pretty(&models) {
            Ok(text) => println!("{text}"),
            Err(error) => {
                eprintln!("loom-models: {error}");
                return ExitCode::FAILURE;
            }
        }
    } else {
        for model in models {
            println!("{:<32} {}", model.name, model.about);
        }
    }
    if problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn run(name: &str, bound: Option<usize>) -> ExitCode {
    let Some(model) = table::models().find(|model| model.name == name) else {
        eprintln!("loom-models: there is no model {name}; `list` names them");
        return ExitCode::from(2);
    };
    match model::explore(model, bound.unwrap_or(model.bound)) {
        Ok(summary) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(short) => {
            eprintln!("{short}");
            ExitCode::FAILURE
        }
    }
}
