//! A configuration as a tree with byte ranges, from JSON with comments or TOML.
//!
//! Changes are made in the text at these ranges, so that everything else stays byte for byte.

use std::collections::HashSet;
use std::ops::Range;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use toml_edit::{Document, InlineTable, Item, Key, Table, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Json,
    Toml,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    /// The bytes of the value. Meaningless for a TOML table that is spread over the file.
    pub(super) span: Range<usize>,
    pub(super) value: NodeValue,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum NodeValue {
    Object(Object),
    List(Vec<Node>),
    Text(String),
    Bool(bool),
    /// A number, a date or null.
    Other,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Object {
    pub(super) layout: Layout,
    pub(super) properties: Vec<Property>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// `{"a": 1, "b": 2}`
    Json,
    /// `a = 1` and `b = 2` on separate lines.
    TomlLines,
    /// `{a = 1, b = 2}`
    TomlInline,
    /// `{a.b = 1}`: properties of `a` cannot be added next to `b`.
    TomlInlineDotted,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Property {
    pub(super) name: String,
    /// The bytes of the last part of the key, with its quotes.
    pub(super) name_span: Range<usize>,
    pub(super) value: Node,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) message: String,
    pub(super) span: Range<usize>,
}

impl Object {
    pub(super) fn property(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|property| property.name == name)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Node> {
        self.property(name).map(|property| &property.value)
    }
}

impl Node {
    pub(super) fn as_object(&self) -> Option<&Object> {
        if let NodeValue::Object(object) = &self.value { Some(object) } else { None }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        if let NodeValue::Text(text) = &self.value { Some(text) } else { None }
    }

    pub(super) fn as_list(&self) -> Option<&[Node]> {
        if let NodeValue::List(items) = &self.value { Some(items) } else { None }
    }

    pub(super) fn as_texts(&self) -> Option<Vec<&str>> {
        self.as_list()?.iter().map(Node::as_text).collect()
    }
}

/// Comments and trailing commas, as the configurations of editors have them, and nothing else that is not JSON.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Parses a text. An empty text, or one of comments only, is an empty object.
pub(super) fn parse_json(text: &str) -> Result<Node, SyntaxError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS).map_err(|error| {
        let range = error.range();
        SyntaxError { message: lower_first(&error.kind().to_string()), span: range.start..range.end }
    })?;
    parsed.value.as_ref().map_or_else(|| Ok(empty()), json_node)
}

fn empty() -> Node {
    Node { span: 0..0, value: NodeValue::Object(Object { layout: Layout::Json, properties: Vec::new() }) }
}

fn json_node(value: &ast::Value<'_>) -> Result<Node, SyntaxError> {
    // The recursion is bounded: the parser limits the depth.
    let range = value.range();
    let node_value = match value {
        ast::Value::Object(object) => NodeValue::Object(json_object(object)?),
        ast::Value::Array(array) => NodeValue::List(array.elements.iter().map(json_node).collect::<Result<_, _>>()?),
        ast::Value::StringLit(text) => NodeValue::Text(text.value.to_string()),
        ast::Value::BooleanLit(literal) => NodeValue::Bool(literal.value),
        ast::Value::NumberLit(_) | ast::Value::NullKeyword(_) => NodeValue::Other,
    };
    Ok(Node { span: range.start..range.end, value: node_value })
}

fn json_object(object: &ast::Object<'_>) -> Result<Object, SyntaxError> {
    let mut names = HashSet::new();
    let mut properties = Vec::new();
    for property in &object.properties {
        let name = property.name.as_str();
        let range = property.name.range();
        let name_span = range.start..range.end;
        // Parsers disagree on which of two equal keys counts, so an edit of one may have no effect.
        if !names.insert(name) {
            return Err(SyntaxError {
                message: format!("the key `{name}` appears twice in its object"),
                span: name_span,
            });
        }
        properties.push(Property { name: name.to_owned(), name_span, value: json_node(&property.value)? });
    }
    Ok(Object { layout: Layout::Json, properties })
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}

pub(super) fn parse_toml(text: &str) -> Result<Node, SyntaxError> {
    let document = Document::parse(text).map_err(|error| {
        let message = error.message().lines().collect::<Vec<_>>().join(": ");
        SyntaxError { message, span: error.span().unwrap_or(0..0) }
    })?;
    Ok(table_node(document.as_table()))
}

fn table_node(table: &Table) -> Node {
    let mut properties: Vec<Property> = Vec::new();
    for (name, item) in table {
        if let Some(value) = item_node(item) {
            properties.push(Property { name: name.to_owned(), name_span: key_span(table.key(name)), value });
        }
    }
    // Only keys of the own lines have values; the layout of a table without lines does not matter.
    let object = Object { layout: Layout::TomlLines, properties };
    Node { span: table.span().unwrap_or(0..0), value: NodeValue::Object(object) }
}

fn item_node(item: &Item) -> Option<Node> {
    match item {
        Item::None => None,
        Item::Value(value) => Some(value_node(value)),
        Item::Table(table) => Some(table_node(table)),
        Item::ArrayOfTables(tables) => {
            let items = tables.iter().map(table_node).collect();
            Some(Node { span: tables.span().unwrap_or(0..0), value: NodeValue::List(items) })
        }
    }
}

fn value_node(value: &Value) -> Node {
    let node_value = match value {
        Value::String(text) => NodeValue::Text(text.value().clone()),
        Value::Boolean(value) => NodeValue::Bool(*value.value()),
        Value::Array(items) => NodeValue::List(items.iter().map(value_node).collect()),
        Value::InlineTable(table) => NodeValue::Object(inline_object(table)),
        Value::Integer(_) | Value::Float(_) | Value::Datetime(_) => NodeValue::Other,
    };
    Node { span: value.span().unwrap_or(0..0), value: node_value }
}

fn inline_object(table: &InlineTable) -> Object {
    let properties = table.iter().map(|(name, value)| Property {
        name: name.to_owned(),
        name_span: key_span(table.key(name)),
        value: value_node(value),
    });
    let layout = if table.is_dotted() { Layout::TomlInlineDotted } else { Layout::TomlInline };
    Object { layout, properties: properties.collect() }
}

fn key_span(key: Option<&Key>) -> std::ops::Range<usize> {
    key.and_then(Key::span).unwrap_or(0..0)
}

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

    pub(super) fn quote(&self, text: &str) -> String {
        match self.language {
            Language::Json => serde_json::Value::from(text).to_string(),
            Language::Toml => toml_edit::Value::from(text).to_string(),
        }
    }

    /// Inserts values at the start of a list, on separate lines if the first value starts a line.
    pub(super) fn insert_at_start(&mut self, list: &Node, items: &[Node], values: &[String]) {
        let Some(first) = items.first() else {
            self.replace(list.span.start + 1..list.span.start + 1, values.join(", "));
            return;
        };
        // In the style of the list, so that the difference is only what was added.
        let separator = self.separator(list.span.start + 1..first.span.start);
        let inserted: Vec<String> = values.iter().map(|value| format!("{value}{separator}")).collect();
        self.replace(first.span.start..first.span.start, inserted.concat());
    }

    pub(super) fn insert_before(&mut self, items: &[Node], index: usize, values: &[String]) {
        let (Some(item), Some(previous)) = (items.get(index), index.checked_sub(1).and_then(|at| items.get(at))) else {
            return;
        };
        let separator = self.separator(previous.span.end..item.span.start);
        let inserted: Vec<String> = values.iter().map(|value| format!("{value}{separator}")).collect();
        self.replace(item.span.start..item.span.start, inserted.concat());
    }

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
        // The first property has no separator before it that could be removed with it.
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
