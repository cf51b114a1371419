//! Which entry points the crates have, and whether the link test uses each.
//!
//! An entry point is a public function, a method of a public type, a method of
//! a trait of the workspace (where it is declared and in each implementation),
//! or an exported macro. It must be named in the file of `tests/link/src` that
//! stands for its module, `pv_steal/kvm_x86.rs` for `pv_steal::kvm_x86`, so that
//! the same name in another module does not hide that it was forgotten.
//! A type that can be displayed must be named in `text.rs`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use syn::{Item, TraitItem};

use crate::link::modules::{Module, is_off, load};
use crate::link::syntax::{after, is_public, leaves, methods, self_type, trait_name};
use crate::tokens::idents;
use crate::workspace::Workspace;

/// One entry point.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    /// The file that it is written in, as a path of modules.
    file: Vec<String>,
    /// Type or trait; empty for functions and macros.
    owner: String,
    name: String,
}

/// What the crates have and the link test does not name, one line each.
pub fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let mut crates = Vec::new();
    for library in workspace.crates()? {
        let modules = load(&library.dir.join("src/lib.rs"))?;
        crates.push((library.name.replace('-', "_"), modules));
    }
    let traits: BTreeSet<String> = crates
        .iter()
        .flat_map(|(_, modules)| traits(modules))
        .collect();
    let used = names_by_file(load(&workspace.path("tests/link/src/main.rs"))?);
    let shown = names_by_file(load(&workspace.path("tests/link/src/text.rs"))?);
    let in_text = shown.get(&Vec::new()).cloned().unwrap_or_default();

    let mut complaints = Vec::new();
    for (name, modules) in &crates {
        let reach = Reach::of(modules);
        let entries = reach.entries(modules, &traits);
        println!("{name}: {} entry points", entries.len());
        if entries.is_empty() {
            complaints.push(format!("{name}: no entry point found, which cannot be"));
        }
        complaints.extend(forgotten(name, &entries, &used));
        let displayed = reach.displayed(modules);
        complaints.extend(displayed.difference(&in_text).map(|shown| {
            format!("{name}: {shown} can be displayed; tests/link/src/text.rs does not do it")
        }));
    }
    Ok(complaints)
}

type Names = BTreeMap<Vec<String>, BTreeSet<String>>;

fn names_by_file(modules: Vec<Module>) -> Names {
    let mut names = Names::new();
    for module in modules {
        names
            .entry(module.file)
            .or_default()
            .extend(idents(module.tokens));
    }
    names
}

/// The entries that the link test does not name where it should.
fn forgotten(krate: &str, entries: &[Entry], used: &Names) -> Vec<String> {
    let mut complaints = Vec::new();
    for entry in entries {
        // The file of the module itself, or the nearest one above it.
        let mut place = vec![krate.to_owned()];
        place.extend(entry.file.iter().cloned());
        let own = place.join("/");
        while place.len() > 2 && !used.contains_key(&place) {
            place.pop();
        }
        if !used
            .get(&place)
            .is_some_and(|names| names.contains(&entry.name))
        {
            let owner = if entry.owner.is_empty() {
                String::new()
            } else {
                format!("{}::", entry.owner)
            };
            complaints.push(format!(
                "{}::{owner}{} is not used in tests/link/src/{own}.rs",
                place_name(krate, &entry.file),
                entry.name
            ));
        }
    }
    complaints
}

fn place_name(krate: &str, file: &[String]) -> String {
    let mut segments = vec![krate.to_owned()];
    segments.extend(file.iter().cloned());
    segments.join("::")
}

fn traits(modules: &[Module]) -> Vec<String> {
    let items = modules.iter().flat_map(|module| &module.items);
    items
        .filter_map(|item| match item {
            Item::Trait(item) if is_public(&item.vis) => Some(item.ident.to_string()),
            _ => None,
        })
        .collect()
}

/// Which names of a crate its users can reach.
struct Reach {
    /// Names that a public module exports again from elsewhere.
    exported: BTreeSet<String>,
    /// Public types, wherever they are.
    types: BTreeSet<String>,
}

impl Reach {
    fn of(modules: &[Module]) -> Self {
        let mut reach = Self {
            exported: BTreeSet::new(),
            types: BTreeSet::new(),
        };
        for module in modules.iter().filter(|module| module.public) {
            for item in &module.items {
                if let Item::Use(item) = item
                    && is_public(&item.vis)
                {
                    leaves(&item.tree, &mut Vec::new(), &mut reach.exported);
                }
            }
        }
        for module in modules {
            for item in &module.items {
                let (visibility, name) = match item {
                    Item::Struct(item) => (&item.vis, &item.ident),
                    Item::Enum(item) => (&item.vis, &item.ident),
                    Item::Union(item) => (&item.vis, &item.ident),
                    _ => continue,
                };
                let name = name.to_string();
                if is_public(visibility) && reach.covers(module, &name) {
                    reach.types.insert(name);
                }
            }
            // Types that a macro writes, such as bit flags.
            for item in &module.items {
                if let Item::Macro(item) = item {
                    let written = after(item.mac.tokens.clone(), &["struct", "enum"]);
                    let covered = written
                        .into_iter()
                        .filter(|name| reach.covers(module, name));
                    let covered: Vec<_> = covered.collect();
                    reach.types.extend(covered);
                }
            }
        }
        reach
    }

    /// Whether something public called `name` in `module` can be reached.
    fn covers(&self, module: &Module, name: &str) -> bool {
        let glob = module.path.last().map(|last| format!("{last}::*"));
        module.public
            || self.exported.contains(name)
            || glob.is_some_and(|glob| self.exported.contains(&glob))
    }

    fn entries(&self, modules: &[Module], traits: &BTreeSet<String>) -> Vec<Entry> {
        let mut found = BTreeSet::new();
        for module in modules {
            let mut add = |owner: &str, name: String| {
                found.insert(Entry {
                    file: module.file.clone(),
                    owner: owner.to_owned(),
                    name,
                });
            };
            for item in &module.items {
                match item {
                    Item::Fn(item) => {
                        let name = item.sig.ident.to_string();
                        if is_public(&item.vis) && self.covers(module, &name) {
                            add("", name);
                        }
                    }
                    Item::Macro(item) => {
                        let exported =
                            |attribute: &syn::Attribute| attribute.path().is_ident("macro_export");
                        if let Some(name) = &item.ident
                            && item.attrs.iter().any(exported)
                        {
                            add("", name.to_string());
                        }
                        for name in after(item.mac.tokens.clone(), &["fn"]) {
                            if self.covers(module, &name) {
                                add("", name);
                            }
                        }
                    }
                    Item::Trait(item) if is_public(&item.vis) => {
                        let owner = item.ident.to_string();
                        if self.covers(module, &owner) {
                            for item in &item.items {
                                if let TraitItem::Fn(method) = item
                                    && !is_off(&method.attrs)
                                {
                                    add(&owner, method.sig.ident.to_string());
                                }
                            }
                        }
                    }
                    Item::Impl(item) => {
                        if let Some(owner) = self_type(item)
                            && self.types.contains(&owner)
                        {
                            for name in methods(item, traits) {
                                add(&owner, name);
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        found.into_iter().collect()
    }

    /// The reachable types that implement `Display`.
    fn displayed(&self, modules: &[Module]) -> BTreeSet<String> {
        let items = modules.iter().flat_map(|module| &module.items);
        items
            .filter_map(|item| match item {
                Item::Impl(item) if trait_name(item).as_deref() == Some("Display") => {
                    self_type(item)
                }
                _ => None,
            })
            .filter(|name| self.types.contains(name))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = r"
        pub mod open;
        mod closed;
        pub use closed::{Exported, exported};
        #[cfg(pv_loom)]
        pub fn in_models_only() {}
    ";
    const OPEN: &str = r"
        pub struct Record(u32);
        impl Record {
            pv_arch::const_new! {
                /// Text with pub fn in_text.
                pub fn new() -> Self { Self(0) }
            }
            pub const fn method(&self) {}
            fn private(&self) {}
            pub(crate) fn internal(&self) {}
        }
        impl Source for Record { fn steal(&self) -> u32 { 1 } }
        impl Iterator for Record { fn next(&mut self) {} }
        impl core::fmt::Display for Record { fn fmt(&self) {} }
        pub trait Source { fn steal(&self) -> u32; fn given(&self) {} }
        pub fn free() {}
        #[macro_export]
        macro_rules! tool { ($name:ident) => { pub fn $name() {} } }
    ";
    const CLOSED: &str = r"
        pub struct Hidden;
        impl Hidden { pub fn unreachable(&self) {} }
        pub struct Exported;
        impl Exported { pub fn reachable(&self) {} }
        pub fn exported() {}
        pub fn not_exported() {}
    ";

    fn sample() -> Vec<Module> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("lib.rs", LIB), ("open.rs", OPEN), ("closed.rs", CLOSED)] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        load(&folder.path().join("lib.rs")).unwrap()
    }

    fn entries() -> Vec<Entry> {
        let modules = sample();
        let traits = traits(&modules).into_iter().collect();
        Reach::of(&modules).entries(&modules, &traits)
    }

    #[test]
    fn exactly_what_a_user_can_call_is_found() {
        let found: Vec<_> = entries()
            .iter()
            .map(|entry| format!("{} {} {}", entry.file.join("::"), entry.owner, entry.name))
            .collect();
        assert_eq!(
            found,
            [
                "closed  exported",
                "closed Exported reachable",
                "open  free",
                "open  tool",
                "open Record method",
                "open Record new",
                "open Record steal",
                "open Source given",
                "open Source steal",
            ]
        );
    }

    #[test]
    fn a_type_that_can_be_displayed_is_found() {
        let modules = sample();
        let displayed = Reach::of(&modules).displayed(&modules);
        assert_eq!(displayed, BTreeSet::from(["Record".to_owned()]));
    }

    fn used(files: &[(&[&str], &str)]) -> Names {
        let own = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        let file = |(path, text): &(&[&str], &str)| (own(path), idents(text.parse().unwrap()));
        files.iter().map(file).collect()
    }

    #[test]
    fn a_name_used_for_another_module_only_is_forgotten() {
        let entries = [Entry {
            file: vec!["arm".to_owned()],
            owner: String::new(),
            name: "register".to_owned(),
        }];
        let other = used(&[
            (&["k", "kvm"], "register()"),
            (&["k", "arm"], "// register"),
        ]);
        assert_eq!(
            forgotten("k", &entries, &other),
            ["k::arm::register is not used in tests/link/src/k/arm.rs"]
        );
        let missing = used(&[(&["k", "kvm"], "register()"), (&["k"], "register()")]);
        assert_eq!(forgotten("k", &entries, &missing).len(), 1);
        let right = used(&[(&["k", "arm"], "arm::register()")]);
        assert_eq!(forgotten("k", &entries, &right), [""; 0]);
    }

    #[test]
    fn a_module_below_may_be_used_in_the_file_of_the_one_above() {
        let entries = [Entry {
            file: vec!["sync".to_owned(), "macros".to_owned()],
            owner: String::new(),
            name: "tool".to_owned(),
        }];
        let above = used(&[(&["k", "sync"], "tool!()")]);
        assert_eq!(forgotten("k", &entries, &above), [""; 0]);
    }
}
