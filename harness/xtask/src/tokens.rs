//! Paths in Rust source, with `use` groups taken apart: `std::{sync::Arc, fmt}`
//! is `std::sync::Arc` and `std::fmt`.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A path and the line that it ends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathAt {
    pub segments: Vec<String>,
    pub line: usize,
}

/// All paths, one-segment ones included.
pub fn paths(stream: TokenStream) -> Vec<PathAt> {
    let mut found = Vec::new();
    collect(stream, &[], &mut found);
    found
}

/// All identifiers.
pub fn idents(stream: TokenStream) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for token in stream {
        match token {
            TokenTree::Ident(ident) => {
                found.insert(ident.to_string());
            }
            TokenTree::Group(group) => found.extend(idents(group.stream())),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    found
}

fn collect(stream: TokenStream, prefix: &[String], found: &mut Vec<PathAt>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token {
            TokenTree::Group(group) => collect(group.stream(), &[], found),
            TokenTree::Ident(_) => {
                let mut segments = prefix.to_vec();
                let mut line = 0;
                let mut next = Some(token);
                while let Some(token) = next.take() {
                    match token {
                        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                            collect(group.stream(), &segments, found);
                            segments.clear();
                        }
                        TokenTree::Ident(_) | TokenTree::Punct(_) => {
                            segments.push(token.to_string());
                            line = token.span().start().line;
                            let joined = is_colon(tokens.get(at)) && is_colon(tokens.get(at + 1));
                            if joined && !is_keyword(&segments[segments.len() - 1]) {
                                next = tokens.get(at + 2).filter(|token| continues(token));
                                at += if next.is_some() { 3 } else { 2 };
                            }
                        }
                        TokenTree::Group(_) | TokenTree::Literal(_) => {}
                    }
                }
                if !segments.is_empty() {
                    found.push(PathAt { segments, line });
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

fn is_colon(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == ':')
}

/// Words before which a path may stand that begins with `::`.
fn is_keyword(word: &str) -> bool {
    let words = "use return as mut in dyn impl ref else match if while for where break move unsafe";
    words.split(' ').any(|keyword| keyword == word)
}

/// Whether a token after `::` belongs to the path: a name, a star or a group.
fn continues(token: &TokenTree) -> bool {
    match token {
        TokenTree::Ident(_) => true,
        TokenTree::Punct(punct) => punct.as_char() == '*',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Literal(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: &str) -> Vec<String> {
        let found = paths(source.parse().unwrap());
        let joined = found.iter().map(|path| path.segments.join("::"));
        joined.filter(|path| path.contains("::")).collect()
    }

    #[test]
    fn use_groups_are_taken_apart() {
        assert_eq!(
            of("use std::{sync::{atomic::AtomicU8, Arc}, fmt}; use core::cell::*;"),
            [
                "std::sync::atomic::AtomicU8",
                "std::sync::Arc",
                "std::fmt",
                "core::cell::*"
            ]
        );
    }

    #[test]
    fn paths_in_bodies_types_and_macros_are_found() {
        assert_eq!(
            of("fn f(x: &a::B) { m!(c::d()); e::<f::G>::h } "),
            ["a::B", "c::d", "f::G"]
        );
    }

    #[test]
    fn comments_and_strings_are_no_paths() {
        assert_eq!(of("// a::b\nconst X: &str = \"c::d\";"), [""; 0]);
    }

    #[test]
    fn lines_are_counted_from_1() {
        let found = paths("\nuse a::{\n b,\n};".parse().unwrap());
        let b = found.iter().find(|path| path.segments == ["a", "b"]);
        assert_eq!(b.unwrap().line, 3);
    }
}
