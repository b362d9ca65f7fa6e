//! The values that an expression reads, for messages about its result.

use std::ops::Range;

use crate::budget::Budget;
use crate::computed::Computed;
use crate::evaluate::Evaluation;
use crate::inspect::parts;
use crate::node::{Kind, Node};
use crate::values::Value;

/// Largest number of characters of a value. A longer text is cut. A longer list or object is left out.
const MAX_CHARS: usize = 120;

/// Largest number of steps for the copy of a value.
const COPY_STEPS: u64 = 1000;

/// A part of an expression and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The byte range of the part in the text of the expression.
    pub span: Range<usize>,
    /// The value, written as an expression. At most 120 characters and the quotation marks and escapes of a text.
    pub value: String,
}

/// The first values that an expression compares or tests.
pub(crate) struct Reader<'j> {
    evaluation: Evaluation<'j>,
    source: &'j str,
    /// Largest number of values.
    most: usize,
    found: Vec<Reading>,
}

impl<'j> Reader<'j> {
    pub(crate) fn new(evaluation: Evaluation<'j>, source: &'j str, most: usize) -> Self {
        Self { evaluation, source, most, found: Vec::new() }
    }

    /// Returns the values, in the order of the text. Parts with the same text are read once.
    pub(crate) fn readings(mut self, root: &'j Node) -> Vec<Reading> {
        self.read_operands(root);
        self.found
    }

    fn read_operands(&mut self, node: &'j Node) {
        for part in parts(node) {
            self.read(part.node);
        }
    }

    /// Reads a part, or the parts of it if its value is a result such as that of a comparison.
    fn read(&mut self, node: &'j Node) {
        // Literals explain nothing: their values are in the text.
        if self.found.len() >= self.most || !reads_variable(node) {
            return;
        }
        // The body of a macro has a value for each element, and none that explains the result.
        if depends_on_macro(node) {
            return self.read_operands(node);
        }
        let value = match self.evaluation.value(node) {
            Ok(Value::Bool(_)) | Err(_) if !is_path(node) => return self.read_operands(node),
            Ok(value) => value,
            Err(_) => return,
        };
        let part = &self.source[node.span.clone()];
        match text(&value) {
            Some(_) if self.found.iter().any(|known| &self.source[known.span.clone()] == part) => {}
            Some(value) => self.found.push(Reading { span: node.span.clone(), value }),
            None if is_path(node) => {}
            None => self.read_operands(node),
        }
    }
}

fn text(value: &Value<'_>) -> Option<String> {
    if let Value::String(text) = value {
        let mut characters = text.as_str().chars();
        let mut start: String = characters.by_ref().take(MAX_CHARS).collect();
        if characters.next().is_some() {
            start.push('…');
        }
        return Some(Computed::String(start).to_string());
    }
    // A value that takes more steps is too long to be shown.
    let copied = Computed::copy(&mut Budget::with_steps(COPY_STEPS), value).ok()?;
    Some(copied.to_string()).filter(|text| text.chars().count() <= MAX_CHARS)
}

/// Returns true if a part names a value of the variables, as in `order.items[0].price`.
fn is_path(node: &Node) -> bool {
    match &node.kind {
        Kind::Variable(_) => true,
        Kind::Field { of, .. } | Kind::Item { of, .. } => is_path(of),
        _ => false,
    }
}

fn reads_variable(node: &Node) -> bool {
    matches!(node.kind, Kind::Variable(_)) || parts(node).into_iter().any(|part| reads_variable(part.node))
}

/// Returns true if a part has a variable of a macro: it has a value for each element.
fn depends_on_macro(node: &Node) -> bool {
    matches!(node.kind, Kind::Local(_)) || parts(node).into_iter().any(|part| depends_on_macro(part.node))
}
