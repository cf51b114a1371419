//! Comparison of our records with what others ship: C headers, registry crates
//! and, where there is neither, the tables of the specifications.
//!
//! A [`Header`] is asked in C. On a machine without it the test fails and names
//! the Debian package to install: a comparison that did not happen must not
//! look like one that succeeded.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use pv_steal::GuestRecord;

/// C headers, and where they come from.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// What is compared, for messages and file names.
    pub name: &'a str,
    /// C text before `main`: the includes and what they need.
    pub prologue: &'a str,
    /// Further flags for the compiler.
    pub flags: &'a [&'a str],
    /// Debian packages that have the headers.
    pub packages: &'a str,
}

/// A C expression and the value that we say it has.
pub type Claim<'a> = (&'a str, u64);

impl Header<'_> {
    /// Compile a program that prints every expression, run it, and return the
    /// claims that are wrong, as text. Files are made in `dir`.
    ///
    /// # Panics
    /// If there is no compiler, or no header.
    pub fn wrong(&self, dir: &Path, claims: &[Claim<'_>]) -> Vec<String> {
        let mut text = format!("#include <stdio.h>\n{}\nint main(void) {{\n", self.prologue);
        for (expression, _) in claims {
            writeln!(
                text,
                "printf(\"%llu\\n\", (unsigned long long)({expression}));"
            )
            .unwrap();
        }
        text.push_str("return 0; }\n");

        let program = dir.join(self.name);
        let output = self.compile(dir, &text, &["-o".as_ref(), program.as_ref()]);
        assert!(output.status.success(), "{}", self.advice(&output));
        let output = Command::new(&program)
            .output()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        assert!(output.status.success(), "{}: {output:?}", self.name);

        let said = String::from_utf8(output.stdout).expect("the program prints numbers");
        let said: Vec<u64> = said.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(said.len(), claims.len(), "{}: an answer a claim", self.name);
        claims
            .iter()
            .zip(said)
            .filter(|((_, ours), theirs)| ours != theirs)
            .map(|((expression, ours), theirs)| {
                format!("{}: {expression} is {theirs}, ours is {ours}", self.name)
            })
            .collect()
    }

    /// Like [`wrong`](Self::wrong), for targets whose programs do not run here:
    /// the claims become static assertions, and it is the compiler that judges.
    ///
    /// # Panics
    /// If there is no compiler, or no header.
    pub fn wrong_by_assertion(&self, dir: &Path, claims: &[Claim<'_>]) -> Vec<String> {
        // First without claims, to tell a missing header from a wrong claim.
        let check = |claims: &[Claim<'_>]| {
            let mut text = format!("{}\n", self.prologue);
            for (n, (expression, ours)) in claims.iter().enumerate() {
                writeln!(
                    text,
                    "_Static_assert(({expression}) == {ours}u, \"claim {n};\");"
                )
                .unwrap();
            }
            self.compile(dir, &text, &["-fsyntax-only".as_ref()])
        };
        let output = check(&[]);
        assert!(output.status.success(), "{}", self.advice(&output));
        let output = check(claims);
        if output.status.success() {
            return Vec::new();
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        let wrong: Vec<String> = claims
            .iter()
            .enumerate()
            .filter(|(n, _)| errors.contains(&format!("claim {n};")))
            .map(|(_, (expression, ours))| format!("{}: {expression} is not our {ours}", self.name))
            .collect();
        assert!(!wrong.is_empty(), "{}: {errors}", self.name);
        wrong
    }

    fn compile(&self, dir: &Path, text: &str, flags: &[&Path]) -> Output {
        let source = dir.join(format!("{}.c", self.name));
        fs::write(&source, text).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
        let compiler = env::var_os("CC").map_or_else(|| PathBuf::from("cc"), PathBuf::from);
        Command::new(&compiler)
            .args(["-std=gnu11", "-w"])
            .args(self.flags)
            .arg(&source)
            .args(flags)
            .output()
            .unwrap_or_else(|error| {
                panic!(
                    "cannot start the C compiler {}: {error}; apt-get install gcc libc6-dev",
                    compiler.display()
                )
            })
    }

    fn advice(&self, output: &Output) -> String {
        format!(
            "{}: the headers do not compile; apt-get install {}\n{}",
            self.name,
            self.packages,
            String::from_utf8_lossy(&output.stderr)
        )
    }
}

/// Claims about the C structure `name`: its size, and the offset of every field
/// of `R`, given as (our field, their field). Both must be complete and in the
/// order of [`GuestRecord::FIELDS`].
///
/// # Panics
/// If `fields` is not about the fields of `R`.
pub fn record_claims<R: GuestRecord>(name: &str, fields: &[(&str, &str)]) -> Vec<(String, u64)> {
    let ours: Vec<&str> = R::FIELDS.iter().map(|(field, _)| *field).collect();
    let listed: Vec<&str> = fields.iter().map(|(field, _)| *field).collect();
    assert_eq!(ours, listed, "{name}: every field has its counterpart");
    let mut claims = vec![(format!("sizeof({name})"), R::LAYOUT.size as u64)];
    claims.extend(
        R::FIELDS
            .iter()
            .zip(fields)
            .map(|((_, offset), (_, theirs))| {
                (
                    format!("__builtin_offsetof({name}, {theirs})"),
                    *offset as u64,
                )
            }),
    );
    claims
}

/// Compare `R` with a table of (name, offset, length) in bytes from a
/// specification, which covers `size` bytes without a gap. Returns what is
/// wrong, as text.
pub fn wrong_by_table<R: GuestRecord>(table: &[(&str, usize, usize)], size: usize) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut end = 0;
    for (name, offset, length) in table {
        if *offset != end {
            wrong.push(format!("{name}: the table has a gap before {offset:#x}"));
        }
        end = offset + length;
    }
    if end != size || R::LAYOUT.size != size {
        let ours = R::LAYOUT.size;
        wrong.push(format!("the table has {end} bytes of {size}, ours {ours}"));
    }
    let theirs: Vec<(&str, usize)> = table.iter().map(|(name, at, _)| (*name, *at)).collect();
    if theirs != R::FIELDS {
        wrong.push(format!("fields are {theirs:x?}, ours {:x?}", R::FIELDS));
    }
    wrong
}
