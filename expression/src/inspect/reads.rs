//! The fields that an expression reads, as paths, and the parts of a node with the variables that each knows.

use std::ops::Range;

use crate::node::{Kind, LoopVariables, Node, Pattern};

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
        // From the end: the brackets of an object before it may contain the same word.
        let start = rest.rfind(name).map(|at| of.span.end + at);
        start.map_or(node.span.clone(), |start| start..start + name.len())
    }
}

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
            // As many as the resolver added, because locals are found by their index.
            let count = if body.variables == LoopVariables::One { 1 } else { 2 };
            let scoped = |node| Part { node, locals: vec![None; count] };
            let condition = body.condition.as_ref().map(scoped);
            [plain(&body.range)].into_iter().chain(condition).chain([scoped(&body.body)]).collect()
        }
        Kind::Bind { value, body } => vec![plain(value), Part { node: body, locals: vec![Some(value)] }],
    }
}
