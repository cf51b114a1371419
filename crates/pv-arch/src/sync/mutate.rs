//! Breaking the code from outside, to see that a model notices.
//!
//! Two environment variables, read once a process:
//!
//! * `PV_MUTATE=module::path::name=Relaxed` replaces one named ordering;
//! * `PV_SEED=bug.name` switches one seeded bug on.

use core::sync::atomic::Ordering;
use std::sync::OnceLock;

/// A named ordering, as [`orderings!`](crate::orderings) lists it.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Module path and name.
    pub name: &'static str,
    /// The ordering as written.
    pub order: Ordering,
}

/// The ordering to use at the site `name`.
///
/// # Panics
/// If `PV_MUTATE` has no `=` or names no ordering: a mutant that was never
/// applied must not count as one that survived.
pub fn ordering(name: &str, written: Ordering) -> Ordering {
    static MUTANT: OnceLock<Option<(String, Ordering)>> = OnceLock::new();
    let mutant = MUTANT.get_or_init(|| {
        let text = std::env::var("PV_MUTATE").ok()?;
        let (site, order) = text
            .split_once('=')
            .unwrap_or_else(|| panic!("PV_MUTATE={text}: want SITE=ORDERING"));
        Some((site.to_owned(), parse(order)))
    });
    match mutant {
        Some((site, order)) if site == name => *order,
        _ => written,
    }
}

/// Whether the seeded bug `name` is on.
pub fn seeded(name: &str) -> bool {
    static SEED: OnceLock<Option<String>> = OnceLock::new();
    SEED.get_or_init(|| std::env::var("PV_SEED").ok())
        .as_deref()
        == Some(name)
}

fn parse(order: &str) -> Ordering {
    match order {
        "Relaxed" => Ordering::Relaxed,
        "Acquire" => Ordering::Acquire,
        "Release" => Ordering::Release,
        "AcqRel" => Ordering::AcqRel,
        "SeqCst" => Ordering::SeqCst,
        other => panic!("PV_MUTATE: {other} is not an ordering"),
    }
}
