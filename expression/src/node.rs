//! The resolved expression tree: names are indexes, and literal regular expressions are compiled.

use std::ops::Range;

use crate::functions::Function;
use crate::operations::Operator;
use crate::pattern::Matcher;
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
