//! The resolved expression tree: names are indexes, and literal regular expressions are compiled once.

use std::ops::Range;

use regex::{Regex, RegexBuilder};

use crate::functions::Function;
use crate::operations::Operator;
use crate::values::Type;

/// A node of the tree.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    /// The byte range of the node in the text.
    pub(crate) span: Range<usize>,
}

/// What a node does.
#[derive(Debug)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Box<str>),
    Bytes(Box<[u8]>),
    Type(Type),
    List(Vec<Node>),
    /// Keys and values.
    Map(Vec<(Node, Node)>),
    /// A variable, by its index in the list that the expression is compiled with.
    Variable(usize),
    /// The variable of an enclosing macro, counted from the outermost.
    Local(usize),
    /// `of.name`
    Field {
        of: Box<Node>,
        name: Box<str>,
    },
    /// `has(of.name)`
    Has {
        of: Box<Node>,
        name: Box<str>,
    },
    /// `of[at]`
    Item {
        of: Box<Node>,
        at: Box<Node>,
    },
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Negate(Box<Node>),
    /// `if ? then : otherwise`
    If {
        condition: Box<Node>,
        then: Box<Node>,
        otherwise: Box<Node>,
    },
    Binary {
        operator: Operator,
        left: Box<Node>,
        right: Box<Node>,
    },
    Call {
        function: &'static Function,
        arguments: Vec<Node>,
    },
    Matches {
        text: Box<Node>,
        pattern: Pattern,
    },
    Loop(Box<Loop>),
    /// `cel.bind(name, value, body)`
    Bind {
        value: Box<Node>,
        body: Box<Node>,
    },
}

/// A macro over the elements of a list or the entries of a map.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) kind: LoopKind,
    pub(crate) variables: LoopVariables,
    pub(crate) range: Node,
    /// Selects the elements that are mapped.
    pub(crate) condition: Option<Node>,
    pub(crate) body: Node,
}

/// The variables of a macro.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopVariables {
    /// The element of a list, or the key of a map.
    One,
    /// The index and the element of a list, or the key and the value of a map.
    Two,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopKind {
    All,
    Exists,
    ExistsOne,
    Filter,
    /// `map` and `transformList`.
    List,
    /// `transformMap`: keys stay, values are transformed.
    Map,
    /// `transformMapEntry`: the body is a map, whose entries are added.
    MapEntry,
}

/// A regular expression: a literal, which is compiled once, or a computed string.
#[derive(Debug)]
pub(crate) enum Pattern {
    Literal(Box<Matcher>),
    Computed(Box<Node>),
}

/// Maximum size of a compiled regular expression, in bytes.
const MAX_COMPILED_BYTES: usize = 256 * 1024;

/// Compiled size up to which a match is cheap, in bytes.
const SMALL_BYTES: usize = 16 * 1024;

/// Cost of a match with a larger regular expression, relative to a small one.
const LARGE_WEIGHT: u64 = (MAX_COMPILED_BYTES / SMALL_BYTES) as u64;

/// Maximum size of the cache for matching, in bytes.
const MAX_DFA_BYTES: usize = 2 * 1024 * 1024;

/// A compiled regular expression, and the cost of a match relative to a small one.
#[derive(Debug)]
pub(crate) struct Matcher {
    regex: Regex,
    weight: u64,
}

/// An invalid or too large regular expression. The message is one line.
#[derive(Debug, thiserror::Error)]
#[error("not a valid regular expression: {0}")]
pub(crate) struct PatternError(String);

impl Matcher {
    /// Compiles a regular expression.
    pub(crate) fn compile(pattern: &str) -> Result<Self, PatternError> {
        let build = |limit: usize| RegexBuilder::new(pattern).size_limit(limit).dfa_size_limit(MAX_DFA_BYTES).build();
        // The worst-case time of a match grows with the compiled size, so a large one costs more steps.
        let small = build(SMALL_BYTES).map(|regex| Self { regex, weight: 1 });
        let matcher = small.or_else(|_| build(MAX_COMPILED_BYTES).map(|regex| Self { regex, weight: LARGE_WEIGHT }));
        matcher.map_err(|error| {
            // The message of the regex crate has several lines, of which the last is the reason.
            let text = error.to_string();
            let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            PatternError(last.trim().trim_start_matches("error: ").to_owned())
        })
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }
}
