//! Parses TOML.

use toml_edit::{Document, InlineTable, Item, Key, Table, Value};

use super::config_tree::{Layout, Node, NodeValue, Object, Property, SyntaxError};

/// Parses a text. Duplicate keys are errors of the parser.
pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
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
