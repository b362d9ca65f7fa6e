//! The nodes of the tree, except for calls.

use std::ops::Range;

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr, SourceInfo, operators};

use super::calls::{is_operator, namespace};
use crate::node::{Element, Entry, Kind, Node};
use crate::source::{Source, joined};
use crate::values::Type;

/// Maximum nesting of an expression, in levels of its tree.
pub const MAX_DEPTH: usize = 64;

/// The reason why a text is not a valid expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CompileError {
    /// The byte range of the error in the text.
    pub span: Range<usize>,
    pub message: String,
    /// How to fix it.
    pub remedy: String,
}

/// Resolves a parsed tree against the names of the variables.
pub(crate) fn resolve(
    source: &str,
    tokens: SourceInfo,
    variables: &[String],
    tree: &IdedExpr,
) -> Result<Node, CompileError> {
    Resolver { source: Source::new(source, tokens), variables, locals: Vec::new(), extent: None }.node(tree, 0)
}

pub(super) struct Resolver<'s> {
    pub(super) source: Source<'s>,
    pub(super) variables: &'s [String],
    /// The variables of the enclosing macros, outermost first.
    pub(super) locals: Vec<String>,
    /// The byte range of the parts of the current node that are resolved already.
    extent: Option<Range<usize>>,
}

impl Resolver<'_> {
    pub(super) fn error(&self, at: &IdedExpr, message: impl Into<String>, remedy: impl Into<String>) -> CompileError {
        CompileError { span: self.source.token(at.id), message: message.into(), remedy: remedy.into() }
    }

    pub(super) fn boxed(&mut self, tree: &IdedExpr, depth: usize) -> Result<Box<Node>, CompileError> {
        self.node(tree, depth).map(Box::new)
    }

    pub(super) fn node(&mut self, tree: &IdedExpr, depth: usize) -> Result<Node, CompileError> {
        if depth >= MAX_DEPTH {
            let message = format!("the expression is nested deeper than {MAX_DEPTH} levels");
            return Err(self.error(tree, message, "split it into several expressions"));
        }
        let outer = self.extent.take();
        let kind = self.kind(tree, depth + 1)?;
        let own = self.own_range(tree);
        let span = self.source.balanced(joined(self.extent.take().as_ref(), &own));
        self.extent = Some(joined(outer.as_ref(), &span));
        Ok(Node { kind, span })
    }

    /// Returns the range of a node without its parts.
    fn own_range(&self, tree: &IdedExpr) -> Range<usize> {
        let token = self.source.token(tree.id);
        match &tree.expr {
            Expr::Select(_) => self.source.field(tree.id),
            Expr::Call(call) if call.func_name == operators::OPT_SELECT => self.source.field(tree.id),
            Expr::Call(call) if !is_operator(&call.func_name) => {
                let range = joined(Some(&token), &self.source.function_name(tree.id, &call.func_name));
                namespace(call).map_or(range.clone(), |prefix| joined(Some(&range), &self.source.token(prefix.id)))
            }
            _ => token,
        }
    }

    fn kind(&mut self, tree: &IdedExpr, deeper: usize) -> Result<Kind, CompileError> {
        Ok(match &tree.expr {
            Expr::Literal(literal) => literal_kind(literal),
            Expr::Ident(name) => self.name(tree, name)?,
            Expr::Select(select) => self.field(tree, select, deeper)?,
            Expr::List(list) => {
                let element = |(index, element)| {
                    let optional = list.optional_indices.contains(&index);
                    self.node(element, deeper).map(|value| Element { value, optional })
                };
                Kind::List(list.elements.iter().enumerate().map(element).collect::<Result<_, _>>()?)
            }
            Expr::Map(map) => {
                let mut entries = Vec::with_capacity(map.entries.len());
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else { return Err(self.no_messages(tree)) };
                    let (key, value) = (self.node(&entry.key, deeper)?, self.node(&entry.value, deeper)?);
                    entries.push(Entry { key, value, optional: entry.optional });
                }
                Kind::Map(entries)
            }
            Expr::Call(call) => self.call(tree, call, deeper)?,
            Expr::Struct(_) => return Err(self.no_messages(tree)),
            Expr::Comprehension(_) | Expr::Unspecified => {
                return Err(self.error(tree, "this syntax is not supported", "correct the CEL at this position"));
            }
        })
    }

    fn no_messages(&self, tree: &IdedExpr) -> CompileError {
        self.error(tree, "message types are not supported", "write a map")
    }

    /// Resolves `of.name`.
    fn field(&mut self, tree: &IdedExpr, select: &SelectExpr, depth: usize) -> Result<Kind, CompileError> {
        if let Some(kind) = self.qualified_type(tree) {
            return Ok(Kind::Type(kind));
        }
        let of = self.boxed(&select.operand, depth)?;
        let name = select.field.as_str().into();
        Ok(if select.test { Kind::Has { of, name } } else { Kind::Field { of, name, optional: false } })
    }

    /// Returns the type with a name such as `google.protobuf.Timestamp`, unless its first part is a variable.
    fn qualified_type(&self, tree: &IdedExpr) -> Option<Type> {
        let mut parts = Vec::new();
        let mut expression = &tree.expr;
        loop {
            match expression {
                Expr::Select(select) if !select.test => {
                    parts.push(select.field.as_str());
                    expression = &select.operand.expr;
                }
                Expr::Ident(name) if !self.is_variable(name) => {
                    parts.push(name.as_str());
                    break;
                }
                _ => return None,
            }
        }
        parts.reverse();
        Type::named(&parts.join("."))
    }
}

fn literal_kind(literal: &LiteralValue) -> Kind {
    match literal {
        LiteralValue::Null => Kind::Null,
        LiteralValue::Boolean(value) => Kind::Bool(*value.inner()),
        LiteralValue::Int(value) => Kind::Int(*value.inner()),
        LiteralValue::UInt(value) => Kind::Uint(*value.inner()),
        LiteralValue::Double(value) => Kind::Double(*value.inner()),
        LiteralValue::String(value) => Kind::String(value.inner().into()),
        LiteralValue::Bytes(value) => Kind::Bytes(value.inner().into()),
    }
}
