//! A configuration as a tree with byte ranges, from JSON with comments or TOML.
//!
//! Changes are made in the text at these ranges, so that everything else stays byte for byte.

use std::ops::Range;

/// The language of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    /// JSON, with comments and trailing commas.
    Json,
    /// TOML.
    Toml,
}

/// A value at a place of the text.
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

/// An object or a table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Object {
    pub(super) layout: Layout,
    pub(super) properties: Vec<Property>,
}

/// How the properties of an object are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// `{"a": 1, "b": 2}`
    Json,
    /// `a = 1` and `b = 2` on lines of their own.
    TomlLines,
    /// `{a = 1, b = 2}`
    TomlInline,
    /// `{a.b = 1}`: properties of `a` cannot be added next to `b`.
    TomlInlineDotted,
}

/// A property of an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Property {
    pub(super) name: String,
    /// The bytes of the last part of the key, with its quotes.
    pub(super) name_span: Range<usize>,
    pub(super) value: Node,
}

/// A text that is not a configuration.
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

    /// Returns the texts of a list of texts.
    pub(super) fn as_texts(&self) -> Option<Vec<&str>> {
        self.as_list()?.iter().map(Node::as_text).collect()
    }
}
