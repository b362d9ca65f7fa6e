//! The fields that an expression reads.

use std::ops::Range;

use super::parts::parts;
use super::path::{Path, literal, path_of};
use crate::node::{Kind, Node};

/// A field that an expression reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The field.
    pub path: Path,
    pub kind: ReadKind,
    /// The byte range of the part of the text that reads it, such as `call.args.path`.
    pub span: Range<usize>,
    /// The byte range of its name.
    pub name: Range<usize>,
}

/// How an expression reads a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadKind {
    /// `x.name` fails without the field.
    Required,
    /// `has(x.name)`
    Test,
}

/// Returns the fields of variables that an expression reads, in no particular order.
pub(crate) fn reads(root: &Node, source: &str) -> Vec<Read> {
    let mut reader = Reader { source, locals: Vec::new(), found: Vec::new() };
    reader.visit(root);
    reader.found
}

struct Reader<'s> {
    source: &'s str,
    locals: Vec<Option<Path>>,
    found: Vec<Read>,
}

impl Reader<'_> {
    fn visit(&mut self, node: &Node) {
        let read = match &node.kind {
            Kind::Field { of, name } => Some((of, &**name, ReadKind::Required, self.name(node, of, name))),
            Kind::Has { of, name } => Some((of, &**name, ReadKind::Test, self.name(node, of, name))),
            Kind::Item { of, at } => literal(at).map(|name| (of, name, ReadKind::Required, at.span.clone())),
            _ => None,
        };
        if let Some((of, name, kind, range)) = read
            && let Some(path) = path_of(of, &self.locals)
        {
            self.found.push(Read { path: path.with(name), kind, span: node.span.clone(), name: range });
        }
        for part in parts(node) {
            let outer = self.locals.len();
            let paths = part.locals.iter().map(|value| path_of((*value)?, &self.locals)).collect::<Vec<_>>();
            self.locals.extend(paths);
            self.visit(part.node);
            self.locals.truncate(outer);
        }
    }

    /// Returns the range of the name, which is after the object.
    fn name(&self, node: &Node, of: &Node, name: &str) -> Range<usize> {
        let rest = self.source.get(of.span.end..node.span.end).unwrap_or_default();
        let start = rest.rfind(name).map(|at| of.span.end + at);
        start.map_or(node.span.clone(), |start| start..start + name.len())
    }
}
