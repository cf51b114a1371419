//! What to believe of another CPU's record.

use core::hint::black_box;

use pv_arch::Nanos;
use pv_steal::{Belief, Preemption, ReadError};

const GAVE_UP: ReadError = ReadError::KeepsChanging {
    version: 2,
    tries: 2,
};

#[inline(never)]
fn looking(belief: &mut Belief) {
    for said in black_box([
        Preemption::Running,
        Preemption::Preempted,
        Preemption::Unknown,
    ]) {
        for steal in black_box([Ok(Nanos::MAX), Err(GAVE_UP)]) {
            black_box(belief.look(said, steal, black_box(Nanos::ZERO)));
        }
    }
    black_box(belief.standing());
    belief.reset();
}

pub fn run() {
    looking(&mut black_box(Belief::new()));
}
