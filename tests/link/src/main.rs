//! Links every public entry point of `crates/*` into a binary that has no
//! `std`, no `alloc` and no way to panic.
//!
//! `cargo xtask link` builds it with `--cfg pv_freestanding` and judges the
//! result: what is undefined, what comes from where, what can panic. Built the
//! ordinary way it runs the same calls once on the host.
//!
//! The folders are named by crate and the files by module of that crate;
//! `cargo xtask link` reads both sides and names what is missing here. A new
//! module there is a new file here, with a `run` that the list below calls.
//!
//! Every argument goes through `black_box` and every call stands in a function
//! that is not inlined, so that nothing is computed at compile time.

#![cfg_attr(pv_freestanding, no_std, no_main)]

mod kernel;
mod pv_arch;
mod pv_steal;
#[cfg(pv_freestanding)]
mod runtime;

fn every_entry_point() {
    pv_arch::run();
    pv_steal::run();
}

#[cfg(pv_freestanding)]
#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    every_entry_point();
    runtime::stop()
}

#[cfg(not(pv_freestanding))]
fn main() {
    every_entry_point();
    println!("every entry point ran on the host; `cargo xtask link` checks the freestanding build");
}
