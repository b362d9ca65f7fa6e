//! Resolves a parsed expression: names become indexes, macros become loops, and literal regular expressions are compiled.

use std::ops::Range;

use crate::functions::{self, Style};
use crate::node::Matcher;
use crate::node::{Kind, Loop, LoopKind, LoopVariables, Node, Pattern};
use crate::parse::{self, Binary, Literal, MAX_DEPTH, Tree, TreeKind};
use crate::values::Type;

/// The macros, and the functions that are not in the table because they do not evaluate all of their arguments first.
const MACROS: [&str; 12] = [
    "has",
    "all",
    "exists",
    "exists_one",
    "existsOne",
    "filter",
    "map",
    "transformList",
    "transformMap",
    "transformMapEntry",
    "cel.bind",
    "matches",
];

/// Smallest similarity of a name that is suggested.
const SIMILAR: f64 = 0.75;

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

/// Parses an expression, and resolves it against the names of the variables.
pub(crate) fn compile(source: &str, variables: &[&str]) -> Result<Node, CompileError> {
    Resolver { variables, locals: Vec::new() }.node(&parse::parse(source)?, 0)
}

struct Resolver<'s> {
    variables: &'s [&'s str],
    /// The variables of the enclosing macros, outermost first.
    locals: Vec<String>,
}

fn error(at: &Tree, message: impl Into<String>, remedy: impl Into<String>) -> CompileError {
    CompileError { span: at.token.clone(), message: message.into(), remedy: remedy.into() }
}

impl Resolver<'_> {
    fn boxed(&mut self, tree: &Tree, depth: usize) -> Result<Box<Node>, CompileError> {
        self.node(tree, depth).map(Box::new)
    }

    fn node(&mut self, tree: &Tree, depth: usize) -> Result<Node, CompileError> {
        if depth >= MAX_DEPTH {
            return Err(parse::too_deep(tree.token.clone()));
        }
        // The depth bounds the stack of everything that walks over the nodes later.
        Ok(Node { kind: self.kind(tree, depth + 1)?, span: tree.span.clone() })
    }

    fn kind(&mut self, tree: &Tree, deeper: usize) -> Result<Kind, CompileError> {
        Ok(match &tree.kind {
            TreeKind::Literal(literal) => literal_kind(literal),
            TreeKind::Name(name) => self.name(tree, name)?,
            TreeKind::Field(of, name) => match self.qualified_type(tree) {
                Some(kind) => Kind::Type(kind),
                None => Kind::Field { of: self.boxed(of, deeper)?, name: name.as_str().into() },
            },
            TreeKind::Item(of, at) => Kind::Item { of: self.boxed(of, deeper)?, at: self.boxed(at, deeper)? },
            TreeKind::List(elements) => {
                Kind::List(elements.iter().map(|element| self.node(element, deeper)).collect::<Result<_, _>>()?)
            }
            TreeKind::Map(entries) => {
                let entry = |(key, value)| Ok((self.node(key, deeper)?, self.node(value, deeper)?));
                Kind::Map(entries.iter().map(|(key, value)| (key, value)).map(entry).collect::<Result<_, _>>()?)
            }
            TreeKind::Not(operand) => Kind::Not(self.boxed(operand, deeper)?),
            TreeKind::Negate(operand) => Kind::Negate(self.boxed(operand, deeper)?),
            TreeKind::Binary(operator, left, right) => {
                let (left, right) = (self.boxed(left, deeper)?, self.boxed(right, deeper)?);
                match *operator {
                    Binary::And => Kind::And(left, right),
                    Binary::Or => Kind::Or(left, right),
                    Binary::Operator(operator) => Kind::Binary { operator, left, right },
                }
            }
            TreeKind::If(parts) => {
                let [condition, then, otherwise] = &**parts;
                Kind::If {
                    condition: self.boxed(condition, deeper)?,
                    then: self.boxed(then, deeper)?,
                    otherwise: self.boxed(otherwise, deeper)?,
                }
            }
            TreeKind::Call { target, name, arguments } => {
                self.call(tree, &Call { target: target.as_deref(), name, arguments }, deeper)?
            }
        })
    }

    /// Resolves a variable or a type. A leading point skips the variables of macros.
    fn name(&self, tree: &Tree, name: &str) -> Result<Kind, CompileError> {
        // The point is the syntax of CEL for a name at the root of all names.
        let (name, global) = match name.strip_prefix('.') {
            Some(name) => (name, true),
            None => (name, false),
        };
        // The innermost variable hides others with its name.
        if let Some(local) = self.locals.iter().rposition(|local| local == name && !global) {
            return Ok(Kind::Local(local));
        }
        // After the locals: `cel.bind` and the loops may hide a variable.
        if let Some(variable) = self.variables.iter().position(|variable| *variable == name) {
            return Ok(Kind::Variable(variable));
        }
        // Last, so that a variable may have the name of a type.
        if let Some(kind) = Type::named(name) {
            return Ok(Kind::Type(kind));
        }
        let message = format!("unknown variable `{name}`");
        Err(error(tree, message, format!("known variables: {}", self.variables.join(", "))))
    }

    /// Returns the type with a name such as `google.protobuf.Timestamp`, unless its first part is a variable.
    fn qualified_type(&self, tree: &Tree) -> Option<Type> {
        let (mut parts, mut tree) = (Vec::new(), tree);
        while let TreeKind::Field(of, name) = &tree.kind {
            parts.push(name.as_str());
            tree = of;
        }
        let TreeKind::Name(first) = &tree.kind else { return None };
        let mut known = self.locals.iter().map(String::as_str).chain(self.variables.iter().copied());
        // A variable named `google` with fields is then still reachable.
        if known.any(|variable| variable == first) {
            return None;
        }
        parts.push(first);
        parts.reverse();
        Type::named(&parts.join("."))
    }

    fn call(&mut self, tree: &Tree, call: &Call<'_>, depth: usize) -> Result<Kind, CompileError> {
        if let Some(kind) = self.macro_call(tree, call, depth)? {
            return Ok(kind);
        }
        // The target of a call such as `math.abs(x)` is the first part of the function's name.
        if let Some(Tree { kind: TreeKind::Name(prefix), .. }) = call.target {
            let name = format!("{prefix}.{}", call.name);
            if functions::exists(&name) {
                return self.function(tree, &name, Style::Global, &call.arguments.iter().collect::<Vec<_>>(), depth);
            }
        }
        let style = if call.target.is_some() { Style::Method } else { Style::Global };
        let arguments: Vec<&Tree> = call.target.into_iter().chain(call.arguments).collect();
        match (call.name, arguments.as_slice()) {
            ("matches", [text, pattern]) => {
                Ok(Kind::Matches { text: self.boxed(text, depth)?, pattern: self.pattern(pattern, depth)? })
            }
            (name, arguments) => self.function(tree, name, style, arguments, depth),
        }
    }

    fn function(
        &mut self,
        tree: &Tree,
        name: &str,
        style: Style,
        arguments: &[&Tree],
        depth: usize,
    ) -> Result<Kind, CompileError> {
        // A leading point names the function itself.
        let plain = name.strip_prefix('.').unwrap_or(name);
        let function = functions::find(plain, style, arguments.len()).ok_or_else(|| no_function(tree, name))?;
        let arguments = arguments.iter().map(|argument| self.node(argument, depth)).collect::<Result<_, _>>()?;
        Ok(Kind::Call { function, arguments })
    }

    fn pattern(&mut self, pattern: &Tree, depth: usize) -> Result<Pattern, CompileError> {
        let TreeKind::Literal(Literal::String(text)) = &pattern.kind else {
            // A computed pattern is compiled at each evaluation, at the expense of its budget.
            return Ok(Pattern::Computed(self.boxed(pattern, depth)?));
        };
        match Matcher::compile(text) {
            // Compiled once, and an invalid one is reported before any case runs.
            Ok(matcher) => Ok(Pattern::Literal(Box::new(matcher))),
            Err(invalid) => {
                Err(error(pattern, invalid.to_string(), "correct it; write backslashes twice, or use r'…'"))
            }
        }
    }

    /// Resolves a macro. Returns `None` for a function.
    fn macro_call(&mut self, tree: &Tree, call: &Call<'_>, depth: usize) -> Result<Option<Kind>, CompileError> {
        let Some(target) = call.target else {
            return if call.name == "has" { self.has(tree, call.arguments, depth).map(Some) } else { Ok(None) };
        };
        let of_cel = matches!(&target.kind, TreeKind::Name(name) if name == "cel");
        if let ("bind", [variable, value, body], true) = (call.name, call.arguments, of_cel) {
            // The value is resolved first: it does not know the new variable.
            let name = variable_name(variable)?;
            let value = self.boxed(value, depth)?;
            return Ok(Some(Kind::Bind { value, body: Box::new(self.scoped(vec![name], body, depth)?) }));
        }
        let found = self.loop_call(tree, call.name, target, call.arguments, depth)?;
        Ok(found.map(|found| Kind::Loop(Box::new(found))))
    }

    fn has(&mut self, tree: &Tree, arguments: &[Tree], depth: usize) -> Result<Kind, CompileError> {
        match arguments {
            [Tree { kind: TreeKind::Field(of, name), .. }] => {
                Ok(Kind::Has { of: self.boxed(of, depth)?, name: name.as_str().into() })
            }
            [argument] => Err(error(argument, "`has` takes a field", "for example `has(input.context)`")),
            _ => Err(error(tree, "`has` takes one field", "for example `has(input.context)`")),
        }
    }

    /// Resolves a macro that iterates over a list or a map.
    fn loop_call(
        &mut self,
        tree: &Tree,
        name: &str,
        range: &Tree,
        arguments: &[Tree],
        depth: usize,
    ) -> Result<Option<Loop>, CompileError> {
        let Some(kind) = loop_kind(name) else { return Ok(None) };
        // `map` and `transformList` make the same loop from different numbers of arguments.
        let transforms = matches!(kind, LoopKind::Map | LoopKind::MapEntry) || name == "transformList";
        let (variables, condition, body) = match (arguments, transforms, kind) {
            ([variable, body], false, _) => (vec![variable], None, body),
            ([variable, condition, body], false, LoopKind::List) => (vec![variable], Some(condition), body),
            ([first, second, body], false, LoopKind::All | LoopKind::Exists | LoopKind::ExistsOne)
            | ([first, second, body], true, _) => (vec![first, second], None, body),
            ([first, second, condition, body], true, _) => (vec![first, second], Some(condition), body),
            (_, true, _) => {
                let message = format!("`{name}` takes two variable names and an expression");
                return Err(error(tree, message, format!("for example `input.{name}(i, v, v + 1)`")));
            }
            _ => {
                let message = format!("`{name}` takes a variable name and an expression");
                return Err(error(tree, message, "for example `events.all(e, e.type != \"error\")`"));
            }
        };
        let names = variables.iter().map(|name| variable_name(name)).collect::<Result<Vec<_>, _>>()?;
        if let [first, second] = names.as_slice()
            && first == second
        {
            return Err(error(variables[1], format!("two variables named `{second}`"), "use two names"));
        }
        // The range does not know the variables of the macro.
        let range = self.node(range, depth)?;
        let condition = condition.map(|condition| self.scoped(names.clone(), condition, depth)).transpose()?;
        let count = if names.len() == 1 { LoopVariables::One } else { LoopVariables::Two };
        let body = self.scoped(names, body, depth)?;
        Ok(Some(Loop { kind, variables: count, range, condition, body }))
    }

    /// Resolves an expression in which these variables are known.
    fn scoped(&mut self, names: Vec<String>, body: &Tree, depth: usize) -> Result<Node, CompileError> {
        let outer = self.locals.len();
        self.locals.extend(names);
        let body = self.node(body, depth);
        // Also after an error, so that the messages of outer parts name the right variables.
        self.locals.truncate(outer);
        body
    }
}

/// A call as it is written.
struct Call<'t> {
    target: Option<&'t Tree>,
    name: &'t str,
    arguments: &'t [Tree],
}

fn variable_name(variable: &Tree) -> Result<String, CompileError> {
    match &variable.kind {
        TreeKind::Name(name) if !name.starts_with('.') => Ok(name.clone()),
        _ => Err(error(variable, "expected a variable name", "write a name, such as `x`")),
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

fn no_function(tree: &Tree, name: &str) -> CompileError {
    // A known name with other arguments is not a typing error, so another name would mislead.
    let known = functions::exists(name) || MACROS.contains(&name);
    let message =
        if known { format!("`{name}` does not take these arguments") } else { format!("unknown function `{name}`") };
    let remedy = match name {
        "length" | "count" => "write `size(x)`".to_owned(),
        "lower" | "toLower" => "write `x.lowerAscii()`".to_owned(),
        _ if known => "the documentation of expressions lists the arguments of each function".to_owned(),
        _ => similar(name).map_or_else(
            || "the documentation of expressions lists all functions".to_owned(),
            |similar| format!("did you mean `{similar}`?"),
        ),
    };
    CompileError { span: tree.token.clone(), message, remedy }
}

/// Returns the known name that is most similar.
fn similar(name: &str) -> Option<&'static str> {
    let similarity = |known: &str| strsim::jaro_winkler(&known.to_lowercase(), &name.to_lowercase());
    let candidates = functions::names().chain(MACROS).map(|known| (similarity(known), known));
    let best = candidates.max_by(|(left, _), (right, _)| left.total_cmp(right))?;
    // A suggestion that is not similar misleads more than none.
    (best.0 >= SIMILAR).then_some(best.1)
}

fn literal_kind(literal: &Literal) -> Kind {
    match literal {
        Literal::Null => Kind::Null,
        Literal::Bool(value) => Kind::Bool(*value),
        Literal::Int(value) => Kind::Int(*value),
        Literal::Uint(value) => Kind::Uint(*value),
        Literal::Double(value) => Kind::Double(*value),
        Literal::String(value) => Kind::String(value.as_str().into()),
        Literal::Bytes(value) => Kind::Bytes(value.as_slice().into()),
    }
}
