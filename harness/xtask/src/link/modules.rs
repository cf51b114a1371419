//! The modules of a crate, read from its sources as the freestanding build
//! compiles them: what a `cfg` certainly switches off there is left out.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use proc_macro2::TokenStream;
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, Item, Lit, Meta, Token, Visibility};

/// One module.
pub struct Module {
    /// Names from the crate root down; the root itself has none.
    pub path: Vec<String>,
    /// The module's file, as a path of modules: shorter than `path` for a module
    /// that is written inside another's file.
    pub file: Vec<String>,
    /// All of the file; empty for a module inside another's file.
    pub tokens: TokenStream,
    /// Whether a user of the crate can name it.
    pub public: bool,
    pub items: Vec<Item>,
}

/// All modules of the crate whose root file is `root`.
pub fn load(root: &Path) -> Result<Vec<Module>> {
    let folder = root.parent().unwrap_or(Path::new("."));
    let mut found = Vec::new();
    let place = Place {
        path: Vec::new(),
        file: Vec::new(),
        folder: folder.to_path_buf(),
        public: true,
    };
    read_file(root, place, &mut found)?;
    Ok(found)
}

struct Place {
    path: Vec<String>,
    file: Vec<String>,
    /// Where the files of child modules are.
    folder: PathBuf,
    public: bool,
}

fn read_file(file: &Path, place: Place, found: &mut Vec<Module>) -> Result<()> {
    let shown = file.display();
    let source = std::fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
    let parsed = syn::parse_file(&source).with_context(|| format!("cannot parse {shown}"))?;
    let tokens = source
        .parse()
        .map_err(|error| anyhow::anyhow!("{shown}: {error}"))?;
    walk(parsed.items, tokens, place, found)
}

fn walk(
    items: Vec<Item>,
    tokens: TokenStream,
    place: Place,
    found: &mut Vec<Module>,
) -> Result<()> {
    let mut kept = Vec::new();
    for item in items {
        if is_off(attributes(&item)) {
            continue;
        }
        let Item::Mod(child) = item else {
            kept.push(item);
            continue;
        };
        let name = child.ident.to_string();
        let mut path = place.path.clone();
        path.push(name.clone());
        let folder = place.folder.join(&name);
        let public = place.public && matches!(child.vis, Visibility::Public(_));
        if let Some((_, items)) = child.content {
            let file = place.file.clone();
            let inside = Place {
                path,
                file,
                folder,
                public,
            };
            walk(items, TokenStream::new(), inside, found)?;
        } else {
            let file = path.clone();
            let candidates = [
                place.folder.join(format!("{name}.rs")),
                folder.join("mod.rs"),
            ];
            let Some(source) = candidates.iter().find(|file| file.is_file()) else {
                bail!("no file for module {}: {candidates:?}", path.join("::"));
            };
            read_file(
                source,
                Place {
                    path,
                    file,
                    folder,
                    public,
                },
                found,
            )?;
        }
    }
    found.push(Module {
        path: place.path,
        file: place.file,
        tokens,
        public: place.public,
        items: kept,
    });
    Ok(())
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether a `cfg` among these certainly switches the item off in the
/// freestanding build.
pub fn is_off(attributes: &[Attribute]) -> bool {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("cfg"))
        .filter_map(|attribute| attribute.parse_args::<Meta>().ok())
        .any(|condition| holds(&condition) == Some(false))
}

/// Whether a condition holds there; `None` if that depends on the target.
fn holds(condition: &Meta) -> Option<bool> {
    let is = |name: &str| condition.path().is_ident(name);
    match condition {
        Meta::Path(_) if is("pv_freestanding") => Some(true),
        Meta::Path(_) => {
            let off = ["test", "doc", "pv_loom", "pv_split64"];
            let seeds = ["pv_seed_panic", "pv_seed_overflow", "pv_seed_missing"];
            let off = off.iter().chain(&seeds).any(|name| is(name));
            off.then_some(false)
        }
        // The link test switches no feature on.
        Meta::NameValue(_) if is("feature") => Some(false),
        Meta::NameValue(pair) if is("target_arch") => match &pair.value {
            Expr::Lit(value) => match &value.lit {
                Lit::Str(arch) => Some(arch.value() == std::env::consts::ARCH),
                _ => None,
            },
            _ => None,
        },
        Meta::NameValue(_) => None,
        Meta::List(list) => {
            let parse = Punctuated::<Meta, Token![,]>::parse_terminated;
            let inner: Vec<Option<bool>> = list
                .parse_args_with(parse)
                .ok()?
                .iter()
                .map(holds)
                .collect();
            let all_are = |value: bool| inner.iter().all(|one| *one == Some(value));
            let one_is = |value: bool| inner.contains(&Some(value));
            if is("all") {
                if one_is(false) {
                    Some(false)
                } else {
                    all_are(true).then_some(true)
                }
            } else if is("any") {
                if one_is(true) {
                    Some(true)
                } else {
                    all_are(false).then_some(false)
                }
            } else if is("not") {
                inner.first().copied().flatten().map(|value| !value)
            } else {
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn off(condition: &str) -> bool {
        let source = format!("#[cfg({condition})] fn f() {{}}");
        let file = syn::parse_file(&source).unwrap();
        is_off(attributes(&file.items[0]))
    }

    #[test]
    fn what_is_certainly_off_is_left_out() {
        for condition in [
            "pv_loom",
            "test",
            "feature = \"mock\"",
            "all(test, not(pv_loom))",
            "any(pv_loom, pv_split64)",
            "not(pv_freestanding)",
            "target_arch = \"none\"",
        ] {
            assert!(off(condition), "{condition}");
        }
    }

    #[test]
    fn what_may_be_on_is_kept() {
        for condition in [
            "not(pv_loom)",
            "any(pv_loom, not(target_has_atomic = \"64\"))",
            "all(not(pv_loom), target_has_atomic = \"64\")",
            "unix",
        ] {
            assert!(!off(condition), "{condition}");
        }
    }

    #[test]
    fn modules_are_found_in_files_folders_and_inline() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        std::fs::create_dir(folder.path().join("b")).unwrap();
        write(
            "lib.rs",
            "pub mod a { pub mod inner {} } mod b; #[cfg(test)] mod gone;",
        );
        write("b/mod.rs", "pub mod c;");
        write("b/c.rs", "");
        let modules = load(&folder.path().join("lib.rs")).unwrap();
        let mut seen: Vec<_> = modules
            .iter()
            .map(|module| {
                (
                    module.path.join("::"),
                    module.file.join("::"),
                    module.public,
                )
            })
            .collect();
        seen.sort();
        let want = [
            ("", "", true),
            ("a", "", true),
            ("a::inner", "", true),
            ("b", "b", false),
            ("b::c", "b::c", false),
        ];
        assert_eq!(
            seen,
            want.map(|(path, file, public)| (path.into(), file.into(), public))
        );
    }
}
