//! What can become of a trial.

/// How a trial ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ending {
    /// No failure in any execution.
    Passed {
        executions: u64,
        /// Cases that the model wants to come to and did not.
        unreached: Vec<String>,
    },
    /// The model found a failure.
    Failed,
    /// It was stopped.
    OutOfTime,
    /// It ended for a reason that says nothing about the code.
    Broken(String),
}

impl Ending {
    pub fn executions(&self) -> Option<u64> {
        match self {
            Self::Passed { executions, .. } => Some(*executions),
            _ => None,
        }
    }
}
