//! All models, and whether they account for every named ordering.

use std::collections::BTreeSet;

use pv_arch::sync::atomic::Ordering;
use pv_arch::sync::mutate::Site;

use crate::model::Model;
use crate::models;

/// Every model.
pub fn models() -> impl Iterator<Item = &'static Model> {
    models::ALL.iter().copied().flatten()
}

/// Every named ordering of the code under test.
fn sites() -> impl Iterator<Item = &'static Site> {
    pv_steal::sites::ALL
        .iter()
        .copied()
        .flatten()
        .chain(pv_arch::mock::SITES)
}

/// The orderings that are one step weaker.
fn weaker(order: Ordering) -> &'static [&'static str] {
    match order {
        Ordering::SeqCst => &["AcqRel"],
        Ordering::AcqRel => &["Acquire", "Release"],
        Ordering::Acquire | Ordering::Release => &["Relaxed"],
        _ => &[],
    }
}

/// What is wrong with the table: orderings that nothing accounts for, rows that
/// stand for nothing, names that are used twice.
pub fn problems() -> Vec<String> {
    let possible: BTreeSet<_> = sites()
        .flat_map(|site| weaker(site.order).iter().map(|order| (site.name, *order)))
        .collect();
    let killed: BTreeSet<_> = models()
        .flat_map(|model| model.mutants)
        .map(|mutant| (mutant.site, mutant.order))
        .collect();
    let argued: BTreeSet<_> = models()
        .flat_map(|model| model.why_survives)
        .map(|survivor| (survivor.site, survivor.order))
        .collect();
    let named: BTreeSet<_> = killed.union(&argued).copied().collect();

    let mut problems = Vec::new();
    let mut say = |what: &str, (site, order): (&str, &str)| {
        problems.push(format!("{what}: {site}={order}"));
    };
    for mutant in possible.difference(&named) {
        say("no model and no argument accounts for", *mutant);
    }
    for mutant in named.difference(&possible) {
        say("the code has no such mutant", *mutant);
    }
    for mutant in killed.intersection(&argued) {
        say("both noticed and argued away", *mutant);
    }
    let mut taken = BTreeSet::new();
    for model in models() {
        if !taken.insert(model.name) {
            problems.push(format!("two models are called {}", model.name));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ordering_is_noticed_or_argued_away() {
        assert_eq!(problems(), Vec::<String>::new());
    }

    #[test]
    fn every_model_notices_something() {
        for model in models() {
            let mistakes = model.bugs.len() + model.mutants.len();
            assert!(mistakes > 0, "{} cannot fail", model.name);
            assert!(!model.paths.is_empty(), "{} goes nowhere", model.name);
            assert!(model.deep_bound > model.bound, "{}", model.name);
        }
    }
}
