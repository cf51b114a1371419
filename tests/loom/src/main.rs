//! Loom models of the crates' own code, and the mistakes that they must notice.
//!
//! A model is a small concurrent program over production code; loom runs it
//! under every interleaving and every stale value that the memory model allows,
//! up to a number of preemptions. A model that has never failed proves little,
//! so each names the seeded bugs and the weakened orderings that it must fail
//! with, and the paths that an exploration must have come through.
//!
//! ```text
//! export RUSTFLAGS="--cfg pv_loom" CARGO_TARGET_DIR=target/loom
//! cargo run --release -p loom-models -- list
//! cargo run --release -p loom-models -- run kvm-x86-one-update
//! PV_SEED=seq.never-odd cargo run --release -p loom-models -- run kvm-x86-one-update
//! ```
//!
//! A new model is an entry in the table of a file under `models/`; a new file is
//! a line in `models/mod.rs`. `table` refuses a named ordering that no model and
//! no argument accounts for.

#[cfg(pv_loom)]
mod cli;
#[cfg(pv_loom)]
mod model;
#[cfg(pv_loom)]
mod models;
#[cfg(pv_loom)]
mod table;

#[cfg(pv_loom)]
fn main() -> std::process::ExitCode {
    cli::main()
}

#[cfg(not(pv_loom))]
fn main() -> std::process::ExitCode {
    eprintln!(
        "built without the models; run `cargo xtask loom`, or\n  \
         RUSTFLAGS=\"--cfg pv_loom\" cargo run --release --target-dir target/loom -p loom-models -- list"
    );
    std::process::ExitCode::from(2)
}
