//! Changes of a text at byte ranges.

use std::ops::Range;

use super::config_tree::{Language, Layout, Node, Object, Property};

/// Changes of a text. Their ranges do not overlap.
#[derive(Debug, Clone)]
pub(super) struct TextEdits<'a> {
    text: &'a str,
    language: Language,
    edits: Vec<(Range<usize>, String)>,
}

impl<'a> TextEdits<'a> {
    pub(super) const fn new(text: &'a str, language: Language) -> Self {
        Self { text, language, edits: Vec::new() }
    }

    /// Returns the changed text.
    pub(super) fn apply(mut self) -> String {
        // Stable: insertions at one place stay in their order.
        self.edits.sort_by_key(|(range, _)| range.start);
        let mut changed = String::with_capacity(self.text.len() + 1024);
        let mut done = 0;
        for (range, replacement) in self.edits {
            changed.push_str(&self.text[done..range.start]);
            changed.push_str(&replacement);
            done = range.end;
        }
        changed.push_str(&self.text[done..]);
        changed
    }

    pub(super) fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// The text of a value, as it is written.
    pub(super) fn source(&self, node: &Node) -> &'a str {
        &self.text[node.span.clone()]
    }

    /// Replaces the comments in a part of the text that has no strings.
    pub(super) fn mask_comments(&mut self, part: Range<usize>, mask: &str) {
        let comment = match self.language {
            Language::Json => format!("/* {mask} */"),
            Language::Toml => format!("# {mask}"),
        };
        for found in self.comments(part) {
            self.replace(found, comment.clone());
        }
    }

    fn comments(&self, part: Range<usize>) -> Vec<Range<usize>> {
        let starts: &[&str] = match self.language {
            Language::Json => &["//", "/*"],
            Language::Toml => &["#"],
        };
        let mut comments = Vec::new();
        let mut at = part.start;
        while let Some(start) = starts.iter().filter_map(|start| self.text[at..part.end].find(start)).min() {
            let start = at + start;
            let rest = &self.text[start..part.end];
            let end = if rest.starts_with("/*") { rest.find("*/").map(|end| end + 2) } else { rest.find(['\r', '\n']) };
            at = end.map_or(part.end, |end| start + end);
            comments.push(start..at);
        }
        comments
    }

    pub(super) fn replace(&mut self, range: Range<usize>, text: impl Into<String>) {
        self.edits.push((range, text.into()));
    }

    /// Writes a text as a string of the language.
    pub(super) fn quote(&self, text: &str) -> String {
        match self.language {
            Language::Json => serde_json::Value::from(text).to_string(),
            Language::Toml => toml_edit::Value::from(text).to_string(),
        }
    }

    /// Inserts values at the start of a list, on lines of their own if the first value is on its own line.
    pub(super) fn insert_at_start(&mut self, list: &Node, items: &[Node], values: &[String]) {
        let Some(first) = items.first() else {
            self.replace(list.span.start + 1..list.span.start + 1, values.join(", "));
            return;
        };
        let separator = self.separator(list.span.start + 1..first.span.start);
        let inserted: Vec<String> = values.iter().map(|value| format!("{value}{separator}")).collect();
        self.replace(first.span.start..first.span.start, inserted.concat());
    }

    /// Inserts values before an item of a list that is not the first.
    pub(super) fn insert_before(&mut self, items: &[Node], index: usize, values: &[String]) {
        let (Some(item), Some(previous)) = (items.get(index), index.checked_sub(1).and_then(|at| items.get(at))) else {
            return;
        };
        let separator = self.separator(previous.span.end..item.span.start);
        let inserted: Vec<String> = values.iter().map(|value| format!("{value}{separator}")).collect();
        self.replace(item.span.start..item.span.start, inserted.concat());
    }

    /// Returns what separates two values, in the style of the text before a value.
    fn separator(&self, before: Range<usize>) -> String {
        let before = &self.text[before];
        match before.rfind('\n') {
            Some(at) => {
                let start = if before[..at].ends_with('\r') { at - 1 } else { at };
                let end =
                    at + 1 + before[at + 1..].find(|c: char| !matches!(c, ' ' | '\t')).unwrap_or(before.len() - at - 1);
                format!(",{}", &before[start..end])
            }
            None => ", ".to_owned(),
        }
    }

    /// Removes the first values of a list, with their separators.
    pub(super) fn remove_from_start(&mut self, items: &[Node], count: usize) {
        let (Some(first), Some(last)) = (items.first(), count.checked_sub(1).and_then(|last| items.get(last))) else {
            return;
        };
        if let Some(next) = items.get(count) {
            self.replace(first.span.start..next.span.start, "");
            return;
        }
        self.replace(first.span.start..last.span.end, "");
        let comma = self.after_space_and_comments(last.span.end);
        if self.text[comma..].starts_with(',') {
            self.replace(comma..comma + 1, "");
        }
    }

    /// Inserts a property after another one, with the same indentation. Returns false where the layout has no place for it.
    pub(super) fn insert_after(&mut self, layout: Layout, property: &Property, name: &str, value: &str) -> bool {
        let end = property.value.span.end;
        match layout {
            Layout::Json => {
                let space = self.space_before(property.name_span.start).unwrap_or(" ");
                let text = format!(",{space}{}: {value}", self.quote(name));
                self.replace(end..end, text);
            }
            Layout::TomlInline => self.replace(end..end, format!(", {name} = {value}")),
            Layout::TomlInlineDotted => return false,
            Layout::TomlLines => {
                let start = self.text[..property.name_span.start].rfind('\n').map_or(0, |at| at + 1);
                let prefix = &self.text[start..property.name_span.start];
                let line = format!("{prefix}{name} = {value}");
                let break_ = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
                match self.text[end..].find('\n') {
                    Some(at) => self.replace(end + at + 1..end + at + 1, format!("{line}{break_}")),
                    None => self.replace(self.text.len()..self.text.len(), format!("{break_}{line}")),
                }
            }
        }
        true
    }

    /// Removes a property, if nothing else is in its place: no comment between it and its neighbours. Returns false otherwise.
    pub(super) fn remove_property(&mut self, object: &Object, name: &str) -> bool {
        let Some(index) = object.properties.iter().position(|property| property.name == name) else { return false };
        let property = &object.properties[index];
        let end = property.value.span.end;
        if object.layout == Layout::TomlLines {
            let start = self.text[..property.name_span.start].rfind('\n').map_or(0, |at| at + 1);
            let line_end = self.text[end..].find('\n').map(|at| end + at + 1);
            let is_alone = self.text[end..line_end.unwrap_or(self.text.len())].trim().is_empty();
            if is_alone {
                // The last line of a file has its line break before it.
                let start =
                    if line_end.is_some() { start } else { self.text[..start].trim_end_matches(['\r', '\n']).len() };
                self.replace(start..line_end.unwrap_or(self.text.len()), "");
            }
            return is_alone;
        }
        let Some(previous) = index.checked_sub(1).and_then(|at| object.properties.get(at)) else { return false };
        let start = previous.value.span.end;
        let is_alone =
            object.layout != Layout::TomlInlineDotted && self.text[start..property.name_span.start].trim() == ",";
        if is_alone {
            self.replace(start..end, "");
        }
        is_alone
    }

    /// The line break and the indentation before a place that is the first of its line.
    fn space_before(&self, place: usize) -> Option<&'a str> {
        let before = &self.text[..place];
        let at = before.trim_end_matches([' ', '\t']).len();
        if !before[..at].ends_with('\n') {
            return None;
        }
        let start = if before[..at].ends_with("\r\n") { at - 2 } else { at - 1 };
        Some(&before[start..])
    }

    /// The first place from `at` on that is neither space nor a comment.
    fn after_space_and_comments(&self, at: usize) -> usize {
        let mut rest = &self.text[at..];
        loop {
            let trimmed = rest.trim_start();
            let comment = match self.language {
                Language::Json if trimmed.starts_with("/*") => trimmed.find("*/").map(|end| end + 2),
                Language::Json if trimmed.starts_with("//") => Some(trimmed.find('\n').unwrap_or(trimmed.len())),
                Language::Toml if trimmed.starts_with('#') => Some(trimmed.find('\n').unwrap_or(trimmed.len())),
                _ => None,
            };
            match comment {
                Some(end) => rest = &trimmed[end..],
                None => return self.text.len() - trimmed.len(),
            }
        }
    }
}
