//! Macros: calls whose arguments are evaluated with variables of their own.

use cel::common::ast::{CallExpr, Expr, IdedExpr};

use super::resolver::{CompileError, Resolver};
use crate::node::{Kind, Loop, LoopKind, LoopVariables, Node};

impl Resolver<'_> {
    /// Resolves a macro. Returns `None` for a function.
    pub(super) fn macro_call(
        &mut self,
        tree: &IdedExpr,
        call: &CallExpr,
        depth: usize,
    ) -> Result<Option<Kind>, CompileError> {
        let Some(target) = call.target.as_deref() else {
            return match call.func_name.as_str() {
                "has" => self.has(tree, &call.args, depth).map(Some),
                _ => Ok(None),
            };
        };
        let of_cel = matches!(&target.expr, Expr::Ident(name) if name == "cel");
        Ok(Some(match (call.func_name.as_str(), call.args.as_slice()) {
            ("bind", [variable, value, body]) if of_cel => {
                let name = self.variable_name(variable)?;
                let value = self.boxed(value, depth)?;
                Kind::Bind { value, body: Box::new(self.scoped(vec![name], body, depth)?) }
            }
            ("optMap" | "optFlatMap", [variable, body]) => {
                let name = self.variable_name(variable)?;
                let of = self.boxed(target, depth)?;
                let body = Box::new(self.scoped(vec![name], body, depth)?);
                Kind::OptionalMap { of, body, flat: call.func_name == "optFlatMap" }
            }
            ("or" | "orValue", [other]) => Kind::OptionalOr {
                of: self.boxed(target, depth)?,
                other: self.boxed(other, depth)?,
                keep_optional: call.func_name == "or",
            },
            (name, arguments) => match self.loop_call(tree, name, target, arguments, depth)? {
                Some(found) => Kind::Loop(Box::new(found)),
                None => return Ok(None),
            },
        }))
    }

    fn has(&mut self, tree: &IdedExpr, arguments: &[IdedExpr], depth: usize) -> Result<Kind, CompileError> {
        match arguments {
            [IdedExpr { expr: Expr::Select(select), .. }] => {
                Ok(Kind::Has { of: self.boxed(&select.operand, depth)?, name: select.field.as_str().into() })
            }
            [argument] => Err(self.error(argument, "`has` takes a field", "for example `has(input.context)`")),
            _ => Err(self.error(tree, "`has` takes one field", "for example `has(input.context)`")),
        }
    }

    /// Resolves a macro that iterates over a list or a map.
    fn loop_call(
        &mut self,
        tree: &IdedExpr,
        name: &str,
        range: &IdedExpr,
        arguments: &[IdedExpr],
        depth: usize,
    ) -> Result<Option<Loop>, CompileError> {
        let Some(kind) = loop_kind(name) else { return Ok(None) };
        let transforms = matches!(kind, LoopKind::Map | LoopKind::MapEntry) || name == "transformList";
        let (variables, condition, body) = match (arguments, transforms, kind) {
            ([variable, body], false, _) => (vec![variable], None, body),
            ([variable, condition, body], false, LoopKind::List) => (vec![variable], Some(condition), body),
            ([first, second, body], false, LoopKind::All | LoopKind::Exists | LoopKind::ExistsOne)
            | ([first, second, body], true, _) => (vec![first, second], None, body),
            ([first, second, condition, body], true, _) => (vec![first, second], Some(condition), body),
            (_, true, _) => {
                let message = format!("`{name}` takes two variable names and an expression");
                return Err(self.error(tree, message, format!("for example `input.{name}(i, v, v + 1)`")));
            }
            _ => {
                let message = format!("`{name}` takes a variable name and an expression");
                return Err(self.error(tree, message, "for example `events.all(e, e.type != \"error\")`"));
            }
        };
        let names = variables.iter().map(|name| self.variable_name(name)).collect::<Result<Vec<_>, _>>()?;
        if let [first, second] = names.as_slice()
            && first == second
        {
            return Err(self.error(variables[1], format!("two variables named `{second}`"), "use two names"));
        }
        let range = self.node(range, depth)?;
        let condition = condition.map(|condition| self.scoped(names.clone(), condition, depth)).transpose()?;
        let count = if names.len() == 1 { LoopVariables::One } else { LoopVariables::Two };
        let body = self.scoped(names, body, depth)?;
        Ok(Some(Loop { kind, variables: count, range, condition, body }))
    }

    /// Resolves an expression in which these variables are known.
    fn scoped(&mut self, names: Vec<String>, body: &IdedExpr, depth: usize) -> Result<Node, CompileError> {
        let outer = self.locals.len();
        self.locals.extend(names);
        let body = self.node(body, depth);
        self.locals.truncate(outer);
        body
    }

    fn variable_name(&self, variable: &IdedExpr) -> Result<String, CompileError> {
        match &variable.expr {
            Expr::Ident(name) if !name.starts_with('.') => Ok(name.clone()),
            _ => Err(self.error(variable, "expected a variable name", "write a name, such as `x`")),
        }
    }
}

fn loop_kind(name: &str) -> Option<LoopKind> {
    Some(match name {
        "all" => LoopKind::All,
        "exists" => LoopKind::Exists,
        "exists_one" | "existsOne" => LoopKind::ExistsOne,
        "filter" => LoopKind::Filter,
        "map" | "transformList" => LoopKind::List,
        "transformMap" => LoopKind::Map,
        "transformMapEntry" => LoopKind::MapEntry,
        _ => return None,
    })
}
