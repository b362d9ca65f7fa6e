//! The difference between two versions of a configuration, without its secrets: only the entries of servers that change.
//!
//! The rest of a configuration can be one line with accounts and keys of other programs, so it is never part of the difference.

use std::fmt::Write as _;
use std::ops::Range;

use counterproof_redaction::{RedactError, Redactor};
use similar::{ChangeTag, TextDiff};

use super::Client;
use super::config_tree::{Language, Layout, Node, Object, Property};
use super::mask::masked;
use super::servers::{Server, servers};
use super::wrap::parse;
use crate::secrets::redactor;

/// Printed where more than the entries of servers differs, or where a version has no entries.
const NOT_SHOWN: &str = "@@ other lines differ; they are not shown, because they may contain secrets @@\n";

/// Two versions of a configuration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Versions<'a> {
    pub(super) client: Client,
    pub(super) language: Language,
    pub(super) old: &'a str,
    pub(super) new: &'a str,
}

/// The entries of servers in one version.
#[derive(Debug, Default)]
struct Entries {
    /// The title of each server, and its masked entry.
    servers: Vec<(String, String)>,
    /// What remains without the entries, without white space.
    rest: String,
}

impl Versions<'_> {
    /// Returns a unified difference. The values of variables and headers are masked, arguments that look like secrets, and keys of
    /// known formats.
    pub(super) fn difference(&self, name: &str) -> Result<String, RedactError> {
        let redactor = redactor([])?;
        let (old, new) = (self.entries(self.old, &redactor), self.entries(self.new, &redactor));
        let mut text = format!("--- {name}\n+++ {name}\n");
        let titles = old.servers.iter().chain(new.servers.iter().filter(|(title, _)| old.find(title).is_none()));
        for (title, _) in titles {
            let (old, new) = (old.find(title).unwrap_or_default(), new.find(title).unwrap_or_default());
            if old != new {
                let _ = write!(text, "@@ {title} @@\n{}", changes(old, new));
            }
        }
        if old.rest != new.rest {
            text.push_str(NOT_SHOWN);
        }
        Ok(text)
    }

    fn entries(&self, text: &str, redactor: &Redactor) -> Entries {
        let masked = masked(self.client, self.language, text, redactor);
        let (Some(servers), Some((_, rest))) = (self.split(&masked), self.split(text)) else {
            // A text that cannot be parsed differs from any other.
            return Entries { servers: Vec::new(), rest: text.to_owned() };
        };
        Entries { servers: servers.0, rest }
    }

    /// Returns the entries of servers with their titles, and what remains.
    fn split(&self, text: &str) -> Option<(Vec<(String, String)>, String)> {
        let root = parse(text, self.language).ok()?;
        let found = servers(self.client, root.as_object()?).ok()?;
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let mut entries = Vec::new();
        for server in &found {
            let parts = ranges_of(text, server);
            let lines = parts.iter().flat_map(|part| text[part.clone()].lines());
            let entry = lines.flat_map(|line| [line, "\n"]).collect();
            let title = match server.project {
                Some(project) => format!("{} in {project}", server.name),
                None => server.name.to_owned(),
            };
            entries.push((title, entry));
            ranges.extend(parts);
        }
        ranges.sort_by_key(|range| range.start);
        let mut rest = String::new();
        let mut done = 0;
        for range in ranges {
            rest.extend(text[done..range.start.max(done)].split_whitespace());
            done = range.end.max(done);
        }
        rest.extend(text[done..].split_whitespace());
        Some((entries, rest))
    }
}

impl Entries {
    fn find(&self, title: &str) -> Option<&str> {
        self.servers.iter().find(|(other, _)| other == title).map(|(_, entry)| entry.as_str())
    }
}

/// Returns the bytes of the entry of a server: a whole object, or the lines of a table.
fn ranges_of(text: &str, server: &Server<'_>) -> Vec<Range<usize>> {
    let line_start = |at: usize| text[..at].rfind('\n').map_or(0, |before| before + 1);
    let table = server.entry.value.as_object();
    let table = table.filter(|table| matches!(table.layout, Layout::TomlLines | Layout::TomlInlineDotted));
    let Some(Object { layout, properties }) = table else {
        let start = server.entry.name_span.start;
        let indented = line_start(start);
        let start = if text[indented..start].trim().is_empty() { indented } else { start };
        return std::iter::once(start..server.entry.value.span.end).collect();
    };
    let is_table = |node: &Node| node.as_object().is_some_and(|object| object.layout == Layout::TomlLines);
    let written = properties.iter().filter(|property| !is_table(&property.value));
    let range = |property: &Property| {
        let start = property.name_span.start;
        let start = if *layout == Layout::TomlLines { line_start(start) } else { start };
        start..property.value.span.end
    };
    let mut ranges: Vec<Range<usize>> = written.map(range).collect();
    ranges.sort_by_key(|range| range.start);
    ranges
}

fn changes(old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    let lines = diff.iter_all_changes().flat_map(|change| {
        let sign = match change.tag() {
            ChangeTag::Equal => " ",
            ChangeTag::Delete => "-",
            ChangeTag::Insert => "+",
        };
        [sign.to_owned(), change.value().to_owned()]
    });
    lines.collect()
}
