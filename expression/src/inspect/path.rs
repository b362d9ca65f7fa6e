//! Fields of variables, by name.

use crate::node::{Kind, Node};

/// A variable, or a field in it: `call.args.path`, also if it is written as `call.args['path']`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// The index of the variable in the list that the expression was compiled with.
    pub variable: usize,
    /// The names of the fields, from the outermost.
    pub fields: Vec<String>,
}

impl Path {
    pub(super) fn with(mut self, name: &str) -> Self {
        self.fields.push(name.to_owned());
        self
    }
}

/// Returns the field that a node reads. `locals` are the paths of the variables of the enclosing macros.
pub(super) fn path_of(node: &Node, locals: &[Option<Path>]) -> Option<Path> {
    match &node.kind {
        Kind::Variable(variable) => Some(Path { variable: *variable, fields: Vec::new() }),
        Kind::Local(index) => locals.get(*index).cloned().flatten(),
        Kind::Field { of, name, .. } => Some(path_of(of, locals)?.with(name)),
        Kind::Item { of, at, .. } => Some(path_of(of, locals)?.with(literal(at)?)),
        _ => None,
    }
}

/// Returns the text of a literal string.
pub(super) fn literal(node: &Node) -> Option<&str> {
    if let Kind::String(text) = &node.kind { Some(text) } else { None }
}
