//! The freestanding link, and what the result may contain.
//!
//! `tests/link` uses every public entry point of `crates/*`. Here: is that true
//! (`surface`, on `modules`), does it build (`build`), is the result clean
//! (`image`) - and would this check notice if it were not: the same program is
//! built again with a seeded panic, overflow and missing symbol.

mod build;
mod image;
mod modules;
mod surface;
mod syntax;

use anyhow::{Result, bail};

use crate::link::build::{Seed, build};
use crate::link::image::{Image, Rules};
use crate::workspace::Workspace;

pub fn check(workspace: &Workspace) -> Result<()> {
    let mut complaints = surface::check(workspace)?;

    for (seed, sign) in [
        (Seed::Panic, "can panic"),
        (Seed::Overflow, "can panic"),
        (Seed::Missing, "pv_seeded_missing_symbol"),
    ] {
        let image = Image::read(&build(workspace, seed)?.hot)?;
        let found = image.complaints(Rules::NoPanic);
        match found.iter().find(|line| line.contains(sign)) {
            Some(line) => println!("{seed}: noticed ({line})"),
            None => complaints.push(format!("{seed}: NOT noticed by this check")),
        }
    }

    let built = build(workspace, Seed::None)?;
    for (file, rules) in [(built.hot, Rules::NoPanic), (built.text, Rules::NoStd)] {
        let image = Image::read(&file)?;
        println!("{}: {} symbols", file.display(), image.symbols());
        complaints.extend(image.complaints(rules));
    }

    for line in &complaints {
        println!("{line}");
    }
    if !complaints.is_empty() {
        bail!(
            "{} complaints about the freestanding link",
            complaints.len()
        );
    }
    println!(
        "freestanding link: every entry point, no std, no alloc, nothing undefined, no panic; \
         all seeded faults noticed"
    );
    Ok(())
}
