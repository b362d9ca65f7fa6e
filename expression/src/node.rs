//! The resolved expression tree: names are indexes, and literal regular expressions are compiled.

use crate::pattern::Matcher;

/// A node of the tree.
#[derive(Debug)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    String(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    /// A variable, by its index in the list that the expression is compiled with.
    Variable(usize),
    /// The variable of an enclosing macro, counted from the outermost.
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
    Macro {
        kind: Macro,
        range: Box<Node>,
        body: Box<Node>,
    },
    /// `range.map(x, condition, body)`: maps the elements for which the condition is true.
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
pub(crate) enum Macro {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}

impl Macro {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Macro::All => "all",
            Macro::Exists => "exists",
            Macro::ExistsOne => "exists_one",
            Macro::Filter => "filter",
            Macro::Map => "map",
        }
    }
}

/// A regular expression: a literal, which is compiled once, or a computed string.
#[derive(Debug)]
pub(crate) enum Pattern {
    Literal(Box<Matcher>),
    Computed(Box<Node>),
}
