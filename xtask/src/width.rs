//! The width of documents: lines of at most 120 columns, outside tables and links.

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
        for (index, line) in read(file)?.lines().enumerate() {
            if is_too_wide(line) {
                wide.push(format!("  {name}:{}: {} columns", index + 1, line.chars().count()));
            }
        }
    }
    if wide.is_empty() { Ok(files.len()) } else { Err(Failure::Width(wide.join("\n"))) }
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
    fn tables_and_links_may_be_wider() {
        let wide = "ä".repeat(MOST_COLUMNS + 1);
        assert!(is_too_wide(&wide));
        assert!(!is_too_wide(&wide[2..]));
        assert!(!is_too_wide(&format!("| {wide} |")));
        assert!(!is_too_wide(&format!("{wide} [link](x.md)")));
    }
}
