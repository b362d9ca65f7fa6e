//! The direct parts of a node, and the variables that are known in each.

use crate::node::{Kind, LoopVariables, Node, Pattern};

/// A direct part of a node.
#[derive(Debug)]
pub(crate) struct Part<'n> {
    pub(crate) node: &'n Node,
    /// The variables that the node adds for the part: `cel.bind` has their value, and elements of lists have none.
    pub(crate) locals: Vec<Option<&'n Node>>,
}

/// Returns the direct parts of a node.
pub(crate) fn parts(node: &Node) -> Vec<Part<'_>> {
    let plain = |node| Part { node, locals: Vec::new() };
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
        Kind::List(elements) => elements.iter().map(plain).collect(),
        Kind::Map(entries) => entries.iter().flat_map(|(key, value)| [plain(key), plain(value)]).collect(),
        Kind::Field { of, .. } | Kind::Has { of, .. } => vec![plain(of)],
        Kind::Item { of, at, .. } => vec![plain(of), plain(at)],
        Kind::And(left, right) | Kind::Or(left, right) | Kind::Binary { left, right, .. } => {
            vec![plain(left), plain(right)]
        }
        Kind::Not(operand) | Kind::Negate(operand) => vec![plain(operand)],
        Kind::If { condition, then, otherwise } => vec![plain(condition), plain(then), plain(otherwise)],
        Kind::Call { arguments, .. } => arguments.iter().map(plain).collect(),
        Kind::Matches { text, pattern } => match pattern {
            Pattern::Literal(_) => vec![plain(text)],
            Pattern::Computed(pattern) => vec![plain(text), plain(pattern)],
        },
        Kind::Loop(body) => {
            let count = if body.variables == LoopVariables::One { 1 } else { 2 };
            let scoped = |node| Part { node, locals: vec![None; count] };
            let condition = body.condition.as_ref().map(scoped);
            [plain(&body.range)].into_iter().chain(condition).chain([scoped(&body.body)]).collect()
        }
        Kind::Bind { value, body } => vec![plain(value), Part { node: body, locals: vec![Some(value)] }],
    }
}
