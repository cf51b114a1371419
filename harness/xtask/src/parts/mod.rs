//! The table of parts. A new part is one entry here; what it does lives in a
//! file of its own.

mod lint;
mod test;

use crate::part::Part;
use crate::prerequisite::Prerequisite::{CCompiler, LinuxHeaders, S390Headers, XenHeaders};
use crate::{link, loom, shim};

/// All parts, cheapest first.
pub const ALL: &[Part] = &[
    Part {
        name: "fmt",
        about: "the sources are formatted",
        needs: &[],
        run: lint::format,
    },
    Part {
        name: "clippy",
        about: "clippy finds nothing, with tests and features and without",
        needs: &[CCompiler],
        run: lint::clippy,
    },
    Part {
        name: "shim",
        about: "nothing goes past pv_arch::sync to an atomic or a cell",
        needs: &[CCompiler],
        run: shim::check,
    },
    Part {
        name: "test",
        about: "unit, property and conformance tests",
        needs: &[CCompiler, LinuxHeaders, XenHeaders, S390Headers],
        run: test::tests,
    },
    Part {
        name: "doc",
        about: "the examples in the documentation work, and its links lead somewhere",
        needs: &[CCompiler],
        run: test::doc_tests,
    },
    Part {
        name: "split64",
        about: "pv-steal reads 64-bit fields in two halves, as on a 32-bit guest",
        needs: &[CCompiler, LinuxHeaders, XenHeaders, S390Headers],
        run: test::split64,
    },
    Part {
        name: "loom",
        about: "models pass at their pull-request bounds and notice every seeded mistake",
        needs: &[CCompiler],
        run: loom::part,
    },
    Part {
        name: "link",
        about: "every entry point links freestanding and cannot panic",
        needs: &[CCompiler],
        run: link::check,
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_parts_share_a_name() {
        let names: BTreeSet<_> = ALL.iter().map(|part| part.name).collect();
        assert_eq!(names.len(), ALL.len());
    }
}
