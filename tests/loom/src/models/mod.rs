//! The models, a file for each protocol.

mod counter;
mod flush;
mod kick;
mod power;
mod preempted;
mod register;
mod seq;
mod wait;
mod xen;

use crate::model::Model;

/// All of them, by file.
pub const ALL: &[&[Model]] = &[
    seq::MODELS,
    preempted::MODELS,
    flush::MODELS,
    register::MODELS,
    kick::MODELS,
    counter::MODELS,
    power::MODELS,
    wait::MODELS,
    xen::MODELS,
];
