//! Whether an expression fails if a field is missing.
//!
//! The expression is evaluated with sets of possible outcomes. The missing field fails, and everything else may have any value. A
//! guard such as `has(x.name) && …` is false without the field, and decides.

use std::ops::BitOr;

use super::reads::{Path, literal, path_of};
use crate::node::{Kind, Loop, LoopKind, LoopVariables, Node, Pattern};
use crate::operations::Operator;

/// True if the expression can fail because this field is missing.
pub(crate) fn fails_without(root: &Node, missing: &Path) -> bool {
    let mut world = World { missing, paths: Vec::new(), outcomes: Vec::new() };
    world.outcomes(root).has(Outcomes::FAILURE)
}

/// The field that is missing, and the variables of the enclosing macros.
struct World<'p> {
    missing: &'p Path,
    paths: Vec<Option<Path>>,
    outcomes: Vec<Outcomes>,
}

impl World<'_> {
    fn outcomes(&mut self, node: &Node) -> Outcomes {
        match &node.kind {
            Kind::Bool(true) => Outcomes::TRUE,
            Kind::Bool(false) => Outcomes::FALSE,
            Kind::Null
            | Kind::Int(_)
            | Kind::Uint(_)
            | Kind::Double(_)
            | Kind::String(_)
            | Kind::Bytes(_)
            | Kind::Type(_)
            | Kind::Variable(_) => Outcomes::VALUE,
            Kind::Local(index) => self.outcomes.get(*index).copied().unwrap_or(Outcomes::ANY),
            Kind::List(elements) => self.failures(elements) | Outcomes::VALUE,
            Kind::Map(entries) => self.failures(entries.iter().flat_map(|(key, value)| [key, value])) | Outcomes::VALUE,
            Kind::Field { of, .. } => self.read(node, of),
            Kind::Item { of, at } => self.failures([&**at]) | self.read(node, of),
            Kind::Has { of, name } => self.has(of, name),
            Kind::And(left, right) => self.outcomes(left).and(self.outcomes(right)),
            Kind::Or(left, right) => self.outcomes(left).or(self.outcomes(right)),
            Kind::Not(operand) => self.outcomes(operand).not(),
            Kind::Negate(operand) => self.failures([&**operand]) | Outcomes::VALUE,
            Kind::If { condition, then, otherwise } => {
                let (is_true, is_false, failure) = self.outcomes(condition).branches();
                // A branch that the condition excludes cannot fail: this is how a guard with `? :` works.
                let then = if is_true { self.outcomes(then) } else { Outcomes::EMPTY };
                let otherwise = if is_false { self.outcomes(otherwise) } else { Outcomes::EMPTY };
                failure | then | otherwise
            }
            Kind::Binary { operator, left, right } => self.binary(*operator, left, right),
            // Other failures of a call are not due to the missing field.
            Kind::Call { arguments, .. } => self.failures(arguments) | Outcomes::ANY,
            Kind::Matches { text, pattern } => {
                let pattern = if let Pattern::Computed(pattern) = pattern { Some(&**pattern) } else { None };
                self.failures([&**text].into_iter().chain(pattern)) | Outcomes::BOOLEAN
            }
            Kind::Loop(body) => self.loop_outcomes(body),
            Kind::Bind { value, body } => {
                let (found, path) = (self.outcomes(value), path_of(value, &self.paths));
                self.with_local(found, path, body)
            }
        }
    }

    fn has(&mut self, of: &Node, name: &str) -> Outcomes {
        let found = self.outcomes(of);
        let is_missing = self.is_missing(path_of(of, &self.paths).map(|path| path.with(name)).as_ref());
        let present = if is_missing { Outcomes::FALSE } else { Outcomes::BOOLEAN };
        found.only(Outcomes::FAILURE) | found.when(Outcomes::ANY, present)
    }

    /// Returns a failure if one of the nodes can fail.
    fn failures<'n>(&mut self, nodes: impl IntoIterator<Item = &'n Node>) -> Outcomes {
        nodes.into_iter().fold(Outcomes::EMPTY, |all, node| all | self.outcomes(node).only(Outcomes::FAILURE))
    }

    fn is_missing(&self, path: Option<&Path>) -> bool {
        path == Some(self.missing)
    }

    fn read(&mut self, node: &Node, of: &Node) -> Outcomes {
        let found = self.outcomes(of);
        let is_missing = self.is_missing(path_of(node, &self.paths).as_ref());
        let read = if is_missing { Outcomes::FAILURE } else { Outcomes::ANY };
        found.only(Outcomes::FAILURE) | found.when(Outcomes::ANY, read)
    }

    fn binary(&mut self, operator: Operator, left: &Node, right: &Node) -> Outcomes {
        let failures = self.failures([left, right]);
        let in_object = || Some(path_of(right, &self.paths)?.with(literal(left)?));
        failures
            | match operator {
                // `"name" in x` is a test like `has`, and false without the field.
                Operator::In if self.is_missing(in_object().as_ref()) => Outcomes::FALSE,
                operator if operator.is_comparison() => Outcomes::BOOLEAN,
                _ => Outcomes::VALUE,
            }
    }

    fn loop_outcomes(&mut self, body: &Loop) -> Outcomes {
        let outer = self.paths.len();
        let failures = self.failures([&body.range]);
        // An element can be anything, and no field of a variable is known to be it.
        let count = if body.variables == LoopVariables::One { 1 } else { 2 };
        self.paths.extend(vec![None; count]);
        self.outcomes.extend(vec![Outcomes::ANY; count]);
        let (is_run, condition) = match &body.condition {
            Some(condition) => {
                let (is_true, _, failure) = self.outcomes(condition).branches();
                (is_true, failure)
            }
            None => (true, Outcomes::EMPTY),
        };
        let inner = if is_run { self.failures([&body.body]) } else { Outcomes::EMPTY };
        self.paths.truncate(outer);
        self.outcomes.truncate(outer);
        let value = match body.kind {
            LoopKind::All | LoopKind::Exists | LoopKind::ExistsOne => Outcomes::BOOLEAN,
            LoopKind::Filter | LoopKind::List | LoopKind::Map | LoopKind::MapEntry => Outcomes::VALUE,
        };
        failures | condition | inner | value
    }

    fn with_local(&mut self, outcomes: Outcomes, path: Option<Path>, body: &Node) -> Outcomes {
        let outer = self.paths.len();
        self.paths.push(path);
        self.outcomes.push(outcomes);
        let found = self.outcomes(body);
        self.paths.truncate(outer);
        self.outcomes.truncate(outer);
        found
    }
}

/// A set of possible outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outcomes(u8);

impl Outcomes {
    pub(super) const EMPTY: Self = Self(0);
    pub(super) const TRUE: Self = Self(1);
    pub(super) const FALSE: Self = Self(2);
    /// A value that is not a boolean.
    pub(super) const VALUE: Self = Self(4);
    /// A failure.
    pub(super) const FAILURE: Self = Self(16);
    pub(super) const BOOLEAN: Self = Self(1 | 2);
    /// A value of an unknown type.
    pub(super) const ANY: Self = Self(1 | 2 | 4);

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn only(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns `then` if this set has one of the others.
    pub(super) fn when(self, other: Self, then: Self) -> Self {
        if self.has(other) { then } else { Self::EMPTY }
    }

    /// The outcomes of a part that must be a boolean. Values of other types are taken for unknown booleans.
    fn boolean(self) -> Self {
        // A value of an unknown type may be either boolean, and a wrong type is reported elsewhere.
        let found = self.only(Self::BOOLEAN | Self::FAILURE);
        if found.has(Self::BOOLEAN) || !self.has(Self::VALUE) { found } else { found | Self::BOOLEAN }
    }

    pub(super) fn not(self) -> Self {
        let operand = self.boolean();
        operand.when(Self::TRUE, Self::FALSE) | operand.when(Self::FALSE, Self::TRUE) | operand.only(Self::FAILURE)
    }

    /// `&&`: one operand that is false decides, even if the other one fails.
    pub(super) fn and(self, other: Self) -> Self {
        let (left, right) = (self.boolean(), other.boolean());
        let can_fail = left.has(Self::FAILURE) && right.has(Self::TRUE | Self::FAILURE)
            || right.has(Self::FAILURE) && left.has(Self::TRUE);
        let can_be_true = left.has(Self::TRUE) && right.has(Self::TRUE);
        (left | right).only(Self::FALSE)
            | if can_fail { Self::FAILURE } else { Self::EMPTY }
            | if can_be_true { Self::TRUE } else { Self::EMPTY }
    }

    /// `||`: one operand that is true decides, even if the other one fails.
    pub(super) fn or(self, other: Self) -> Self {
        // By De Morgan, so that one table of outcomes is enough.
        self.not().and(other.not()).not()
    }

    /// Splits the outcomes of a condition into: true, false, failure.
    pub(super) fn branches(self) -> (bool, bool, Self) {
        let found = self.boolean();
        (found.has(Self::TRUE), found.has(Self::FALSE), found.only(Self::FAILURE))
    }
}

impl BitOr for Outcomes {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::inspect::Path;
    use crate::{Expression, ReadKind};

    /// Returns the fields of `call.args` without which an expression can fail.
    fn failing(text: &str) -> Vec<String> {
        let expression = Expression::compile(text, &["call", "run"]).unwrap_or_else(|error| panic!("{text}: {error}"));
        let reads = expression.reads().into_iter().filter(|read| read.kind == ReadKind::Required);
        let mut paths: Vec<Path> = reads.map(|read| read.path).collect();
        paths.retain(|path| path.fields.len() > 1 && path.fields[0] == "args" && expression.fails_without(path));
        paths.sort();
        paths.dedup();
        paths.iter().map(|path| path.fields[1..].join(".")).collect()
    }

    #[test]
    fn reads_without_a_guard_fail() {
        for (text, expected) in [
            ("call.args.path == 'x'", vec!["path"]),
            ("call.args['path'].startsWith('/etc')", vec!["path"]),
            ("call['args']['path'] in ['x']", vec!["path"]),
            ("call.tool_name == 'x' && call.args.path == 'y'", vec!["path"]),
            ("has(call.args.path) || call.args.path == 'x'", vec!["path"]),
            ("has(call.args.a) && call.args.b == 1", vec!["b"]),
            ("has(call.args.a.b) && call.args.a.b == 1", vec!["a"]),
            ("has(call.args.a) && call.args.a.b == 1", vec!["a.b"]),
            ("!has(call.args.a) && call.args.a == 1", vec!["a"]),
            ("call.args.paths.exists(p, p == 'x')", vec!["paths"]),
            ("call.risk_class.exists(c, c == call.args.c)", vec!["c"]),
            ("cel.bind(p, call.args.path, p == 'x')", vec!["path"]),
            ("cel.bind(a, call.args, a.path == 'x')", vec!["path"]),
            ("size([call.args.a]) == 1 && {'k': call.args.b}.k == 1", vec!["a", "b"]),
            ("(call.tool_name == 'x' ? call.args.a : call.args.b) == 1", vec!["a", "b"]),
            ("call.args.text.matches('x') || run.env == 'ci'", vec!["text"]),
        ] {
            assert_eq!(failing(text), expected, "{text}");
        }
    }

    #[test]
    fn guarded_reads_do_not_fail() {
        for text in [
            "has(call.args.path) && call.args.path == 'x'",
            "call.args.path == 'x' && has(call.args.path)",
            "has(call.args.path) && run.env != 'dev' && call.args['path'] == 'x'",
            "has(call.args.a) && has(call.args.b) && (call.args.a == 1 || call.args.b == 1)",
            "!has(call.args.a) || call.args.a == 1",
            "!(has(call.args.a) && call.args.a == 1)",
            "has(call.args.a) ? call.args.a == 1 : false",
            "'path' in call.args && call.args.path == 'x'",
            "has(call.args.a) && has(call.args.a.b) && call.args.a.b == 1",
            "has(call.args.paths) && call.args.paths.all(p, p.startsWith('/tmp') && p.size() < 9)",
            "cel.bind(a, call.args, has(a.path) && a.path == 'x')",
            "cel.bind(p, call.args.path, has(call.args.path) && p == 'x')",
            "call.args.exists(k, call.args[k] == 1)",
            "[1].filter(x, has(call.args.a) && call.args.a == x).size() == 1",
            "[1].map(x, has(call.args.a), call.args.a).size() == 1",
        ] {
            assert_eq!(failing(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn nested_expressions_are_inspected_in_a_time_that_grows_with_their_text() {
        let nested = (0..40).fold("call.args.a".to_owned(), |text, _| format!("{text}.trim()"));
        assert_eq!(failing(&format!("{nested} == 'x'")), ["a"]);
        let bound = (0..30).fold("x".to_owned(), |text, _| format!("cel.bind(x, x + x, {text})"));
        assert_eq!(failing(&format!("cel.bind(x, call.args.a, {bound} == 'x')")), ["a"]);
    }
}
