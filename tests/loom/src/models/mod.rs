//! The models, a file for each protocol.

mod flush;
mod kick;
mod preempted;
mod register;
mod seq;

use crate::model::Model;

/// All of them, by file.
pub const ALL: &[&[Model]] = &[
    seq::MODELS,
    preempted::MODELS,
    flush::MODELS,
    register::MODELS,
    kick::MODELS,
];
