//! Parses the Common Expression Language: a lexer, and a parser by precedence. Macros are calls here, and names are not resolved.
//!
//! The grammar is <https://github.com/google/cel-spec/blob/master/doc/langdef.md#syntax>, without messages.

use std::ops::Range;

use crate::operations::Operator;
use crate::resolve::CompileError;

/// Maximum length of an expression, in bytes.
pub const MAX_BYTES: usize = 4096;

/// Maximum nesting of an expression, in levels of its tree. It also bounds the recursion of everything that visits the tree.
pub const MAX_DEPTH: usize = 64;

/// A part of an expression as it is written.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) kind: TreeKind,
    /// The byte range of the part, without brackets around it.
    pub(crate) span: Range<usize>,
    /// The byte range of what a message about the part points at: its name, or its operator.
    pub(crate) token: Range<usize>,
}

#[derive(Debug)]
pub(crate) enum TreeKind {
    Literal(Literal),
    /// A variable or a type. A leading point is a part of its name.
    Name(String),
    /// `of.name`
    Field(Box<Tree>, String),
    /// `of[at]`
    Item(Box<Tree>, Box<Tree>),
    Call {
        target: Option<Box<Tree>>,
        name: String,
        arguments: Vec<Tree>,
    },
    List(Vec<Tree>),
    Map(Vec<(Tree, Tree)>),
    Not(Box<Tree>),
    Negate(Box<Tree>),
    Binary(Binary, Box<Tree>, Box<Tree>),
    /// `if ? then : otherwise`
    If(Box<[Tree; 3]>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    Or,
    And,
    Operator(Operator),
}

/// Parses an expression.
pub(crate) fn parse(source: &str) -> Result<Tree, CompileError> {
    if source.len() > MAX_BYTES {
        let message = format!("the expression has {} bytes; at most {MAX_BYTES} are allowed", source.len());
        return Err(CompileError { span: 0..0, message, remedy: "split it into several expressions".to_owned() });
    }
    // Tokens are made first: the parser looks back at none and ahead at one.
    let mut parser = Parser { source, tokens: lex(source)?, position: 0, depth: 0 };
    if parser.tokens.len() == 1 {
        let (message, remedy) = ("the expression is empty".to_owned(), "write a condition".to_owned());
        return Err(CompileError { span: 0..source.len(), message, remedy });
    }
    let part = parser.expression()?;
    match parser.peek() {
        Token::End => Ok(part.tree),
        _ => Err(parser.unexpected("an operator")),
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// An operator or a bracket, and the words `in`, `true`, `false` and `null`.
    Symbol(&'static str),
    Name,
    /// A name in backticks.
    QuotedName,
    /// The digits of a whole number without a sign, which may be that of the smallest integer.
    Int(u64),
    Literal(Literal),
    End,
}

/// Longer symbols come before their beginnings.
const SYMBOLS: [&str; 25] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":", "+", "*",
    "/", "%", "=",
];

const WORDS: [&str; 4] = ["in", "true", "false", "null"];

fn syntax_error(span: Range<usize>, message: impl std::fmt::Display) -> CompileError {
    let remedy = "correct the CEL at this position".to_owned();
    CompileError { span, message: format!("syntax error: {message}"), remedy }
}

/// Splits a text into tokens with their byte ranges. The last one is the end.
fn lex(source: &str) -> Result<Vec<(Token, Range<usize>)>, CompileError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        if matches!(first, ' ' | '\t' | '\r' | '\n' | '\u{c}') {
            at += 1;
            continue;
        }
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        let (token, length) = if let Some(quote) = string_start(rest) {
            string(source, at, quote)?
        } else if first.is_ascii_digit() || first == '.' && rest[1..].starts_with(|next: char| next.is_ascii_digit()) {
            number(source, at)?
        } else if first == '`' {
            let length = rest[1..].find('`').map_or(0, |length| length + 2);
            let is_name = |c: char| c.is_ascii_alphanumeric() || "_.-/ ".contains(c);
            // Other characters would need escapes, which such names do not have.
            if length < 3 || !rest[1..length - 1].chars().all(is_name) {
                return Err(syntax_error(at..at + length.max(1), "invalid name in backticks"));
            }
            (Token::QuotedName, length)
        } else if is_name_character(first) {
            let length = rest.find(|c| !is_name_character(c)).unwrap_or(rest.len());
            // Words of the language are never names, also not of fields: `x.in` is an error in CEL.
            let word = WORDS.into_iter().find(|word| *word == &rest[..length]);
            (word.map_or(Token::Name, Token::Symbol), length)
        } else if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
            if symbol == "=" {
                return Err(syntax_error(at..at + 1, "`=` is not an operator; write `==`"));
            }
            (Token::Symbol(symbol), symbol.len())
        } else {
            return Err(syntax_error(at..at + first.len_utf8(), format!("unexpected character `{first}`")));
        };
        tokens.push((token, at..at + length));
        at += length;
    }
    tokens.push((Token::End, at..at));
    Ok(tokens)
}

fn is_name_character(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric()
}

fn number(source: &str, at: usize) -> Result<(Token, usize), CompileError> {
    let rest = &source[at..];
    let digits = |from: usize| rest[from..].bytes().take_while(u8::is_ascii_digit).count();
    let (start, radix) = if rest.starts_with("0x") { (2, 16) } else { (0, 10) };
    let mut length = start + rest[start..].chars().take_while(|c| c.is_digit(radix)).count();
    let mut is_double = false;
    if radix == 10 {
        let fraction = rest[length..].strip_prefix('.').map_or(0, |_| digits(length + 1));
        // A point without digits is the start of a field.
        if fraction > 0 {
            (length, is_double) = (length + 1 + fraction, true);
        }
        if rest[length..].starts_with(['e', 'E']) {
            let sign = usize::from(rest[length + 1..].starts_with(['+', '-']));
            let exponent = digits(length + 1 + sign);
            if exponent > 0 {
                (length, is_double) = (length + 1 + sign + exponent, true);
            }
        }
    }
    let invalid = |length, kind| syntax_error(at..at + length, format!("invalid {kind} `{}`", &rest[..length]));
    if is_double {
        let value: f64 = rest[..length].parse().map_err(|_| invalid(length, "double"))?;
        return if value.is_finite() {
            Ok((Token::Literal(Literal::Double(value)), length))
        } else {
            Err(invalid(length, "double"))
        };
    }
    let value = u64::from_str_radix(&rest[start..length], radix);
    if rest[length..].starts_with(['u', 'U']) {
        let value = value.map_err(|_| invalid(length + 1, "unsigned integer"))?;
        return Ok((Token::Literal(Literal::Uint(value)), length + 1));
    }
    Ok((Token::Int(value.map_err(|_| invalid(length, "integer"))?), length))
}

/// How a string begins: the length of its prefix, and whether it is of bytes and raw.
#[derive(Clone, Copy)]
struct StringStart {
    prefix: usize,
    is_bytes: bool,
    is_raw: bool,
}

fn string_start(rest: &str) -> Option<StringStart> {
    let bytes = rest.as_bytes();
    let is_bytes = matches!(bytes.first(), Some(b'b' | b'B'));
    let is_raw = matches!(bytes.get(usize::from(is_bytes)), Some(b'r' | b'R'));
    let prefix = usize::from(is_bytes) + usize::from(is_raw);
    matches!(bytes.get(prefix), Some(b'"' | b'\'')).then_some(StringStart { prefix, is_bytes, is_raw })
}

fn string(source: &str, at: usize, start: StringStart) -> Result<(Token, usize), CompileError> {
    let rest = &source[at..];
    let quote = &rest[start.prefix..=start.prefix];
    let triple = quote.repeat(3);
    let is_triple = rest[start.prefix..].starts_with(&triple);
    let quotes = if is_triple { &triple } else { quote };
    let mut value = Vec::new();
    let mut next = start.prefix + quotes.len();
    loop {
        let Some(c) = rest[next..].chars().next().filter(|c| is_triple || !matches!(c, '\n' | '\r')) else {
            return Err(syntax_error(at..at + start.prefix + quotes.len(), "the string has no end"));
        };
        if rest[next..].starts_with(quotes) {
            break;
        }
        if c == '\\' && !start.is_raw {
            let Some((length, code)) = escape(&rest[next..]) else {
                let length = 1 + rest[next + 1..].chars().next().map_or(0, char::len_utf8);
                return Err(syntax_error(at + next..at + next + length, "invalid escape sequence in a string"));
            };
            let of_character = matches!(rest.as_bytes()[next + 1], b'u' | b'U');
            match (start.is_bytes, u8::try_from(code), char::from_u32(code)) {
                (true, Ok(byte), _) if !of_character => value.push(byte),
                (false, _, Some(character)) => value.extend(character.encode_utf8(&mut [0; 4]).bytes()),
                _ => return Err(syntax_error(at + next..at + next + length, "invalid escape sequence in a string")),
            }
            next += length;
        } else {
            // A line break of the file is one newline, however the file writes it.
            match c {
                '\r' if rest[next + 1..].starts_with('\n') => {}
                '\r' => value.push(b'\n'),
                _ => value.extend(&rest.as_bytes()[next..next + c.len_utf8()]),
            }
            next += c.len_utf8();
        }
    }
    let literal = if start.is_bytes {
        Literal::Bytes(value)
    } else {
        // Text and whole characters only were added.
        Literal::String(String::from_utf8_lossy(&value).into_owned())
    };
    Ok((Token::Literal(literal), next + quotes.len()))
}

/// Returns the length of an escape sequence, and the code point or the byte that it stands for.
fn escape(text: &str) -> Option<(usize, u32)> {
    let coded = |from: usize, digits: usize, radix| {
        let digits = text.get(from..from + digits).filter(|digits| digits.chars().all(|c| c.is_digit(radix)))?;
        Some((from + digits.len(), u32::from_str_radix(digits, radix).ok()?))
    };
    let plain = |code: u8| Some((2, u32::from(code)));
    match text.as_bytes().get(1)? {
        b'a' => plain(7),
        b'b' => plain(8),
        b'f' => plain(12),
        b'n' => plain(b'\n'),
        b'r' => plain(b'\r'),
        b't' => plain(b'\t'),
        b'v' => plain(11),
        byte @ (b'\\' | b'\'' | b'"' | b'`' | b'?') => plain(*byte),
        b'x' | b'X' => coded(2, 2, 16),
        b'u' => coded(2, 4, 16),
        b'U' => coded(2, 8, 16),
        b'0'..=b'3' => coded(1, 3, 8),
        _ => None,
    }
}

/// A parsed part, and its range with the brackets around it, which belongs to the parts that contain it.
struct Part {
    tree: Tree,
    extent: Range<usize>,
}

impl Part {
    fn new(kind: TreeKind, span: Range<usize>, token: Range<usize>) -> Self {
        Self { extent: span.clone(), tree: Tree { kind, span, token } }
    }

    fn boxed(self) -> Box<Tree> {
        Box::new(self.tree)
    }
}

struct Parser<'s> {
    source: &'s str,
    tokens: Vec<(Token, Range<usize>)>,
    position: usize,
    depth: usize,
}

type Parsed = Result<Part, CompileError>;

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.position].0
    }

    /// Returns the range of the next token, and moves past it. The end stays.
    fn next(&mut self) -> Range<usize> {
        let span = self.tokens[self.position].1.clone();
        self.position = (self.position + 1).min(self.tokens.len() - 1);
        span
    }

    fn eat(&mut self, symbol: &'static str) -> Option<Range<usize>> {
        (*self.peek() == Token::Symbol(symbol)).then(|| self.next())
    }

    fn expect(&mut self, symbol: &'static str) -> Result<Range<usize>, CompileError> {
        self.eat(symbol).ok_or_else(|| self.unexpected(&format!("`{symbol}`")))
    }

    fn unexpected(&self, expected: &str) -> CompileError {
        let span = self.tokens[self.position].1.clone();
        let found = if span.is_empty() { "the end".to_owned() } else { format!("`{}`", &self.source[span.clone()]) };
        // A range of one character is enough to point at a long string.
        let length = self.source[span.start..].chars().next().map_or(0, char::len_utf8);
        syntax_error(span.start..span.start + length, format!("expected {expected}, found {found}"))
    }

    /// Parses a whole expression, which may be in brackets or an argument. Every recursion goes through here.
    fn expression(&mut self) -> Parsed {
        // A limit and not a larger stack: the text may come from anyone, and threads have stacks of different sizes.
        if self.depth == MAX_DEPTH {
            return Err(too_deep(self.tokens[self.position].1.clone()));
        }
        self.depth += 1;
        let parsed = self.conditional();
        self.depth -= 1;
        parsed
    }

    fn conditional(&mut self) -> Parsed {
        let condition = self.binary(0)?;
        let Some(token) = self.eat("?") else { return Ok(condition) };
        // CEL takes a conditional here only in brackets.
        let then = self.binary(0)?;
        self.expect(":")?;
        let otherwise = self.expression()?;
        let span = condition.extent.start..otherwise.extent.end;
        Ok(Part::new(TreeKind::If(Box::new([condition.tree, then.tree, otherwise.tree])), span, token))
    }

    /// Parses binary operators of this precedence or a stronger one.
    fn binary(&mut self, minimum: u8) -> Parsed {
        let mut left = self.unary()?;
        let mut levels = 0;
        while let Token::Symbol(symbol) = *self.peek()
            && let Some((precedence, operator)) = binary_operator(symbol)
            && precedence >= minimum
        {
            if matches!(operator, Binary::And | Binary::Or) {
                left = self.chain(left, symbol, operator, precedence)?;
                continue;
            }
            let token = self.next();
            levels += 1;
            // Each operator makes the tree on its left one level deeper, without a recursion of the parser.
            if levels == MAX_DEPTH {
                return Err(too_deep(token));
            }
            let right = self.binary(precedence + 1)?;
            let span = left.extent.start..right.extent.end;
            left = Part::new(TreeKind::Binary(operator, left.boxed(), right.boxed()), span, token);
        }
        Ok(left)
    }

    /// Parses the rest of `a && b && …` or of `a || b || …` as a balanced tree, in which hundreds of operands are few levels.
    fn chain(&mut self, first: Part, symbol: &'static str, operator: Binary, precedence: u8) -> Parsed {
        let (mut operands, mut tokens) = (vec![first], Vec::new());
        while let Some(token) = self.eat(symbol) {
            tokens.push(token);
            operands.push(self.binary(precedence + 1)?);
        }
        while operands.len() > 1 {
            let (mut joined, mut between) = (Vec::new(), Vec::new());
            let mut parts = operands.into_iter();
            let mut tokens_left = tokens.into_iter();
            while let Some(left) = parts.next() {
                match (parts.next(), tokens_left.next()) {
                    (Some(right), Some(token)) => {
                        let span = left.extent.start..right.extent.end;
                        joined.push(Part::new(TreeKind::Binary(operator, left.boxed(), right.boxed()), span, token));
                        between.extend(tokens_left.next());
                    }
                    _ => joined.push(left),
                }
            }
            (operands, tokens) = (joined, between);
        }
        operands.pop().ok_or_else(|| self.unexpected("a value"))
    }

    fn unary(&mut self) -> Parsed {
        for (symbol, kind) in [("!", TreeKind::Not as fn(Box<Tree>) -> TreeKind), ("-", TreeKind::Negate)] {
            let Some(token) = self.eat(symbol) else { continue };
            // The sign of a number is a part of it: the smallest integer has no positive counterpart.
            if symbol == "-" && matches!(self.peek(), Token::Int(_) | Token::Literal(Literal::Double(_))) {
                let number = self.signed_number(token)?;
                return self.member(number);
            }
            let mut count = 1;
            while self.eat(symbol).is_some() {
                count += 1;
            }
            let primary = self.primary()?;
            let operand = self.member(primary)?;
            // Two in a row have no effect, also if the operand has the wrong type.
            if count % 2 == 0 {
                return Ok(operand);
            }
            let span = token.start..operand.extent.end;
            return Ok(Part::new(kind(operand.boxed()), span, token));
        }
        let primary = self.primary()?;
        self.member(primary)
    }

    fn signed_number(&mut self, sign: Range<usize>) -> Parsed {
        let token = self.peek().clone();
        let span = sign.start..self.next().end;
        let literal = match token {
            Token::Int(value) => {
                Literal::Int(0_i64.checked_sub_unsigned(value).ok_or_else(|| out_of_range(span.clone()))?)
            }
            Token::Literal(Literal::Double(value)) => Literal::Double(-value),
            _ => return Err(self.unexpected("a number")),
        };
        Ok(Part::new(TreeKind::Literal(literal), span.clone(), span))
    }

    /// Parses the fields, indexes and method calls after a part.
    fn member(&mut self, mut part: Part) -> Parsed {
        for _ in 0..MAX_DEPTH {
            let start = part.extent.start;
            if self.eat(".").is_some() {
                let is_name = *self.peek() == Token::Name;
                let (name, token) = self.field_name()?;
                if is_name && self.eat("(").is_some() {
                    let (arguments, end) = self.list(")")?;
                    let target = Some(part.boxed());
                    part = Part::new(TreeKind::Call { target, name, arguments }, start..end, token);
                } else {
                    part = Part::new(TreeKind::Field(part.boxed(), name), start..token.end, token);
                }
            } else if let Some(token) = self.eat("[") {
                let at = self.expression()?;
                let end = self.expect("]")?.end;
                part = Part::new(TreeKind::Item(part.boxed(), at.boxed()), start..end, token);
            } else if *self.peek() == Token::Symbol("{") && is_qualified_name(&part.tree) {
                let message = "message types are not supported".to_owned();
                return Err(CompileError { span: part.extent, message, remedy: "write a map".to_owned() });
            } else {
                return Ok(part);
            }
        }
        Err(too_deep(part.tree.token))
    }

    fn field_name(&mut self) -> Result<(String, Range<usize>), CompileError> {
        let quotes = match self.peek() {
            Token::Name => 0,
            Token::QuotedName => 1,
            _ => return Err(self.unexpected("the name of a field")),
        };
        let span = self.next();
        Ok((self.source[span.start + quotes..span.end - quotes].to_owned(), span))
    }

    fn primary(&mut self) -> Parsed {
        let token = self.peek().clone();
        let literal = match token {
            Token::Int(value) => {
                let span = self.next();
                let value = i64::try_from(value).map_err(|_| out_of_range(span.clone()))?;
                return Ok(Part::new(TreeKind::Literal(Literal::Int(value)), span.clone(), span));
            }
            Token::Literal(literal) => literal,
            Token::Symbol("true") => Literal::Bool(true),
            Token::Symbol("false") => Literal::Bool(false),
            Token::Symbol("null") => Literal::Null,
            Token::Name | Token::Symbol(".") => return self.name(),
            Token::Symbol("(") => {
                let open = self.next();
                let mut part = self.expression()?;
                part.extent = open.start..self.expect(")")?.end;
                return Ok(part);
            }
            Token::Symbol("[") => {
                let open = self.next();
                let (elements, end) = self.list("]")?;
                return Ok(Part::new(TreeKind::List(elements), open.start..end, open));
            }
            Token::Symbol("{") => return self.map(),
            Token::Symbol(_) | Token::QuotedName | Token::End => return Err(self.unexpected("a value")),
        };
        let span = self.next();
        Ok(Part::new(TreeKind::Literal(literal), span.clone(), span))
    }

    /// Parses a variable, a type or the name of a function, with a leading point or without.
    fn name(&mut self) -> Parsed {
        let start = self.tokens[self.position].1.start;
        let point = self.eat(".").is_some();
        if *self.peek() != Token::Name {
            return Err(self.unexpected("a name"));
        }
        let token = self.next();
        let name = format!("{}{}", if point { "." } else { "" }, &self.source[token.clone()]);
        if self.eat("(").is_some() {
            let (arguments, end) = self.list(")")?;
            return Ok(Part::new(TreeKind::Call { target: None, name, arguments }, start..end, token));
        }
        Ok(Part::new(TreeKind::Name(name), start..token.end, token))
    }

    fn map(&mut self) -> Parsed {
        let open = self.next();
        let mut entries = Vec::new();
        let end = loop {
            if let Some(close) = self.eat("}") {
                break close.end;
            }
            let key = self.expression()?;
            self.expect(":")?;
            entries.push((key.tree, self.expression()?.tree));
            if self.eat(",").is_none() {
                break self.expect("}")?.end;
            }
        };
        Ok(Part::new(TreeKind::Map(entries), open.start..end, open))
    }

    /// Parses the rest of a list up to its closing bracket. Returns the end of the bracket.
    fn list(&mut self, close: &'static str) -> Result<(Vec<Tree>, usize), CompileError> {
        let mut elements = Vec::new();
        loop {
            // Lists may end in a comma, and calls may not.
            if (close == "]" || elements.is_empty())
                && let Some(end) = self.eat(close)
            {
                return Ok((elements, end.end));
            }
            elements.push(self.expression()?.tree);
            if self.eat(",").is_none() {
                return Ok((elements, self.expect(close)?.end));
            }
        }
    }
}

pub(crate) fn too_deep(span: Range<usize>) -> CompileError {
    let message = format!("the expression is nested deeper than {MAX_DEPTH} levels");
    CompileError { span, message, remedy: "split it into several expressions".to_owned() }
}

fn out_of_range(span: Range<usize>) -> CompileError {
    syntax_error(span, "the integer is out of range")
}

fn is_qualified_name(tree: &Tree) -> bool {
    match &tree.kind {
        TreeKind::Name(_) => true,
        TreeKind::Field(of, _) => is_qualified_name(of),
        _ => false,
    }
}

/// Returns the precedence of a binary operator, which grows with its strength.
fn binary_operator(symbol: &str) -> Option<(u8, Binary)> {
    Some(match symbol {
        "||" => (0, Binary::Or),
        "&&" => (1, Binary::And),
        "==" => (2, Binary::Operator(Operator::Equal)),
        "!=" => (2, Binary::Operator(Operator::NotEqual)),
        "<" => (2, Binary::Operator(Operator::Less)),
        "<=" => (2, Binary::Operator(Operator::LessOrEqual)),
        ">" => (2, Binary::Operator(Operator::Greater)),
        ">=" => (2, Binary::Operator(Operator::GreaterOrEqual)),
        "in" => (2, Binary::Operator(Operator::In)),
        "+" => (3, Binary::Operator(Operator::Add)),
        "-" => (3, Binary::Operator(Operator::Subtract)),
        "*" => (4, Binary::Operator(Operator::Multiply)),
        "/" => (4, Binary::Operator(Operator::Divide)),
        "%" => (4, Binary::Operator(Operator::Modulo)),
        _ => return None,
    })
}
