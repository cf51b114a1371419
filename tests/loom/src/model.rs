//! What a model is, and how one is explored.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use serde::Serialize;

/// A model: a concurrent program, and what must come of exploring it.
#[derive(Debug, Serialize)]
pub struct Model {
    /// Its name on the command line.
    pub name: &'static str,
    /// The property, in a line.
    pub about: &'static str,
    /// Preemptions an execution may have, on every change.
    pub bound: usize,
    /// The same, when there is time.
    pub deep_bound: usize,
    /// Fewer executions than this at `bound` or more mean that the exploration
    /// was cut short or that the program no longer does what it did.
    #[serde(skip)]
    pub min_executions: u64,
    /// Places that some execution must come to (see [`Ghost::reached`]).
    pub paths: &'static [&'static str],
    /// Seeded bugs that must make it fail.
    pub bugs: &'static [&'static str],
    /// Weakened orderings that must make it fail.
    pub mutants: &'static [Mutant],
    /// Weakened orderings that no model can notice, and why.
    pub why_survives: &'static [Survivor],
    /// One execution.
    #[serde(skip)]
    pub body: fn(&Ghost),
}

/// A named ordering, replaced by a weaker one.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Mutant {
    /// The ordering's name, with its module.
    pub site: &'static str,
    /// What it is replaced by.
    pub order: &'static str,
}

/// A mutant that is not a mistake.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Survivor {
    /// The ordering's name, with its module.
    pub site: &'static str,
    /// What it is replaced by.
    pub order: &'static str,
    /// Why every execution stays right.
    pub reason: &'static str,
}

/// A mutant; the shape of a table row.
pub const fn mutant(site: &'static str, order: &'static str) -> Mutant {
    Mutant { site, order }
}

/// What a model knows and its program does not: which paths were come through.
/// It is not made of loom's types, so asking it changes no interleaving.
#[derive(Clone, Debug, Default)]
pub struct Ghost(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    executions: u64,
    paths: BTreeMap<&'static str, u64>,
}

impl Ghost {
    /// Count that an execution came to the place `path`.
    pub fn reached(&self, path: &'static str) {
        *self.counts().paths.entry(path).or_default() += 1;
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Explore `model`. Panics, or aborts, where it fails; `Err` says that nothing
/// failed but that too little was explored.
pub fn explore(model: &'static Model, bound: usize) -> Result<String, String> {
    print_only_the_first_panic(model.name);
    let ghost = Ghost::default();
    let inside = ghost.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(bound);
    builder.check(move || {
        inside.counts().executions += 1;
        (model.body)(&inside);
    });
    report(model, bound, &ghost.counts())
}

fn report(model: &Model, bound: usize, counts: &Counts) -> Result<String, String> {
    let name = model.name;
    let executions = counts.executions;
    let mut line = format!("{name}: {executions} executions, reached:");
    for (path, count) in &counts.paths {
        let _ = write!(line, " {path}={count}");
    }
    if a_mistake_is_on() {
        // Then only a broken property counts as noticing it.
        return Ok(line);
    }
    if let Some(missed) = model.paths.iter().find(|p| !counts.paths.contains_key(*p)) {
        return Err(format!("{line}\n{name}: no execution came to {missed}"));
    }
    if let Some(extra) = counts.paths.keys().find(|p| !model.paths.contains(p)) {
        return Err(format!("{line}\n{name}: its table does not name {extra}"));
    }
    let least = model.min_executions;
    if bound >= model.bound && executions < least {
        return Err(format!("{line}\n{name}: that is fewer than {least}"));
    }
    Ok(line)
}

fn a_mistake_is_on() -> bool {
    ["PV_SEED", "PV_MUTATE"]
        .iter()
        .any(|name| std::env::var_os(name).is_some())
}

/// The first panic of a failing execution is its cause; the others come from
/// loom taking the execution down.
fn print_only_the_first_panic(name: &'static str) {
    std::panic::set_hook(Box::new(move |info| {
        static FIRST: Once = Once::new();
        FIRST.call_once(|| eprintln!("{name}: FAILED: {info}"));
    }));
}
