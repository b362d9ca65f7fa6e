//! Calls: operators, functions and methods.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};

use super::resolver::{CompileError, Resolver};
use crate::functions::{self, Style};
use crate::node::{Kind, Pattern};
use crate::operations::Operator;
use crate::pattern::Matcher;

impl Resolver<'_> {
    pub(super) fn call(&mut self, tree: &IdedExpr, call: &CallExpr, depth: usize) -> Result<Kind, CompileError> {
        if let Some(kind) = self.macro_call(tree, call, depth)? {
            return Ok(kind);
        }
        if let Some(namespace) = namespace(call) {
            let Expr::Ident(prefix) = &namespace.expr else { return Err(self.no_function(tree, &call.func_name)) };
            let name = format!("{prefix}.{}", call.func_name);
            if functions::exists(&name) {
                return self.function(tree, &name, Style::Global, &call.args.iter().collect::<Vec<_>>(), depth);
            }
        }
        let arguments: Vec<&IdedExpr> = call.target.as_deref().into_iter().chain(&call.args).collect();
        match (call.func_name.as_str(), arguments.as_slice()) {
            ("matches", [text, pattern]) => {
                Ok(Kind::Matches { text: self.boxed(text, depth)?, pattern: self.pattern(pattern, depth)? })
            }
            (name, operands) if call.target.is_none() && is_operator(name) => {
                self.operator(tree, name, operands, depth)
            }
            (name, arguments) => {
                let style = if call.target.is_some() { Style::Method } else { Style::Global };
                self.function(tree, name, style, arguments, depth)
            }
        }
    }

    fn function(
        &mut self,
        tree: &IdedExpr,
        name: &str,
        style: Style,
        arguments: &[&IdedExpr],
        depth: usize,
    ) -> Result<Kind, CompileError> {
        // A leading point names the function itself.
        let plain = name.strip_prefix('.').unwrap_or(name);
        let Some(function) = functions::find(plain, style, arguments.len()) else {
            return Err(self.no_function(tree, name));
        };
        let arguments = arguments.iter().map(|argument| self.node(argument, depth)).collect::<Result<_, _>>()?;
        Ok(Kind::Call { function, arguments })
    }

    fn operator(
        &mut self,
        tree: &IdedExpr,
        name: &str,
        operands: &[&IdedExpr],
        depth: usize,
    ) -> Result<Kind, CompileError> {
        Ok(match (name, operands) {
            (operators::LOGICAL_AND, [left, right]) => Kind::And(self.boxed(left, depth)?, self.boxed(right, depth)?),
            (operators::LOGICAL_OR, [left, right]) => Kind::Or(self.boxed(left, depth)?, self.boxed(right, depth)?),
            (operators::LOGICAL_NOT, [operand]) => Kind::Not(self.boxed(operand, depth)?),
            (operators::NEGATE, [operand]) => Kind::Negate(self.boxed(operand, depth)?),
            (operators::CONDITIONAL, [condition, then, otherwise]) => Kind::If {
                condition: self.boxed(condition, depth)?,
                then: self.boxed(then, depth)?,
                otherwise: self.boxed(otherwise, depth)?,
            },
            (operators::INDEX | operators::OPT_INDEX, [of, at]) => {
                let (of, at) = (self.boxed(of, depth)?, self.boxed(at, depth)?);
                Kind::Item { of, at, optional: name == operators::OPT_INDEX }
            }
            (operators::OPT_SELECT, [of, field]) => match &field.expr {
                Expr::Literal(LiteralValue::String(field)) => {
                    Kind::Field { of: self.boxed(of, depth)?, name: field.inner().into(), optional: true }
                }
                _ => return Err(self.no_function(tree, name)),
            },
            (name, [left, right]) => match binary(name) {
                Some(operator) => {
                    Kind::Binary { operator, left: self.boxed(left, depth)?, right: self.boxed(right, depth)? }
                }
                None => return Err(self.no_function(tree, name)),
            },
            _ => return Err(self.no_function(tree, name)),
        })
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

/// Returns the target of a call such as `math.abs(x)`, which may be the first part of the function's name.
pub(super) fn namespace(call: &CallExpr) -> Option<&IdedExpr> {
    call.target.as_deref().filter(|target| matches!(target.expr, Expr::Ident(_)))
}

pub(super) fn is_operator(name: &str) -> bool {
    const OTHERS: [&str; 8] = [
        operators::LOGICAL_AND,
        operators::LOGICAL_OR,
        operators::LOGICAL_NOT,
        operators::NEGATE,
        operators::CONDITIONAL,
        operators::INDEX,
        operators::OPT_INDEX,
        operators::OPT_SELECT,
    ];
    OTHERS.contains(&name) || binary(name).is_some()
}

fn binary(name: &str) -> Option<Operator> {
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
