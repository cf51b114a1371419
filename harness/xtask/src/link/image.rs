//! What a linked image contains, and what it must not.

use std::path::Path;

use anyhow::{Context, Result};
use object::{Object, ObjectKind, ObjectSymbol};

/// How strict to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// No `std`, no `alloc`, nothing undefined, no loader.
    NoStd,
    /// The same, and nothing that can panic.
    NoPanic,
}

/// What matters of an image.
#[derive(Debug, Default)]
pub struct Image {
    /// A program at a fixed address, not one for a loader to move.
    fixed: bool,
    /// Sections that only a dynamic loader reads.
    for_loader: Vec<String>,
    symbols: Vec<Symbol>,
}

#[derive(Debug)]
struct Symbol {
    /// Demangled.
    name: String,
    undefined: bool,
}

impl Image {
    pub fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let data = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
        let file = object::File::parse(&*data).with_context(|| format!("{shown} is no image"))?;
        let mut image = Self {
            fixed: file.kind() == ObjectKind::Executable,
            ..Self::default()
        };
        for name in [".interp", ".dynamic"] {
            if file.section_by_name(name).is_some() {
                image.for_loader.push(name.to_owned());
            }
        }
        for symbol in file.symbols() {
            let name = symbol.name()?;
            if !name.is_empty() {
                image.add(name, symbol.is_undefined());
            }
        }
        Ok(image)
    }

    pub fn symbols(&self) -> usize {
        self.symbols.len()
    }

    fn add(&mut self, mangled: &str, undefined: bool) {
        self.symbols.push(Symbol {
            // The alternate form leaves the hash out.
            name: format!("{:#}", rustc_demangle::demangle(mangled)),
            undefined,
        });
    }

    /// What is wrong with it; empty if nothing is.
    pub fn complaints(&self, rules: Rules) -> Vec<String> {
        let mut found = Vec::new();
        if !self.fixed {
            found.push("the image is not a program at a fixed address".to_owned());
        }
        for section in &self.for_loader {
            found.push(format!(
                "section {section}: the image wants a dynamic loader"
            ));
        }
        if !self.symbols.iter().any(|symbol| symbol.name == "_start") {
            found.push("no symbol _start: without names there is nothing to check".to_owned());
        }
        for Symbol { name, undefined } in &self.symbols {
            if *undefined {
                found.push(format!("undefined symbol {name}"));
            } else if let Some(library) = hosted_library(name) {
                found.push(format!("{name}: is of {library}"));
            } else if rules == Rules::NoPanic && can_panic(name) {
                found.push(format!("{name}: something can panic"));
            }
        }
        found
    }
}

/// Whether a symbol comes from `std` or `alloc`.
fn hosted_library(name: &str) -> Option<&'static str> {
    let last = name.rsplit("::").next().unwrap_or(name);
    if last.starts_with("__rust_") && last.contains("alloc") || last.starts_with("__rdl_") {
        return Some("alloc");
    }
    ["std", "alloc"].into_iter().find(|library| {
        let path = format!("{library}::");
        name.match_indices(&path).any(|(at, _)| {
            // At the start of a path: not `core::alloc::` and not `my_std::`.
            let before = name[..at].chars().next_back();
            before.is_none_or(|before| !(before.is_alphanumeric() || "_:".contains(before)))
        })
    })
}

/// Whether a symbol is part of what runs when Rust code panics. In a program
/// that cannot panic nothing refers to these, and the linker leaves them out.
fn can_panic(name: &str) -> bool {
    // Generic arguments may contain anything; the path before them decides.
    let segments: Vec<&str> = name.split("::").collect();
    let of_core = name.starts_with("core::") || name.starts_with("<core::");
    let failing = |segment: &&str| {
        segment.ends_with("_failed") || segment.ends_with("_fail") || segment.starts_with("panic")
    };
    of_core && segments.iter().any(failing)
        || segments.iter().any(|segment| {
            matches!(
                *segment,
                "rust_begin_unwind" | "rust_panic" | "_Unwind_Resume" | "panic_fmt"
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(symbols: &[(&str, bool)]) -> Image {
        let mut image = Image {
            fixed: true,
            ..Image::default()
        };
        image.add("_start", false);
        for (name, undefined) in symbols {
            image.add(name, *undefined);
        }
        image
    }

    #[test]
    fn panic_machinery_is_recognised_by_name() {
        for name in [
            "core::panicking::panic_bounds_check",
            "core::panicking::panic_fmt",
            "core::option::unwrap_failed",
            "core::option::expect_failed",
            "core::result::unwrap_failed",
            "core::slice::index::slice_index_fail",
            "core::str::slice_error_fail",
            "core::cell::panic_already_borrowed",
            "__rustc::rust_begin_unwind",
            "rust_begin_unwind",
        ] {
            assert!(can_panic(name), "{name}");
        }
        for name in [
            "_start",
            "memcpy",
            "pv_steal::kvm_x86::register",
            "core::fmt::write",
            "link_test::panic_free::run",
        ] {
            assert!(!can_panic(name), "{name}");
        }
    }

    #[test]
    fn hosted_libraries_are_recognised_where_a_path_starts() {
        for name in [
            "std::io::Write::write_all",
            "<alloc::string::String as core::fmt::Write>::write_str",
            "core::ptr::drop_in_place::<alloc::vec::Vec<u8>>",
            "__rust_alloc",
            "__rustc::__rust_dealloc",
        ] {
            assert!(hosted_library(name).is_some(), "{name}");
        }
        for name in ["core::alloc::layout::Layout::new", "my_std::f", "nostd::f"] {
            assert_eq!(hosted_library(name), None, "{name}");
        }
    }

    #[test]
    fn names_are_demangled_in_the_complaint() {
        let mangled = "_ZN4core9panicking18panic_bounds_check17h0123456789abcdefE";
        let found = image(&[(mangled, false)]).complaints(Rules::NoPanic);
        assert_eq!(
            found,
            ["core::panicking::panic_bounds_check: something can panic"]
        );
    }

    #[test]
    fn an_undefined_symbol_is_named() {
        let found = image(&[("host_write", true)]).complaints(Rules::NoStd);
        assert_eq!(found, ["undefined symbol host_write"]);
    }

    #[test]
    fn formatting_may_contain_panics_but_no_std() {
        let image = image(&[("core::panicking::panic_fmt", false), ("std::f", false)]);
        assert_eq!(image.complaints(Rules::NoStd), ["std::f: is of std"]);
    }

    #[test]
    fn an_image_for_a_loader_or_without_names_is_refused() {
        let image = Image {
            for_loader: vec![".interp".to_owned()],
            ..Image::default()
        };
        assert_eq!(image.complaints(Rules::NoPanic).len(), 3);
    }

    #[test]
    fn this_test_program_itself_is_refused() {
        let found = Image::read(&std::env::current_exe().unwrap())
            .unwrap()
            .complaints(Rules::NoPanic);
        for sign in ["is of std", "is of alloc", "can panic", "undefined symbol"] {
            assert!(found.iter().any(|line| line.contains(sign)), "{sign}");
        }
    }
}
