//! Parses JSON with comments.

use std::collections::HashSet;

use jsonc_parser::ast::{self, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::config_tree::{Layout, Node, NodeValue, Object, Property, SyntaxError};

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
pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS).map_err(|error| {
        let range = error.range();
        SyntaxError { message: lower_first(&error.kind().to_string()), span: range.start..range.end }
    })?;
    parsed.value.as_ref().map_or_else(|| Ok(empty()), node)
}

fn empty() -> Node {
    Node { span: 0..0, value: NodeValue::Object(Object { layout: Layout::Json, properties: Vec::new() }) }
}

/// The parser limits the depth.
fn node(value: &Value<'_>) -> Result<Node, SyntaxError> {
    let range = value.range();
    let node_value = match value {
        Value::Object(object) => NodeValue::Object(self::object(object)?),
        Value::Array(array) => NodeValue::List(array.elements.iter().map(node).collect::<Result<_, _>>()?),
        Value::StringLit(text) => NodeValue::Text(text.value.to_string()),
        Value::BooleanLit(literal) => NodeValue::Bool(literal.value),
        Value::NumberLit(_) | Value::NullKeyword(_) => NodeValue::Other,
    };
    Ok(Node { span: range.start..range.end, value: node_value })
}

fn object(object: &ast::Object<'_>) -> Result<Object, SyntaxError> {
    let mut names = HashSet::new();
    let mut properties = Vec::new();
    for property in &object.properties {
        let name = property.name.as_str();
        let range = property.name.range();
        let name_span = range.start..range.end;
        if !names.insert(name) {
            return Err(SyntaxError {
                message: format!("the key `{name}` appears twice in its object"),
                span: name_span,
            });
        }
        properties.push(Property { name: name.to_owned(), name_span, value: node(&property.value)? });
    }
    Ok(Object { layout: Layout::Json, properties })
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}
