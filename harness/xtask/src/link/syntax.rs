//! Questions about pieces of Rust syntax.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::{ImplItem, ItemImpl, Type, UseTree, Visibility};

use crate::link::modules::is_off;

pub fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The last names of a `use`, as they are called where they come from; a star
/// is `module::*`.
pub fn leaves(tree: &UseTree, above: &mut Vec<String>, found: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => {
            above.push(path.ident.to_string());
            leaves(&path.tree, above, found);
            above.pop();
        }
        UseTree::Name(name) => {
            found.insert(name.ident.to_string());
        }
        UseTree::Rename(rename) => {
            found.insert(rename.ident.to_string());
        }
        UseTree::Glob(_) => {
            let module = above.last().cloned().unwrap_or_default();
            found.insert(format!("{module}::*"));
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                leaves(tree, above, found);
            }
        }
    }
}

pub fn self_type(item: &ItemImpl) -> Option<String> {
    match &*item.self_ty {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
}

pub fn trait_name(item: &ItemImpl) -> Option<String> {
    let path = &item.trait_.as_ref()?.0;
    path.segments.last().map(|last| last.ident.to_string())
}

/// The methods that an `impl` block adds to the surface.
pub fn methods(item: &ItemImpl, traits: &BTreeSet<String>) -> Vec<String> {
    let of_trait = trait_name(item);
    if of_trait.as_ref().is_some_and(|name| !traits.contains(name)) {
        return Vec::new();
    }
    let mut names = Vec::new();
    for member in &item.items {
        match member {
            ImplItem::Fn(method) => {
                let open = of_trait.is_some() || is_public(&method.vis);
                if open && !is_off(&method.attrs) {
                    names.push(method.sig.ident.to_string());
                }
            }
            ImplItem::Macro(member) if !is_off(&member.attrs) => {
                names.extend(after(member.mac.tokens.clone(), &["fn"]));
            }
            _ => {}
        }
    }
    names
}

/// The names that follow `pub` (and modifiers) and one of `keywords` in what is
/// given to a macro: `pub const unsafe fn NAME`.
pub fn after(tokens: TokenStream, keywords: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    // How far a declaration has been read.
    let (mut public, mut named) = (false, false);
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                let word = ident.to_string();
                if named {
                    found.push(word);
                    (public, named) = (false, false);
                } else if word == "pub" {
                    public = true;
                } else if public && keywords.contains(&word.as_str()) {
                    named = true;
                } else if !matches!(word.as_str(), "const" | "unsafe" | "async" | "extern") {
                    public = false;
                }
            }
            TokenTree::Group(group) => {
                found.extend(after(group.stream(), keywords));
                // `pub(crate)` is not public.
                (public, named) = (false, false);
            }
            TokenTree::Punct(_) => (public, named) = (false, false),
            TokenTree::Literal(_) => {}
        }
    }
    found
}
