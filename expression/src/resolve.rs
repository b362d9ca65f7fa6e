//! Resolves a parsed expression: names become indexes, macros become loops, and literal regular expressions are compiled.

use std::ops::Range;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, SourceInfo, operators};

use crate::node::{Function, Macro, Node, Operator, Pattern};
use crate::parse::CompileError;
use crate::pattern::Matcher;

/// Maximum nesting of an expression, in levels of its tree.
pub const MAX_DEPTH: usize = 64;

/// The functions, as messages list them.
const FUNCTIONS: &str = "size, contains, startsWith, endsWith, matches, lowerAscii, upperAscii, int, double, string, has, \
                         all, exists, exists_one, filter, map";

/// Resolves a parsed tree against the names of the variables.
pub(crate) fn resolve(
    source: &str,
    positions: SourceInfo,
    variables: &[String],
    tree: &IdedExpr,
) -> Result<Node, CompileError> {
    Resolver { source, positions, variables, locals: Vec::new() }.node(tree, 0)
}

struct Resolver<'s> {
    source: &'s str,
    positions: SourceInfo,
    variables: &'s [String],
    /// The variables of the enclosing macros, outermost first.
    locals: Vec<String>,
}

impl Resolver<'_> {
    fn error(&self, at: &IdedExpr, message: impl Into<String>, remedy: impl Into<String>) -> CompileError {
        CompileError { span: self.span(at.id), message: message.into(), remedy: remedy.into() }
    }

    /// Returns the byte range of the token of a node, or of the whole text if the parser does not report it.
    fn span(&self, id: u64) -> Range<usize> {
        let token = self.positions.offset_for(id).and_then(|(start, last)| {
            let (start, last) = (usize::try_from(start).ok()?, usize::try_from(last).ok()?);
            let end = (last + 1..=self.source.len()).find(|end| self.source.is_char_boundary(*end))?;
            (start < end && self.source.is_char_boundary(start)).then_some(start..end)
        });
        token.unwrap_or(0..self.source.len())
    }

    fn boxed(&mut self, tree: &IdedExpr, depth: usize) -> Result<Box<Node>, CompileError> {
        self.node(tree, depth).map(Box::new)
    }

    fn node(&mut self, tree: &IdedExpr, depth: usize) -> Result<Node, CompileError> {
        if depth >= MAX_DEPTH {
            let message = format!("the expression is nested deeper than {MAX_DEPTH} levels");
            return Err(self.error(tree, message, "split it into several expressions"));
        }
        let deeper = depth + 1;
        Ok(match &tree.expr {
            Expr::Literal(literal) => self.literal(tree, literal)?,
            Expr::Ident(name) => self.variable(tree, name)?,
            Expr::Select(select) if select.test => {
                Node::Has { of: self.boxed(&select.operand, deeper)?, name: select.field.clone() }
            }
            Expr::Select(select) => {
                Node::Field { of: self.boxed(&select.operand, deeper)?, name: select.field.clone() }
            }
            Expr::List(list) => {
                Node::List(list.elements.iter().map(|element| self.node(element, deeper)).collect::<Result<_, _>>()?)
            }
            Expr::Map(map) => {
                let mut entry = |entry: &IdedEntryExpr| match &entry.expr {
                    EntryExpr::MapEntry(entry) => {
                        Ok((self.node(&entry.key, deeper)?, self.node(&entry.value, deeper)?))
                    }
                    EntryExpr::StructField(_) => {
                        Err(self.error(tree, "message types are not supported", "write a map"))
                    }
                };
                Node::Map(map.entries.iter().map(&mut entry).collect::<Result<_, _>>()?)
            }
            Expr::Call(call) => self.call(tree, call, deeper)?,
            Expr::Struct(_) => return Err(self.error(tree, "message types are not supported", "write a map")),
            Expr::Comprehension(_) | Expr::Unspecified => {
                return Err(self.error(tree, "this syntax is not supported", "correct the CEL at this position"));
            }
        })
    }

    fn literal(&self, tree: &IdedExpr, literal: &LiteralValue) -> Result<Node, CompileError> {
        Ok(match literal {
            LiteralValue::Null => Node::Null,
            LiteralValue::Boolean(value) => Node::Bool(*value.inner()),
            LiteralValue::Int(value) => Node::Int(*value.inner()),
            // JSON has one number type, so unsigned integers become integers.
            LiteralValue::UInt(value) => match i64::try_from(*value.inner()) {
                Ok(value) => Node::Int(value),
                Err(_) => return Err(self.error(tree, "the number is too large", "write a smaller number")),
            },
            LiteralValue::Double(value) => Node::Double(*value.inner()),
            LiteralValue::String(value) => Node::String(value.inner().to_owned()),
            LiteralValue::Bytes(_) => {
                return Err(self.error(
                    tree,
                    "bytes are not supported, because JSON has none",
                    "write a string, without the `b` prefix",
                ));
            }
        })
    }

    fn variable(&self, tree: &IdedExpr, name: &str) -> Result<Node, CompileError> {
        if let Some(local) = self.locals.iter().rposition(|local| local == name) {
            return Ok(Node::Local(local));
        }
        if let Some(variable) = self.variables.iter().position(|variable| variable == name) {
            return Ok(Node::Variable(variable));
        }
        let message = format!("unknown variable `{name}`");
        Err(self.error(tree, message, format!("known variables: {}", self.variables.join(", "))))
    }

    fn call(&mut self, tree: &IdedExpr, call: &CallExpr, depth: usize) -> Result<Node, CompileError> {
        let arguments: Vec<&IdedExpr> = call.target.as_deref().into_iter().chain(&call.args).collect();
        if let Some(target) = &call.target
            && let Some(kind) = macro_named(&call.func_name)
        {
            return self.macro_call(tree, kind, target, &call.args, depth);
        }
        match (call.func_name.as_str(), arguments.as_slice()) {
            (operators::LOGICAL_AND, [left, right]) => {
                Ok(Node::And(self.boxed(left, depth)?, self.boxed(right, depth)?))
            }
            (operators::LOGICAL_OR, [left, right]) => Ok(Node::Or(self.boxed(left, depth)?, self.boxed(right, depth)?)),
            (operators::LOGICAL_NOT, [operand]) => Ok(Node::Not(self.boxed(operand, depth)?)),
            (operators::NEGATE, [operand]) => Ok(Node::Negate(self.boxed(operand, depth)?)),
            (operators::CONDITIONAL, [condition, then, otherwise]) => Ok(Node::If {
                condition: self.boxed(condition, depth)?,
                then: self.boxed(then, depth)?,
                otherwise: self.boxed(otherwise, depth)?,
            }),
            (operators::INDEX, [of, at]) => Ok(Node::Item { of: self.boxed(of, depth)?, at: self.boxed(at, depth)? }),
            ("has", [argument]) if call.target.is_none() => match &argument.expr {
                Expr::Select(select) => {
                    Ok(Node::Has { of: self.boxed(&select.operand, depth)?, name: select.field.clone() })
                }
                _ => Err(self.error(argument, "`has` takes a field", "for example `has(input.context)`")),
            },
            ("matches", [text, pattern]) => {
                Ok(Node::Matches { text: self.boxed(text, depth)?, pattern: self.pattern(pattern, depth)? })
            }
            (name, [left, right]) if operator(name).is_some() => match operator(name) {
                Some(operator) => {
                    Ok(Node::Binary { operator, left: self.boxed(left, depth)?, right: self.boxed(right, depth)? })
                }
                None => Err(self.no_function(tree, name)),
            },
            (name, arguments) => {
                let style = if call.target.is_some() { CallStyle::Method } else { CallStyle::Global };
                let function = function(name, arguments.len(), style);
                let Some(function) = function else { return Err(self.no_function(tree, name)) };
                let arguments =
                    arguments.iter().map(|argument| self.node(argument, depth)).collect::<Result<_, _>>()?;
                Ok(Node::Call { function, arguments })
            }
        }
    }

    fn macro_call(
        &mut self,
        tree: &IdedExpr,
        kind: Macro,
        target: &IdedExpr,
        arguments: &[IdedExpr],
        depth: usize,
    ) -> Result<Node, CompileError> {
        match (kind, arguments) {
            (_, [variable, body]) => {
                let (range, mut parts) = self.loop_parts(target, variable, &[body], depth)?;
                let body = Box::new(parts.swap_remove(0));
                Ok(Node::Macro { kind, range, body })
            }
            (Macro::Map, [variable, condition, body]) => {
                let (range, mut parts) = self.loop_parts(target, variable, &[condition, body], depth)?;
                let (body, condition) = (Box::new(parts.swap_remove(1)), Box::new(parts.swap_remove(0)));
                Ok(Node::MapWhere { range, condition, body })
            }
            _ => {
                let message = format!("`{}` takes a variable name and an expression", kind.as_str());
                Err(self.error(tree, message, "for example `events.all(e, e.type != \"error\")`"))
            }
        }
    }

    fn no_function(&self, tree: &IdedExpr, name: &str) -> CompileError {
        let message = match FUNCTIONS.split(", ").find(|known| *known == name) {
            Some(known) => format!("`{known}` does not take these arguments"),
            None => format!("unknown function `{name}`"),
        };
        let remedy = match name {
            "len" | "length" | "count" => "write `size(x)`".to_owned(),
            "lower" | "toLower" => "write `x.lowerAscii()`".to_owned(),
            _ => format!("known functions: {FUNCTIONS}"),
        };
        CompileError { span: self.name(tree, name), message, remedy }
    }

    /// Returns the byte range of a function's name, which is before the token of its call.
    fn name(&self, tree: &IdedExpr, name: &str) -> Range<usize> {
        let token = self.span(tree.id);
        let end = self.source[..token.start].trim_end().len();
        match end.checked_sub(name.len()) {
            Some(start) if self.source.get(start..end) == Some(name) => start..end,
            _ => token,
        }
    }

    /// Resolves the list or map of a macro, and the parts that it evaluates for each element.
    fn loop_parts(
        &mut self,
        range: &IdedExpr,
        variable: &IdedExpr,
        parts: &[&IdedExpr],
        depth: usize,
    ) -> Result<(Box<Node>, Vec<Node>), CompileError> {
        let Expr::Ident(name) = &variable.expr else {
            return Err(self.error(variable, "expected a variable name", "write a name, such as `x`"));
        };
        let range = self.boxed(range, depth)?;
        self.locals.push(name.clone());
        let parts = parts.iter().map(|part| self.node(part, depth)).collect::<Result<_, _>>();
        self.locals.pop();
        Ok((range, parts?))
    }

    fn pattern(&mut self, pattern: &IdedExpr, depth: usize) -> Result<Pattern, CompileError> {
        let Expr::Literal(LiteralValue::String(text)) = &pattern.expr else {
            return Ok(Pattern::Computed(self.boxed(pattern, depth)?));
        };
        match Matcher::compile(text.inner()) {
            Ok(matcher) => Ok(Pattern::Literal(Box::new(matcher))),
            Err(error) => {
                let remedy = "correct it; write backslashes twice, or use r'…'";
                Err(self.error(pattern, error.to_string(), remedy))
            }
        }
    }
}

fn operator(name: &str) -> Option<Operator> {
    Some(match name {
        operators::ADD => Operator::Add,
        operators::SUBSTRACT => Operator::Subtract,
        operators::MULTIPLY => Operator::Multiply,
        operators::DIVIDE => Operator::Divide,
        operators::MODULO => Operator::Modulo,
        operators::EQUALS => Operator::Equal,
        operators::NOT_EQUALS => Operator::NotEqual,
        operators::LESS => Operator::Less,
        operators::LESS_EQUALS => Operator::LessOrEqual,
        operators::GREATER => Operator::Greater,
        operators::GREATER_EQUALS => Operator::GreaterOrEqual,
        operators::IN => Operator::In,
        _ => return None,
    })
}

fn macro_named(name: &str) -> Option<Macro> {
    Some(match name {
        "all" => Macro::All,
        "exists" => Macro::Exists,
        "exists_one" | "existsOne" => Macro::ExistsOne,
        "filter" => Macro::Filter,
        "map" => Macro::Map,
        _ => return None,
    })
}

/// How a function is called.
#[derive(Debug, Clone, Copy)]
enum CallStyle {
    /// `name(x)`.
    Global,
    /// `x.name()`.
    Method,
}

/// Returns the function with this name. `arguments` includes the target of a method call.
fn function(name: &str, arguments: usize, style: CallStyle) -> Option<Function> {
    Some(match (name, arguments, style) {
        ("size", 1, _) => Function::Size,
        ("contains", 2, CallStyle::Method) => Function::Contains,
        ("startsWith", 2, CallStyle::Method) => Function::StartsWith,
        ("endsWith", 2, CallStyle::Method) => Function::EndsWith,
        ("lowerAscii", 1, CallStyle::Method) => Function::LowerAscii,
        ("upperAscii", 1, CallStyle::Method) => Function::UpperAscii,
        ("int", 1, CallStyle::Global) => Function::Int,
        ("double", 1, CallStyle::Global) => Function::Double,
        ("string", 1, CallStyle::Global) => Function::String,
        _ => return None,
    })
}
