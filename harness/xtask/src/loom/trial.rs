//! Which trials there are, and how each should end.

use std::fmt;

use anyhow::{Result, bail};

use crate::loom::contract::{Model, Mutant};
use crate::loom::ending::Ending;
use crate::loom::{Depth, Scope};

/// One exploration of one model.
#[derive(Clone, Debug)]
pub struct Trial {
    pub model: String,
    pub bound: Option<u32>,
    pub change: Change,
}

/// What is different from the code as written.
#[derive(Clone, Debug)]
pub enum Change {
    Clean,
    Bug(String),
    Mutant {
        mutant: Mutant,
        /// Why this one is no mistake, if the model says so.
        argument: Option<String>,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clean => f.write_str("clean"),
            Self::Bug(name) => write!(f, "bug {name}"),
            Self::Mutant { mutant, .. } => write!(f, "{mutant}"),
        }
    }
}

/// All trials in `scope`.
pub fn plan(models: &[Model], scope: &Scope) -> Result<Vec<Trial>> {
    let chosen: Vec<&Model> = models
        .iter()
        .filter(|model| scope.model.as_ref().is_none_or(|name| *name == model.name))
        .collect();
    if chosen.is_empty() {
        let known: Vec<_> = models.iter().map(|model| model.name.as_str()).collect();
        match &scope.model {
            Some(name) => bail!(
                "there is no model {name}; the models are {}",
                known.join(", ")
            ),
            None => bail!("there are no models"),
        }
    }
    let trials: Vec<Trial> = chosen
        .into_iter()
        .flat_map(|model| trials(model, scope))
        .collect();
    if trials.is_empty() {
        bail!("there is nothing to try: no mutant is listed");
    }
    Ok(trials)
}

fn trials(model: &Model, scope: &Scope) -> Vec<Trial> {
    let bound = match scope.depth {
        Depth::PullRequest => model.bound,
        Depth::Deep => model.deep_bound,
        Depth::Fixed(bound) => Some(bound),
    };
    let mut changes = Vec::new();
    if !scope.mutants_only {
        changes.push(Change::Clean);
        changes.extend(model.bugs.iter().cloned().map(Change::Bug));
    }
    let argument = |mutant: &Mutant| {
        let mut arguments = model.why_survives.iter();
        let survivor = arguments.find(|survivor| survivor.mutant == *mutant);
        survivor.map(|survivor| survivor.reason.clone())
    };
    let argued_only = model
        .why_survives
        .iter()
        .map(|survivor| &survivor.mutant)
        .filter(|mutant| !model.mutants.contains(mutant));
    changes.extend(
        model
            .mutants
            .iter()
            .chain(argued_only)
            .map(|mutant| Change::Mutant {
                mutant: mutant.clone(),
                argument: argument(mutant),
            }),
    );
    changes
        .into_iter()
        .map(|change| Trial {
            model: model.name.clone(),
            bound,
            change,
        })
        .collect()
}

/// Whether a trial ended as it should.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Right(String),
    Wrong(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Right(what) => f.write_str(what),
            Self::Wrong(why) => write!(f, "WRONG: {why}"),
        }
    }
}

/// Judge how a trial ended.
pub fn judge(trial: &Trial, ending: &Ending) -> Verdict {
    let right = |what: &str| Verdict::Right(what.to_owned());
    let wrong = |why: &str| Verdict::Wrong(why.to_owned());
    match (&trial.change, ending) {
        (_, Ending::OutOfTime) => wrong("did not end within its time"),
        (_, Ending::Broken(why)) => wrong(why),
        (Change::Clean, Ending::Passed { unreached, .. }) => match unreached.as_slice() {
            [] => right("passes"),
            never => Verdict::Wrong(format!("never reached {}", never.join(", "))),
        },
        (Change::Clean, Ending::Failed) => wrong("fails"),
        (Change::Bug(_), Ending::Failed) => right("noticed"),
        (Change::Bug(_), Ending::Passed { .. }) => wrong("survives"),
        (Change::Mutant { argument, .. }, Ending::Failed) => match argument {
            None => right("noticed"),
            Some(_) => wrong("noticed, although there is an argument that it survives"),
        },
        (Change::Mutant { argument, .. }, Ending::Passed { .. }) => match argument {
            None => wrong("survives, and there is no argument why"),
            Some(reason) => Verdict::Right(format!("survives: {reason}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        serde_json::from_str(
            r#"{"name":"m","bound":2,"deep_bound":null,"bugs":["b"],
                "mutants":[{"site":"s","order":"Relaxed"}],
                "why_survives":[{"site":"t","order":"Acquire","reason":"r"}]}"#,
        )
        .unwrap()
    }

    fn scope(depth: Depth, mutants_only: bool) -> Scope {
        Scope {
            model: None,
            depth,
            mutants_only,
        }
    }

    fn planned(scope: &Scope) -> Vec<String> {
        let trials = plan(&[model()], scope).unwrap();
        let line = |trial: &Trial| format!("{} {:?}", trial.change, trial.bound);
        trials.iter().map(line).collect()
    }

    #[test]
    fn each_mistake_is_a_trial_of_its_own() {
        assert_eq!(
            planned(&scope(Depth::PullRequest, false)),
            [
                "clean Some(2)",
                "bug b Some(2)",
                "s=Relaxed Some(2)",
                "t=Acquire Some(2)"
            ]
        );
        assert_eq!(
            planned(&scope(Depth::Deep, true)),
            ["s=Relaxed None", "t=Acquire None"]
        );
    }

    #[test]
    fn an_unknown_model_is_refused_and_an_empty_list_too() {
        let mut unknown = scope(Depth::Fixed(1), false);
        unknown.model = Some("n".to_owned());
        let error = plan(&[model()], &unknown).unwrap_err().to_string();
        assert_eq!(error, "there is no model n; the models are m");
        assert!(plan(&[], &scope(Depth::Fixed(1), false)).is_err());
    }

    #[test]
    fn a_check_of_no_mutants_does_not_pass() {
        let mut bare = model();
        bare.mutants.clear();
        bare.why_survives.clear();
        assert!(plan(&[bare], &scope(Depth::PullRequest, true)).is_err());
    }

    #[test]
    fn a_model_that_never_reaches_its_case_does_not_pass() {
        let trials = plan(&[model()], &scope(Depth::PullRequest, false)).unwrap();
        let ending = Ending::Passed {
            executions: 9,
            unreached: vec!["retry".to_owned()],
        };
        let wrong = Verdict::Wrong("never reached retry".to_owned());
        assert_eq!(judge(&trials[0], &ending), wrong);
    }

    #[test]
    fn a_mistake_that_ran_out_of_time_was_not_noticed() {
        for trial in plan(&[model()], &scope(Depth::PullRequest, false)).unwrap() {
            assert!(matches!(
                judge(&trial, &Ending::OutOfTime),
                Verdict::Wrong(_)
            ));
        }
    }
}
