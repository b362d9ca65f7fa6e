//! From a text to a tree. The parser is a library's, and is trusted with nothing: the text is short, the stack is large, the
//! time is limited, and a panic is an error like any other.

use std::ops::Range;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, SourceInfo, operators};
use cel::parser::ParseErrors;
use regex::RegexBuilder;

use crate::node::{Each, Function, Matcher, Node, Operator, Pattern};

/// Longest expression, in bytes.
pub const LONGEST: usize = 4096;

/// How deep an expression may be nested, in levels of its tree.
pub const NESTED_UP_TO: usize = 64;

/// Stack of the parser, which calls itself a good dozen times for each level.
const STACK: usize = 64 * 1024 * 1024;

/// The parser takes milliseconds; one that has gone astray is not waited for.
const PARSED_WITHIN: Duration = Duration::from_secs(20);

/// Largest compiled form of a regular expression, in bytes.
const REGEX_UP_TO: usize = 256 * 1024;

/// A compiled form up to which a match is cheap, in bytes, and how much more one costs beyond it.
const SMALL: usize = 16 * 1024;
const LARGE_WEIGHT: u64 = (REGEX_UP_TO / SMALL) as u64;

/// Largest cache that matching may make of it, in bytes.
const DFA_UP_TO: usize = 2 * 1024 * 1024;

/// The functions, as messages list them.
const FUNCTIONS: &str = "size, contains, startsWith, endsWith, matches, lowerAscii, upperAscii, int, double, string, has, \
                         all, exists, exists_one, filter, map";

/// Why a text is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CompileError {
    /// Where in the text, in bytes.
    pub span: Range<usize>,
    /// What is wrong there.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

pub(crate) fn compile(source: &str, variables: &[&str]) -> Result<Node, CompileError> {
    let whole =
        |message: String, remedy: &str| CompileError { span: 0..source.len(), message, remedy: remedy.to_owned() };
    if source.len() > LONGEST {
        let message = format!("the expression has {} bytes; up to {LONGEST} are allowed", source.len());
        return Err(CompileError { span: 0..0, ..whole(message, "write several expressions, which all have to hold") });
    }
    if source.trim().is_empty() {
        return Err(whole("the expression is empty".to_owned(), "write what has to hold"));
    }
    let astray = || whole("the expression cannot be parsed".to_owned(), "write it in a simpler way");
    let (sender, receiver) = channel();
    let (text, names) = (source.to_owned(), variables.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
    let work = move || {
        // The receiver may have given up; then nobody needs the answer.
        let _ = sender.send(parse(&text, &names));
    };
    let Ok(parser) = thread::Builder::new().name("expression".to_owned()).stack_size(STACK).spawn(work) else {
        return Err(astray());
    };
    match receiver.recv_timeout(PARSED_WITHIN) {
        Ok(parsed) => {
            let _ = parser.join();
            parsed
        }
        // It panicked, or is left behind.
        Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => Err(astray()),
    }
}

fn parse(source: &str, variables: &[String]) -> Result<Node, CompileError> {
    // An environment without macros leaves their calls as they are written, and so we see what they mean.
    let parser = cel::Env::default().parser();
    let (tree, places) = parser.parse_with_source_info(source).map_err(|errors| syntax(source, &errors))?;
    Resolver { source, places, variables, locals: Vec::new() }.node(&tree, 0)
}

/// The first of the parser's errors, without the long list of what it would have liked better.
fn syntax(source: &str, errors: &ParseErrors) -> CompileError {
    let first = errors.errors.iter().min_by_key(|error| error.pos);
    let (position, message) = first.map_or(((1, 1), ""), |error| (error.pos, error.msg.as_str()));
    let start = offset(source, position);
    let length = source[start..].chars().next().map_or(0, char::len_utf8);
    let message = message.strip_prefix("Syntax error: ").unwrap_or(message);
    let message = message.split(" expecting ").next().unwrap_or(message);
    CompileError {
        span: start..start + length,
        message: format!("it cannot be parsed: {message}"),
        remedy: "correct the CEL there".to_owned(),
    }
}

/// The byte at a line and a column, both counted from 1, columns in characters.
fn offset(source: &str, (line, column): (isize, isize)) -> usize {
    let before = usize::try_from(line - 1).unwrap_or(0);
    let start: usize = source.split_inclusive('\n').take(before).map(str::len).sum();
    let within = usize::try_from(column - 1).unwrap_or(0);
    source[start..].char_indices().nth(within).map_or(source.len(), |(place, _)| start + place)
}

struct Resolver<'s> {
    source: &'s str,
    places: SourceInfo,
    variables: &'s [String],
    /// The variables of the macros around the place, the outermost first.
    locals: Vec<String>,
}

impl Resolver<'_> {
    fn error(&self, at: &IdedExpr, message: impl Into<String>, remedy: impl Into<String>) -> CompileError {
        CompileError { span: self.span(at.id), message: message.into(), remedy: remedy.into() }
    }

    /// The token that a part of the expression was made of, in bytes; the whole text where that is not known.
    fn span(&self, id: u64) -> Range<usize> {
        let token = self.places.offset_for(id).and_then(|(start, last)| {
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
        if depth >= NESTED_UP_TO {
            let message = format!("the expression is nested deeper than {NESTED_UP_TO} levels");
            return Err(self.error(tree, message, "write several expressions, which all have to hold"));
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
                    EntryExpr::StructField(_) => Err(self.error(tree, "a message cannot be made here", "write a map")),
                };
                Node::Map(map.entries.iter().map(&mut entry).collect::<Result<_, _>>()?)
            }
            Expr::Call(call) => self.call(tree, call, deeper)?,
            Expr::Struct(_) => return Err(self.error(tree, "a message cannot be made here", "write a map")),
            Expr::Comprehension(_) | Expr::Unspecified => {
                return Err(self.error(tree, "it cannot be parsed", "correct the CEL there"));
            }
        })
    }

    fn literal(&self, tree: &IdedExpr, literal: &LiteralValue) -> Result<Node, CompileError> {
        Ok(match literal {
            LiteralValue::Null => Node::Null,
            LiteralValue::Boolean(value) => Node::Bool(*value.inner()),
            LiteralValue::Int(value) => Node::Int(*value.inner()),
            // JSON knows one kind of number, so there is one kind of whole number here.
            LiteralValue::UInt(value) => match i64::try_from(*value.inner()) {
                Ok(value) => Node::Int(value),
                Err(_) => return Err(self.error(tree, "the number is too large", "write a smaller one")),
            },
            LiteralValue::Double(value) => Node::Double(*value.inner()),
            LiteralValue::String(value) => Node::Text(value.inner().to_owned()),
            LiteralValue::Bytes(_) => {
                return Err(self.error(tree, "JSON has no bytes", "write a text, without the `b` before it"));
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
        let message = format!("there is no variable `{name}`");
        Err(self.error(tree, message, format!("known here: {}", self.variables.join(", "))))
    }

    fn call(&mut self, tree: &IdedExpr, call: &CallExpr, depth: usize) -> Result<Node, CompileError> {
        let arguments: Vec<&IdedExpr> = call.target.as_deref().into_iter().chain(&call.args).collect();
        if let Some(target) = &call.target
            && let Some(what) = each(&call.func_name)
        {
            return self.macro_call(tree, what, target, &call.args, depth);
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
                _ => Err(self.error(argument, "`has` takes a field", "write it such as `has(input.context)`")),
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
                let function = function(name, arguments.len(), call.target.is_some());
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
        what: Each,
        target: &IdedExpr,
        arguments: &[IdedExpr],
        depth: usize,
    ) -> Result<Node, CompileError> {
        match (what, arguments) {
            (_, [variable, body]) => {
                let (range, mut parts) = self.each(target, variable, &[body], depth)?;
                let body = Box::new(parts.swap_remove(0));
                Ok(Node::Each { what, range, body })
            }
            (Each::Map, [variable, condition, body]) => {
                let (range, mut parts) = self.each(target, variable, &[condition, body], depth)?;
                let (body, condition) = (Box::new(parts.swap_remove(1)), Box::new(parts.swap_remove(0)));
                Ok(Node::MapWhere { range, condition, body })
            }
            _ => {
                let message = format!("`{}` takes a name and what is to be worked out with it", what.as_str());
                Err(self.error(tree, message, "write it such as `events.all(e, e.type != \"error\")`"))
            }
        }
    }

    fn no_function(&self, tree: &IdedExpr, name: &str) -> CompileError {
        let message = match FUNCTIONS.split(", ").find(|known| *known == name) {
            Some(known) => format!("`{known}` is not written like this"),
            None => format!("there is no function `{name}`"),
        };
        let remedy = match name {
            "len" | "length" | "count" => "write `size(x)`".to_owned(),
            "lower" | "toLower" => "write `x.lowerAscii()`".to_owned(),
            _ => format!("known here: {FUNCTIONS}"),
        };
        CompileError { span: self.name(tree, name), message, remedy }
    }

    /// The name of a function, which stands before the token that its call was made of.
    fn name(&self, tree: &IdedExpr, name: &str) -> Range<usize> {
        let token = self.span(tree.id);
        let end = self.source[..token.start].trim_end().len();
        match end.checked_sub(name.len()) {
            Some(start) if self.source.get(start..end) == Some(name) => start..end,
            _ => token,
        }
    }

    /// The list or map that a macro goes over, and what it works out for each element.
    fn each(
        &mut self,
        range: &IdedExpr,
        variable: &IdedExpr,
        parts: &[&IdedExpr],
        depth: usize,
    ) -> Result<(Box<Node>, Vec<Node>), CompileError> {
        let Expr::Ident(name) = &variable.expr else {
            return Err(self.error(variable, "a name for the elements is expected here", "write a name, such as `x`"));
        };
        let range = self.boxed(range, depth)?;
        self.locals.push(name.clone());
        let parts = parts.iter().map(|part| self.node(part, depth)).collect::<Result<_, _>>();
        self.locals.pop();
        Ok((range, parts?))
    }

    fn pattern(&mut self, pattern: &IdedExpr, depth: usize) -> Result<Pattern, CompileError> {
        let Expr::Literal(LiteralValue::String(text)) = &pattern.expr else {
            return Ok(Pattern::Worked(self.boxed(pattern, depth)?));
        };
        match matcher(text.inner()) {
            Ok(matcher) => Ok(Pattern::Fixed(Box::new(matcher))),
            Err(message) => {
                let message = format!("this is no regular expression that can be used: {message}");
                Err(self.error(pattern, message, "correct it; backslashes are written twice, or in r'…'"))
            }
        }
    }
}

/// A regular expression of bounded size; the error is one line.
pub(crate) fn matcher(pattern: &str) -> Result<Matcher, String> {
    let build = |limit: usize| RegexBuilder::new(pattern).size_limit(limit).dfa_size_limit(DFA_UP_TO).build();
    // How long a match takes at worst goes with the size of what was compiled.
    let small = build(SMALL).map(|regex| Matcher { regex, weight: 1 });
    let matcher = small.or_else(|_| build(REGEX_UP_TO).map(|regex| Matcher { regex, weight: LARGE_WEIGHT }));
    matcher.map_err(|error| {
        let text = error.to_string();
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        last.trim().trim_start_matches("error: ").to_owned()
    })
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

/// The macro of a name.
fn each(name: &str) -> Option<Each> {
    Some(match name {
        "all" => Each::All,
        "exists" => Each::Exists,
        "exists_one" | "existsOne" => Each::ExistsOne,
        "filter" => Each::Filter,
        "map" => Each::Map,
        _ => return None,
    })
}

/// The function of a name; `arguments` counts the target too.
fn function(name: &str, arguments: usize, is_method: bool) -> Option<Function> {
    Some(match (name, arguments, is_method) {
        ("size", 1, _) => Function::Size,
        ("contains", 2, true) => Function::Contains,
        ("startsWith", 2, true) => Function::StartsWith,
        ("endsWith", 2, true) => Function::EndsWith,
        ("lowerAscii", 1, true) => Function::LowerAscii,
        ("upperAscii", 1, true) => Function::UpperAscii,
        ("int", 1, false) => Function::Int,
        ("double", 1, false) => Function::Double,
        ("string", 1, false) => Function::String,
        _ => return None,
    })
}
