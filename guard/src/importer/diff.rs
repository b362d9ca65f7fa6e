//! The difference between two versions of a configuration, without its secrets: only the entries of servers that change.
//!
//! The rest of a configuration can be one line with accounts and keys of other programs, so it is never part of the difference.

use std::fmt::Write as _;
use std::ops::Range;

use counterproof_redaction::{Applied, RedactError, Redactor, SHORTEST, argument_secrets, is_secret_name};
use similar::{ChangeTag, TextDiff};

use super::Client;
use super::config_tree::{Language, Layout, Node, NodeValue, Object, Property, TextEdits};
use super::wrap::{Server, parse, servers};
use crate::secrets::{MASK, redactor};

/// Printed where more than the entries of servers differs, or where a version has no entries.
const NOT_SHOWN: &str = "@@ other lines differ; they are not shown, because they may contain secrets @@\n";

#[derive(Debug, Clone, Copy)]
pub(super) struct Versions<'a> {
    pub(super) client: Client,
    pub(super) language: Language,
    pub(super) old: &'a str,
    pub(super) new: &'a str,
}

#[derive(Debug, Default)]
struct Entries {
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
        // Named and not shown: the rest of a configuration has accounts and keys of other programs.
        if old.rest != new.rest {
            text.push_str(NOT_SHOWN);
        }
        Ok(text)
    }

    fn entries(&self, text: &str, redactor: &Redactor) -> Entries {
        // Masked before the comparison: a changed secret shows as no difference, and never as its value.
        let masked = masked(self.client, self.language, text, redactor);
        let (Some(servers), Some((_, rest))) = (self.split(&masked), self.split(text)) else {
            // A text that cannot be parsed differs from any other.
            return Entries { servers: Vec::new(), rest: text.to_owned() };
        };
        Entries { servers: servers.0, rest }
    }

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

/// Objects whose values may be secrets.
const SECRET_OBJECTS: [&str; 3] = ["env", "headers", "http_headers"];

/// Masks the entries of servers: the values of variables, headers and fields with names of secrets, arguments that look like secrets,
/// and keys of known formats. The names of servers stay.
pub(super) fn masked(client: Client, language: Language, text: &str, redactor: &Redactor) -> String {
    let mut edits = TextEdits::new(text, language);
    if let Ok(root) = parse(text, language) {
        let servers = root.as_object().and_then(|root| servers(client, root).ok()).unwrap_or_default();
        for server in servers {
            mask_values(&server.entry.value, Meaning::Unknown, &mut edits);
        }
    }
    redactor.text(&edits.apply(), &mut Applied::default())
}

/// What the names around a value say about it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Secret,
    Unknown,
}

fn mask_values(node: &Node, meaning: Meaning, edits: &mut TextEdits<'_>) {
    match &node.value {
        NodeValue::Object(object) => {
            if object.layout == Layout::Json {
                let parts = object.properties.iter().flat_map(|it| [it.name_span.clone(), it.value.span.clone()]);
                // A server that was commented out may still have its key.
                mask_comments_between(node, parts, edits);
            }
            for property in &object.properties {
                let name = property.name.as_str();
                let is_secret = SECRET_OBJECTS.contains(&name) || is_secret_name(name);
                mask_values(&property.value, if is_secret { Meaning::Secret } else { meaning }, edits);
            }
        }
        NodeValue::List(items) => {
            mask_comments_between(node, items.iter().map(|item| item.span.clone()), edits);
            if meaning == Meaning::Secret || node.as_texts().is_none() {
                return items.iter().for_each(|item| mask_values(item, meaning, edits));
            }
            // An option and its value are two arguments.
            mask_arguments(items, edits);
        }
        NodeValue::Text(text) if text.is_empty() => {}
        NodeValue::Text(_) | NodeValue::Bool(_) | NodeValue::Other if meaning == Meaning::Secret => {
            let mask = edits.quote(MASK);
            edits.replace(node.span.clone(), mask);
        }
        NodeValue::Text(_) => mask_arguments(std::slice::from_ref(node), edits),
        NodeValue::Bool(_) | NodeValue::Other => {}
    }
}

/// Masks the comments between the parts of a value, which may be former parts.
fn mask_comments_between(node: &Node, parts: impl Iterator<Item = Range<usize>>, edits: &mut TextEdits<'_>) {
    let mut start = node.span.start;
    for next in parts.chain(std::iter::once(node.span.end..node.span.end)) {
        edits.mask_comments(start..next.start, MASK);
        start = next.end;
    }
}

fn mask_arguments(texts: &[Node], edits: &mut TextEdits<'_>) {
    let secrets = argument_secrets(texts.iter().filter_map(Node::as_text));
    for node in texts {
        let Some(text) = node.as_text() else { continue };
        let own = argument_secrets(std::iter::once(text));
        // A short secret, such as a user name, occurs in unrelated arguments.
        let is_here = |secret: &&String| secret.len() >= SHORTEST || text == *secret || own.contains(secret);
        let found: Vec<&str> = secrets.iter().filter(is_here).map(String::as_str).collect();
        let masked = without(text, &found);
        if masked != text {
            let masked = edits.quote(&masked);
            edits.replace(node.span.clone(), masked);
        }
    }
}

/// Replaces the secrets in a text. Of secrets that start at the same place, the longest is replaced.
fn without(text: &str, secrets: &[&str]) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let here = secrets.iter().filter(|secret| rest.starts_with(**secret)).map(|secret| secret.len()).max();
        match here {
            Some(_) => masked.push_str(MASK),
            None => masked.push(character),
        }
        rest = &rest[here.unwrap_or_else(|| character.len_utf8())..];
    }
    masked
}
