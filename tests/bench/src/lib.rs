//! Hot paths, each beside a plain load of the same cache line.
//!
//! A group is a file: its operations and what they are compared with. A new
//! group is a file and an entry in [`GROUPS`]. `cargo xtask bench` measures the
//! time of each operation (criterion, `benches/all.rs`) and counts its
//! instructions (callgrind, the program `count`), both from the same loop.

mod record;

use std::hint::black_box;

/// All groups.
pub const GROUPS: &[Group] = &[record::GROUP];

/// Operations that are compared with each other.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// First part of the operations' names.
    pub name: &'static str,
    /// The operation that the others' ratios are to.
    pub baseline: &'static str,
    /// All of them.
    pub ops: &'static [Op],
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// Last part of its name.
    pub name: &'static str,
    /// Do it so many times.
    pub run: fn(u64),
}

/// The operation called `group/name`.
#[must_use]
pub fn find(id: &str) -> Option<Op> {
    let (group, name) = id.split_once('/')?;
    let group = GROUPS.iter().find(|one| one.name == group)?;
    group.ops.iter().find(|op| op.name == name).copied()
}

/// The loop around every operation: a counter, and the result kept.
#[inline(always)]
fn repeat<R>(times: u64, op: impl Fn() -> R) {
    for _ in 0..times {
        black_box(op());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_found_by_its_name_and_has_a_baseline() {
        for group in GROUPS {
            assert!(group.ops.iter().any(|op| op.name == group.baseline));
            for op in group.ops {
                let id = format!("{}/{}", group.name, op.name);
                let found = find(&id).unwrap();
                (found.run)(3);
                assert_eq!(found.name, op.name);
            }
        }
        assert!(find("record/none").is_none());
    }
}
