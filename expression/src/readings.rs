//! The values that an expression reads, for messages about its result.

use std::ops::Range;

use crate::budget::Budget;
use crate::computed::Computed;
use crate::evaluate::Evaluation;
use crate::node::{Kind, Node, Pattern};
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
        for operand in operands(node) {
            self.read(operand);
        }
    }

    /// Reads a part, or the parts of it if its value is a result such as that of a comparison.
    fn read(&mut self, node: &'j Node) {
        if self.found.len() >= self.most || !reads_variable(node) {
            return;
        }
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
    matches!(node.kind, Kind::Variable(_)) || operands(node).into_iter().any(reads_variable)
}

/// Returns true if a part has a variable of a macro: it has a value for each element.
fn depends_on_macro(node: &Node) -> bool {
    matches!(node.kind, Kind::Local(_)) || operands(node).into_iter().any(depends_on_macro)
}

/// Returns the parts of a node, in the order of the text.
fn operands(node: &Node) -> Vec<&Node> {
    match &node.kind {
        Kind::Null
        | Kind::Bool(_)
        | Kind::Int(_)
        | Kind::Uint(_)
        | Kind::Double(_)
        | Kind::String(_)
        | Kind::Bytes(_)
        | Kind::Type(_)
        | Kind::Variable(_)
        | Kind::Local(_) => Vec::new(),
        Kind::List(elements) => elements.iter().map(|element| &element.value).collect(),
        Kind::Map(entries) => entries.iter().flat_map(|entry| [&entry.key, &entry.value]).collect(),
        Kind::Field { of, .. } | Kind::Has { of, .. } | Kind::Not(of) | Kind::Negate(of) => vec![of],
        Kind::Item { of: left, at: right, .. }
        | Kind::And(left, right)
        | Kind::Or(left, right)
        | Kind::Binary { left, right, .. }
        | Kind::Bind { value: left, body: right }
        | Kind::OptionalMap { of: left, body: right, .. }
        | Kind::OptionalOr { of: left, other: right, .. } => vec![left, right],
        Kind::If { condition, then, otherwise } => vec![condition, then, otherwise],
        Kind::Call { arguments, .. } => arguments.iter().collect(),
        Kind::Matches { text, pattern: Pattern::Literal(_) } => vec![text],
        Kind::Matches { text, pattern: Pattern::Computed(pattern) } => vec![text, pattern],
        Kind::Loop(body) => {
            [Some(&body.range), body.condition.as_ref(), Some(&body.body)].into_iter().flatten().collect()
        }
    }
}
