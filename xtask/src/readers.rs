//! Files are opened for reading in one place, `counterproof_store::read_file`: it refuses pipes and devices, and has limits.

use camino::Utf8Path;
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;

use crate::import_cycles::{attributes, is_test_only};
use crate::step::{Failure, root};
use crate::workspace::{below, parse, production_packages};

/// Functions of the standard library that open a file for reading.
const READERS: [(&str, &str); 3] = [("fs", "read"), ("fs", "read_to_string"), ("File", "open")];

/// Code that may open files, with what it opens.
const ALLOWED: [&str; 8] = [
    // The place itself, and the reader of paths that must stay within a folder.
    "store/src/read_file.rs",
    "store/src/confined_path.rs",
    // Folders, to sync them.
    "store/src/write/",
    // Files of the system below /proc and /dev.
    "safe-run/src/supervision/",
    "safe-run/src/signal_actions.rs",
    "safe-run/src/session/terminal.rs",
    "conformance/src/subject.rs",
    // Regular files of a folder that it walks.
    "safe-run/src/program/archive.rs",
];

/// Checks production code. Returns the number of files.
pub(crate) fn check() -> Result<usize, Failure> {
    let (mut found, mut files) = (Vec::new(), 0);
    for package in production_packages()? {
        for file in below(&package.join("src"), &["rs"]) {
            files += 1;
            let relative = file.strip_prefix(root()).unwrap_or(&file);
            if ALLOWED.iter().any(|allowed| relative.as_str().starts_with(allowed)) {
                continue;
            }
            let syntax = parse(&file)?;
            let production = syntax.items.iter().filter(|item| !is_test_only(attributes(item)));
            production.for_each(|item| search(item.to_token_stream(), relative, &mut found));
        }
    }
    if found.is_empty() { Ok(files) } else { Err(Failure::Readers(found.join("\n"))) }
}

/// Searches for calls of the [`READERS`], such as `std::fs::read(path)`.
fn search(stream: TokenStream, file: &Utf8Path, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    for token in &tokens {
        if let TokenTree::Group(group) = token {
            search(group.stream(), file, found);
        }
    }
    let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ':');
    for window in tokens.windows(5) {
        let [TokenTree::Ident(module), first, second, TokenTree::Ident(name), TokenTree::Group(_)] = window else {
            continue;
        };
        let is_reader = READERS.iter().any(|(of, reader)| module == of && name == reader);
        if is_colon(first) && is_colon(second) && is_reader {
            found.push(format!("  {file}:{}: `{module}::{name}`", name.span().start().line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(source: &str) -> Vec<String> {
        let mut found = Vec::new();
        search(source.parse().unwrap(), Utf8Path::new("x.rs"), &mut found);
        found
    }

    #[test]
    fn calls_are_found_in_any_block_and_others_are_not() {
        assert_eq!(lines("fn f() { if a { std::fs::read(path)? } }"), ["  x.rs:1: `fs::read`"]);
        assert_eq!(lines("fn f() { g(File::open(path)) }").len(), 1);
        assert!(lines("fn f() { read_file::open(path); fs::read_dir(path); read(path) }").is_empty());
    }
}
