//! Parts of an expression that must be booleans and never are.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value as Json;

use super::reads::parts;
use super::reads::{Path, path_of};
use crate::node::{Kind, LoopKind, Node};
use crate::values::Value;

/// A part of an expression that must be a boolean and never is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeverBoolean {
    /// The byte range of the part in the text.
    pub span: Range<usize>,
    /// What its value is, such as `a number`.
    pub value: Cow<'static, str>,
    /// The operator or the macro that takes it; `None` for the whole expression.
    pub taken_by: Option<&'static str>,
}

/// What is known about the type of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Known {
    Boolean,
    /// Another type.
    Other(Cow<'static, str>),
    Nothing,
}

/// The functions whose values are booleans.
const BOOLEAN_FUNCTIONS: [&str; 7] =
    ["bool", "contains", "startsWith", "endsWith", "math.isNaN", "math.isInf", "math.isFinite"];

/// The functions whose values can have any type.
const FUNCTIONS_OF_ANY_TYPE: [&str; 1] = ["dyn"];

/// Returns the parts that must be booleans and never are, outermost first.
pub(crate) fn never_boolean(root: &Node, shapes: &[&Json]) -> Vec<NeverBoolean> {
    let mut types = Types { shapes, paths: Vec::new(), locals: Vec::new(), found: Vec::new() };
    types.require_boolean(root, None);
    types.visit(root);
    types.found
}

struct Types<'s> {
    shapes: &'s [&'s Json],
    /// The paths and the types of the variables of the enclosing macros.
    paths: Vec<Option<Path>>,
    locals: Vec<Known>,
    found: Vec<NeverBoolean>,
}

impl Types<'_> {
    fn require_boolean(&mut self, node: &Node, taken_by: Option<&'static str>) {
        if let Known::Other(value) = self.known(node, 0) {
            self.found.push(NeverBoolean { span: node.span.clone(), value, taken_by });
        }
    }

    fn visit(&mut self, node: &Node) {
        match &node.kind {
            Kind::And(left, right) => [left, right].into_iter().for_each(|it| self.require_boolean(it, Some("&&"))),
            Kind::Or(left, right) => [left, right].into_iter().for_each(|it| self.require_boolean(it, Some("||"))),
            Kind::Not(operand) => self.require_boolean(operand, Some("!")),
            Kind::If { condition, .. } => self.require_boolean(condition, Some("?")),
            _ => {}
        }
        for part in parts(node) {
            let outer = self.locals.len();
            for value in part.locals {
                let (path, known) = match value {
                    Some(value) => (path_of(value, &self.paths), self.known(value, 0)),
                    None => (None, Known::Nothing),
                };
                self.paths.push(path);
                self.locals.push(known);
            }
            if let Kind::Loop(body) = &node.kind
                // Only the body, and neither the range nor the condition, is taken by the macro.
                && std::ptr::eq(part.node, &raw const body.body)
                && let Some(name) = deciding_macro(body.kind)
            {
                self.require_boolean(part.node, Some(name));
            }
            self.visit(part.node);
            self.paths.truncate(outer);
            self.locals.truncate(outer);
        }
    }

    fn known(&self, node: &Node, depth: usize) -> Known {
        let other = |name: &'static str| Known::Other(Cow::Borrowed(name));
        if is_boolean(&node.kind) {
            return Known::Boolean;
        }
        match &node.kind {
            Kind::Null => other("null"),
            Kind::Int(_) | Kind::Uint(_) | Kind::Double(_) => other("a number"),
            Kind::String(_) => other("a string"),
            Kind::Bytes(_) => other("bytes"),
            Kind::Type(_) => other("a type"),
            Kind::List(_) => other("a list"),
            Kind::Map(_) => other("an object"),
            Kind::Local(index) => match self.locals.get(*index) {
                // A variable of `cel.bind` may still be the name of a field with a shape.
                Some(Known::Nothing) | None => self.of_path(node),
                Some(known) => known.clone(),
            },
            Kind::Variable(_) | Kind::Field { .. } | Kind::Item { .. } => self.of_path(node),
            Kind::Negate(_) => Known::Other("the result of `-`".into()),
            Kind::Binary { operator, .. } => Known::Other(format!("the result of `{}`", operator.as_str()).into()),
            // Deep chains of conditionals are not followed in both directions.
            Kind::If { then, otherwise, .. } if depth < 8 => {
                match (self.known(then, depth + 1), self.known(otherwise, depth + 1)) {
                    (Known::Boolean, Known::Boolean) => Known::Boolean,
                    (Known::Other(value), Known::Other(_)) => Known::Other(value),
                    _ => Known::Nothing,
                }
            }
            Kind::Call { function, .. } if !FUNCTIONS_OF_ANY_TYPE.contains(&function.name) => {
                Known::Other(format!("the result of `{}`", function.name).into())
            }
            Kind::Loop(body) => match body.kind {
                LoopKind::Map | LoopKind::MapEntry => other("an object"),
                _ => other("a list"),
            },
            _ => Known::Nothing,
        }
    }

    /// Returns the type of a field by the shapes.
    fn of_path(&self, node: &Node) -> Known {
        let shape = path_of(node, &self.paths).and_then(|path| {
            let variable = self.shapes.get(path.variable)?;
            path.fields.iter().try_fold(*variable, |value, name| value.get(name))
        });
        match shape {
            // A field without a shape may have any type. Guessing would refuse valid expressions.
            None | Some(Json::Null) => Known::Nothing,
            Some(Json::Bool(_)) => Known::Boolean,
            Some(other) => Known::Other(Value::from_json(other).describe().into()),
        }
    }
}

/// True for the nodes whose value is always a boolean.
fn is_boolean(kind: &Kind) -> bool {
    match kind {
        Kind::Bool(_) | Kind::And(..) | Kind::Or(..) | Kind::Not(_) | Kind::Has { .. } | Kind::Matches { .. } => true,
        Kind::Binary { operator, .. } => operator.is_comparison(),
        Kind::Call { function, .. } => BOOLEAN_FUNCTIONS.contains(&function.name),
        Kind::Loop(body) => matches!(body.kind, LoopKind::All | LoopKind::Exists | LoopKind::ExistsOne),
        _ => false,
    }
}

/// Returns the name of a macro whose body must be a boolean.
const fn deciding_macro(kind: LoopKind) -> Option<&'static str> {
    match kind {
        LoopKind::All => Some("all"),
        LoopKind::Exists => Some("exists"),
        LoopKind::ExistsOne => Some("exists_one"),
        LoopKind::Filter => Some("filter"),
        LoopKind::List | LoopKind::Map | LoopKind::MapEntry => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{BOOLEAN_FUNCTIONS, FUNCTIONS_OF_ANY_TYPE};
    use crate::Expression;

    fn found(text: &str) -> Vec<String> {
        let expression = Expression::compile(text, &["call"]).unwrap_or_else(|error| panic!("{text}: {error}"));
        let shape = json!({"tool": "", "bytes": 0, "classes": [], "args": {}, "principal": null, "is_new": true});
        let found = expression.never_boolean(&[&shape]);
        found.iter().map(|it| format!("{}: {} in {:?}", &text[it.span.clone()], it.value, it.taken_by)).collect()
    }

    #[test]
    fn values_of_other_types_are_found() {
        for (text, expected) in [
            ("1 + 1", "1 + 1: the result of `+` in None"),
            ("'text'", "'text': a string in None"),
            ("call.tool", "call.tool: a string in None"),
            ("call['bytes']", "call['bytes']: a number in None"),
            ("call.args", "call.args: an object in None"),
            ("call.classes.filter(c, c == 'x')", "call.classes.filter(c, c == 'x'): a list in None"),
            ("size(call.args)", "size(call.args): the result of `size` in None"),
            ("call.is_new ? 'a' : 1", "call.is_new ? 'a' : 1: a string in None"),
            ("call.is_new && call.tool", "call.tool: a string in Some(\"&&\")"),
            ("!call.bytes", "call.bytes: a number in Some(\"!\")"),
            ("call.bytes ? true : false", "call.bytes: a number in Some(\"?\")"),
            ("call.classes.exists(c, 'x')", "'x': a string in Some(\"exists\")"),
            ("cel.bind(t, call.tool, t || true)", "t: a string in Some(\"||\")"),
        ] {
            assert_eq!(found(text), [expected], "{text}");
        }
    }

    #[test]
    fn booleans_and_values_of_unknown_types_are_not_found() {
        for text in [
            "true",
            "call.is_new",
            "call.args.force",
            "call.args.force && !call.args.dry_run",
            "call.principal",
            "call.args.x ? call.args.y : call.tool == 'z'",
            "call.classes.exists(c, c.startsWith('x'))",
            "bool(call.tool) || dyn(call.args.x)",
            "cel.bind(a, call.args, a.force)",
            "call.args.exists(k, call.args[k])",
            "'a' in call.classes",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn the_functions_exist() {
        for name in BOOLEAN_FUNCTIONS.iter().chain(&FUNCTIONS_OF_ANY_TYPE) {
            assert!(crate::functions::exists(name), "{name}");
        }
    }
}
