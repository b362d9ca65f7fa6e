//! The tree that is evaluated: names are resolved, macros are what they mean, and fixed regular expressions are compiled.

use regex::Regex;

/// A part of an expression.
#[derive(Debug)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    /// One of the variables that the expression is evaluated over.
    Variable(usize),
    /// The variable of a macro around it, counted from the outermost.
    Local(usize),
    /// `of.name`
    Field {
        of: Box<Node>,
        name: String,
    },
    /// `has(of.name)`
    Has {
        of: Box<Node>,
        name: String,
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
        function: Function,
        arguments: Vec<Node>,
    },
    Matches {
        text: Box<Node>,
        pattern: Pattern,
    },
    /// A macro over the elements of a list or the keys of a map.
    Each {
        what: Each,
        range: Box<Node>,
        body: Box<Node>,
    },
    /// `range.map(x, condition, body)`: the elements for which the condition holds, made into something else.
    MapWhere {
        range: Box<Node>,
        condition: Box<Node>,
        body: Box<Node>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

impl Operator {
    /// As it is written.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::Modulo => "%",
            Operator::Equal => "==",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::In => "in",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Size,
    Contains,
    StartsWith,
    EndsWith,
    LowerAscii,
    UpperAscii,
    Int,
    Double,
    String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Each {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}

impl Each {
    /// As it is written.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Each::All => "all",
            Each::Exists => "exists",
            Each::ExistsOne => "exists_one",
            Each::Filter => "filter",
            Each::Map => "map",
        }
    }
}

/// A regular expression: most are written out, and compiled once.
#[derive(Debug)]
pub(crate) enum Pattern {
    Fixed(Box<Matcher>),
    Worked(Box<Node>),
}

/// A compiled regular expression, and how much a match costs beside that of a small one.
#[derive(Debug)]
pub(crate) struct Matcher {
    pub(crate) regex: Regex,
    pub(crate) weight: u64,
}
