//! The width of documents: lines of at most 120 columns, outside tables, links and code blocks.

use crate::language::{below, read};
use crate::step::{Failure, root};

const MOST_COLUMNS: usize = 120;

/// Checks `docs/` and the documents at the root. Returns the number of files.
pub(crate) fn check() -> Result<usize, Failure> {
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
