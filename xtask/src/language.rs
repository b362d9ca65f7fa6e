//! Text that users read: words that the project does not use in messages, help, the report and the docs, each with the term to
//! use instead, and the width of documents. Tests and source comments are not checked.

use camino::{Utf8Path, Utf8PathBuf};
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;

use crate::import_cycles::{attributes, is_test_only};
use crate::step::{Failure, root};
use crate::workspace::{below, parse, production_packages, read};

/// A phrase, in lower case, and what to write instead.
const BANNED: [(&str, &str); 37] = [
    ("told", "reported, printed, shown"),
    ("tells", "reports, shows, says"),
    ("beside", "next to, in addition to"),
    ("nobody", "no one, or name the actor"),
    ("whoever", "name the actor"),
    ("whatever", "name the thing, or any"),
    ("held against", "compared with, validated against"),
    ("hold against", "compare with, validate against"),
    ("holds against", "compares with, validates against"),
    ("good enough", "gate passed"),
    ("limits kept", "rules met"),
    ("limits are kept", "rules are met"),
    ("limits are not kept", "rules are violated"),
    ("may go out", "passes the gate"),
    ("cannot be meant", "is invalid"),
    ("means nothing", "is invalid, is not used"),
    ("mean nothing", "are invalid, are not used"),
    ("stands for", "means"),
    ("stands in", "is in, replaces"),
    ("stands below", "is below"),
    ("by itself", "on its own, automatically"),
    ("is to be", "must be"),
    ("are to be", "must be"),
    ("is none", "is not one"),
    ("the way back", "trace, recovery"),
    ("looks like a slip", "is probably a typing error"),
    ("what moved", "changes"),
    ("where it comes from", "root cause"),
    ("new could not be run", "runner error"),
    ("so many", "too many"),
    ("no say", "no effect"),
    ("lose patience", "reach the deadline"),
    ("purse", "retry tokens"),
    ("settled", "committed"),
    ("unasked", "not run"),
    ("giving the agent up", "agent looks down"),
    ("no more than that", "state the limit"),
];

/// Folders whose files users read as they are.
const TEXT_FOLDERS: [&str; 2] = ["docs", "templates"];
const TEXT_FILES: [&str; 3] = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"];
/// Whether doc comments are text that users read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DocComments {
    /// `--help` prints them.
    Help,
    Internal,
}

struct Found {
    file: Utf8PathBuf,
    line: usize,
    phrase: &'static str,
    instead: &'static str,
}

/// Checks docs, templates and the string literals of production code. Returns the number of files.
pub(crate) fn check() -> Result<usize, Failure> {
    let mut found = Vec::new();
    let mut files = 0;
    for file in text_files() {
        let text = read(&file)?;
        text.lines().enumerate().for_each(|(index, line)| search(line, &file, index + 1, &mut found));
        files += 1;
    }
    for package in production_packages()? {
        // Doc comments of the program are its help.
        let docs = if package == root().join("cli") { DocComments::Help } else { DocComments::Internal };
        for file in below(&package.join("src"), &["rs"]) {
            let syntax = parse(&file)?;
            let production = syntax.items.iter().filter(|item| !is_test_only(attributes(item)));
            production.for_each(|item| literals(item.to_token_stream(), docs, &file, &mut found));
            files += 1;
        }
    }
    if found.is_empty() {
        return Ok(files);
    }
    let line = |found: &Found| {
        let file = found.file.strip_prefix(root()).unwrap_or(&found.file);
        format!("  {file}:{}: `{}` (write: {})", found.line, found.phrase, found.instead)
    };
    Err(Failure::Language(found.iter().map(line).collect::<Vec<_>>().join("\n")))
}

fn text_files() -> Vec<Utf8PathBuf> {
    let mut files: Vec<_> = TEXT_FILES.map(|name| root().join(name)).to_vec();
    for folder in TEXT_FOLDERS {
        files.extend(below(&root().join(folder), &["md", "html", "js", "css"]));
    }
    files
}

/// Searches the string literals of a token stream, and its doc comments where they are help.
fn literals(stream: TokenStream, docs: DocComments, file: &Utf8Path, found: &mut Vec<Found>) {
    let mut tokens = stream.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => literals(group.stream(), docs, file, found),
            TokenTree::Ident(name) if name == "doc" && docs == DocComments::Internal => {
                // `doc = "…"`: skip the text of the comment.
                if matches!(tokens.peek(), Some(TokenTree::Punct(mark)) if mark.as_char() == '=') {
                    tokens.next();
                    tokens.next();
                }
            }
            TokenTree::Literal(literal) => {
                let line = literal.span().start().line;
                if let syn::Lit::Str(text) = syn::Lit::new(literal) {
                    search(&text.value(), file, line, found);
                }
            }
            _ => {}
        }
    }
}

fn search(text: &str, file: &Utf8Path, line: usize, found: &mut Vec<Found>) {
    let text = text.to_lowercase();
    for (phrase, instead) in BANNED {
        if contains_phrase(&text, phrase) {
            found.push(Found { file: file.to_owned(), line, phrase, instead });
        }
    }
}

fn contains_phrase(text: &str, phrase: &str) -> bool {
    let is_word = |character: Option<char>| character.is_some_and(|it| it.is_alphanumeric() || it == '_' || it == '-');
    text.match_indices(phrase).any(|(start, _)| {
        !is_word(text[..start].chars().next_back()) && !is_word(text[start + phrase.len()..].chars().next())
    })
}

const MOST_COLUMNS: usize = 120;

/// Checks `docs/` and the documents at the root. Returns the number of files.
pub(crate) fn check_width() -> Result<usize, Failure> {
    let mut files = below(&root().join("docs"), &["md"]);
    files.extend(["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root().join(name)));
    let mut wide = Vec::new();
    for file in &files {
        let name = file.strip_prefix(root()).unwrap_or(file);
        for (number, line) in prose(&read(file)?) {
            if is_too_wide(line) {
                wide.push(format!("  {name}:{number}: {} columns", line.chars().count()));
            }
        }
    }
    if wide.is_empty() { Ok(files.len()) } else { Err(Failure::Width(wide.join("\n"))) }
}

/// The lines outside code blocks, with their numbers. Program output and the commands of a recipe cannot be broken over
/// lines.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// A row of a table and a link cannot be broken over lines.
fn is_too_wide(line: &str) -> bool {
    let is_table = line.trim_start().starts_with('|');
    let has_link = line.contains("](") || line.contains("://");
    line.chars().count() > MOST_COLUMNS && !is_table && !has_link
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrases(source: &str, docs: DocComments) -> Vec<&'static str> {
        let mut found = Vec::new();
        literals(source.parse().unwrap(), docs, Utf8Path::new("x.rs"), &mut found);
        found.iter().map(|found| found.phrase).collect()
    }

    #[test]
    fn whole_phrases_are_found_in_any_case() {
        assert!(contains_phrase("it is good enough.", "good enough"));
        assert!(!contains_phrase("besides", "beside"));
        assert!(!contains_phrase("reimbursed", "purse"));
    }

    #[test]
    fn literals_inside_macros_and_attributes_are_searched() {
        assert_eq!(phrases("fn f() { println!(\"Told {}\", 1) }", DocComments::Internal), ["told"]);
        assert_eq!(phrases("#[error(\"held against\")] struct E;", DocComments::Internal), ["held against"]);
    }

    #[test]
    fn doc_comments_count_only_where_they_are_help() {
        let source = "/// What is told.\nfn f() {}";
        assert!(phrases(source, DocComments::Internal).is_empty());
        assert_eq!(phrases(source, DocComments::Help), ["told"]);
    }

    #[test]
    fn code_blocks_are_skipped() {
        let lines: Vec<_> = prose("a\n```json\n{}\n```\nb").collect();
        assert_eq!(lines, [(1, "a"), (5, "b")]);
    }

    #[test]
    fn tables_and_links_may_be_wider() {
        let wide = "ä".repeat(MOST_COLUMNS + 1);
        assert!(is_too_wide(&wide));
        assert!(!is_too_wide(&wide[2..]));
        assert!(!is_too_wide(&format!("| {wide} |")));
        assert!(!is_too_wide(&format!("{wide} [link](x.md)")));
    }
}
