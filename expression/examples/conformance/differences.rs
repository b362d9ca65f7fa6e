//! The list of cases in which the language differs from CEL on purpose.
//!
//! A line without an indent is a reason. The indented lines after it are the cases that it explains: their paths, or the
//! start of their paths followed by `*`.

use std::collections::BTreeSet;

/// The expected differences.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    /// A path or the start of one, and its reason.
    entries: Vec<(String, String)>,
}

impl Differences {
    pub(crate) fn parse(text: &str) -> Self {
        let mut differences = Self::default();
        let mut reason = String::new();
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            match line.strip_prefix(' ') {
                Some(path) => differences.entries.push((path.trim().to_owned(), reason.clone())),
                None => line.clone_into(&mut reason),
            }
        }
        differences
    }

    /// Returns the entry that explains a case, and its reason.
    pub(crate) fn find(&self, path: &str) -> Option<(&str, &str)> {
        let explains = |entry: &str| entry.strip_suffix('*').map_or(entry == path, |start| path.starts_with(start));
        self.entries.iter().find(|(entry, _)| explains(entry)).map(|(entry, reason)| (entry.as_str(), reason.as_str()))
    }

    /// Returns the entries that no case needs.
    pub(crate) fn unused<'a>(&'a self, used: &BTreeSet<String>) -> impl Iterator<Item = &'a str> {
        self.entries.iter().map(|(entry, _)| entry.as_str()).filter(|entry| !used.contains(*entry))
    }
}
