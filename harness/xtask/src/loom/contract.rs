//! What `loom-models list --json` says.

use std::fmt;

use serde::Deserialize;

/// A model and the mistakes that it must notice.
#[derive(Clone, Debug, Deserialize)]
pub struct Model {
    pub name: String,
    /// Preemption bound for a pull request; none is exhaustive.
    pub bound: Option<u32>,
    /// Preemption bound for a nightly run.
    pub deep_bound: Option<u32>,
    /// Seeded bugs.
    pub bugs: Vec<String>,
    /// Named orderings, weakened.
    pub mutants: Vec<Mutant>,
    /// Those among the mutants that are no mistake, and why.
    pub why_survives: Vec<Survivor>,
}

/// A named ordering and what it is replaced by.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Mutant {
    pub site: String,
    pub order: Order,
}

/// A mutant that changes nothing, by this argument.
#[derive(Clone, Debug, Deserialize)]
pub struct Survivor {
    #[serde(flatten)]
    pub mutant: Mutant,
    pub reason: String,
}

/// A memory ordering. Any other word is refused here: a mutant that is never
/// applied must not count as one that was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Order {
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={:?}", self.site, self.order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_ordering_is_refused() {
        let good: Mutant = serde_json::from_str(r#"{"site":"a::b","order":"Relaxed"}"#).unwrap();
        assert_eq!(good.to_string(), "a::b=Relaxed");
        assert!(serde_json::from_str::<Mutant>(r#"{"site":"a::b","order":"relaxed"}"#).is_err());
    }
}
