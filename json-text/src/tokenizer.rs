//! An incremental tokenizer: it reads pieces of any size, holds none of them, and follows the grammar of RFC 8259.

/// Deepest nesting that `serde_json` parses, and the limit of [`Tokenizer::default`].
pub const MAX_DEPTH: usize = 127;

/// Why a text is not one JSON value. An offset is the number of bytes before the problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxError {
    #[error("not UTF-8 at offset {offset}")]
    NotUtf8 { offset: u64 },
    #[error("unexpected byte at offset {offset}")]
    Unexpected { offset: u64 },
    #[error("a second value at offset {offset}")]
    SecondValue { offset: u64 },
    #[error("nested too deeply at offset {offset}")]
    TooDeep { offset: u64 },
    #[error("the text ends early")]
    Unfinished,
}

/// A part of a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// White space, a comma or a colon.
    Gap,
    /// The start of a value or key: a bracket or a quote; no bytes for a scalar.
    Begin(Kind),
    /// Bytes of a scalar, or bytes between the quotes of a string, escapes included. A long string has one for each piece.
    Content,
    /// The end of a value or key: a bracket or a quote; no bytes for a scalar.
    End(Kind),
}

/// What begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Object,
    Array,
    /// The name of a member.
    Key,
    /// A string that is a value.
    String,
    /// A number, `true`, `false` or `null`.
    Scalar,
}

/// Splits a text that arrives in pieces into tokens.
///
/// Numbers are checked for their syntax only: `1.5e3111` is JSON. The crate's docs state what that means for a parser.
#[derive(Debug)]
pub struct Tokenizer {
    max_depth: usize,
    expected: Expected,
    state: State,
    /// The open containers; each is [`Kind::Object`] or [`Kind::Array`].
    open: Vec<Kind>,
    /// The first bytes of a character that the next piece continues.
    character: Vec<u8>,
    offset: u64,
    /// What ended the reading.
    error: Option<SyntaxError>,
    /// The first fault within a string.
    string_error: Option<SyntaxError>,
}

/// What may come next between tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Between,
    String(Kind, Escape),
    Number(Number),
    /// The bytes of a literal that are missing.
    Literal(&'static [u8]),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    /// After a backslash.
    Character,
    /// After `\u`: the number of digits that follow.
    Digits(u8),
}

/// The part of a number that was read last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Start,
    Sign,
    Zero,
    Integer,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

/// Checks that bytes are one JSON value, nested at most [`MAX_DEPTH`] levels deep. Only the grammar counts: see [`Tokenizer`].
pub fn check(text: &[u8]) -> Result<(), SyntaxError> {
    let mut tokenizer = Tokenizer::default();
    let mut rest = text;
    while let Some((_, length)) = tokenizer.read(rest) {
        rest = &rest[length..];
    }
    tokenizer.finish()
}

impl Default for Tokenizer {
    fn default() -> Self {
        Self::with_max_depth(MAX_DEPTH)
    }
}

impl Tokenizer {
    /// Starts a text whose containers are nested at most this deep. Each level costs a byte of memory.
    pub const fn with_max_depth(max_depth: usize) -> Self {
        Self {
            max_depth,
            expected: Expected::Value,
            state: State::Between,
            open: Vec::new(),
            character: Vec::new(),
            offset: 0,
            error: None,
            string_error: None,
        }
    }

    /// Reads the token at the start of the bytes, or as much of it as they have, and returns its length. The caller passes the
    /// bytes after it next. Returns `None` if there are no bytes, or if they do not continue a JSON text: [`Self::finish`]
    /// returns the reason.
    ///
    /// Within a string, a wrong escape, a control character or bytes that are not UTF-8 do not end the reading, because the end of
    /// the string is known anyway: only `finish` reports them. Callers that mask or hash what others read go on, as lenient
    /// parsers do.
    pub fn read(&mut self, bytes: &[u8]) -> Option<(Token, usize)> {
        let first = *bytes.first().filter(|_| self.error.is_none())?;
        let (token, length) = match self.state {
            State::Between => self.between(first, bytes)?,
            State::String(kind, Escape::None) if first == b'"' => (self.end_string(kind), 1),
            State::String(kind, escape) => (Token::Content, self.string(kind, escape, bytes)),
            State::Number(_) | State::Literal(_) => self.scalar(bytes)?,
        };
        self.offset += length as u64;
        Some((token, length))
    }

    /// Ends the text. Returns what ended the reading, or otherwise the first fault within a string.
    pub fn finish(&self) -> Result<(), SyntaxError> {
        if let Some(error) = self.error.or(self.string_error) {
            return Err(error);
        }
        let is_whole = match self.state {
            State::Between => self.expected == Expected::Nothing,
            State::String(..) => false,
            // The end of a scalar at the top is the end of the text.
            State::Number(_) | State::Literal(_) => self.open.is_empty() && self.is_scalar_complete(),
        };
        if is_whole { Ok(()) } else { Err(SyntaxError::Unfinished) }
    }

    /// The number of bytes read.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// The open containers, from the outermost on; each is [`Kind::Object`] or [`Kind::Array`].
    pub fn open(&self) -> &[Kind] {
        &self.open
    }

    fn between(&mut self, first: u8, bytes: &[u8]) -> Option<(Token, usize)> {
        use Expected::{Colon, CommaOrEnd, Key, KeyOrEnd, Nothing, Value, ValueOrEnd};

        let token = match (first, self.expected) {
            (b' ' | b'\t' | b'\r' | b'\n', _) => {
                let length = bytes.iter().take_while(|byte| is_space(**byte)).count();
                return Some((Token::Gap, length));
            }
            // Before the other arms: after the value, only white space may follow.
            (_, Nothing) => return self.fail(SyntaxError::SecondValue { offset: self.offset }),
            (b':', Colon) => {
                self.expected = Value;
                Token::Gap
            }
            (b',', CommaOrEnd) => {
                self.expected = if self.is_in_object() { Key } else { Value };
                Token::Gap
            }
            (b'"', Key | KeyOrEnd) => self.begin_string(Kind::Key),
            (b'"', Value | ValueOrEnd) => self.begin_string(Kind::String),
            (b'{' | b'[', Value | ValueOrEnd) => {
                if self.open.len() >= self.max_depth {
                    return self.fail(SyntaxError::TooDeep { offset: self.offset });
                }
                let (kind, expected) = if first == b'{' { (Kind::Object, KeyOrEnd) } else { (Kind::Array, ValueOrEnd) };
                self.open.push(kind);
                self.expected = expected;
                Token::Begin(kind)
            }
            (b'}', KeyOrEnd) => self.close(Kind::Object),
            (b']', ValueOrEnd) => self.close(Kind::Array),
            (b'}', CommaOrEnd) if self.is_in_object() => self.close(Kind::Object),
            (b']', CommaOrEnd) if !self.is_in_object() => self.close(Kind::Array),
            (_, Value | ValueOrEnd) => {
                self.state = match first {
                    b'-' | b'0'..=b'9' => State::Number(Number::Start),
                    b't' => State::Literal(b"true"),
                    b'f' => State::Literal(b"false"),
                    b'n' => State::Literal(b"null"),
                    _ => return self.unexpected(),
                };
                // The byte is read again, as content: a caller that copies values thus sees where the first one starts.
                return Some((Token::Begin(Kind::Scalar), 0));
            }
            _ => return self.unexpected(),
        };
        Some((token, 1))
    }

    fn begin_string(&mut self, kind: Kind) -> Token {
        self.state = State::String(kind, Escape::None);
        Token::Begin(kind)
    }

    fn end_string(&mut self, kind: Kind) -> Token {
        // The quote ends the string within a character.
        if !self.character.is_empty() {
            self.character.clear();
            self.string_error.get_or_insert(SyntaxError::NotUtf8 { offset: self.offset });
        }
        self.state = State::Between;
        if kind == Kind::Key {
            self.expected = Expected::Colon;
        } else {
            self.end_value();
        }
        Token::End(kind)
    }

    /// Reads the content of a string up to its end. Returns the number of bytes.
    fn string(&mut self, kind: Kind, mut escape: Escape, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match escape {
                Escape::None => {
                    // Long strings are most of a large text.
                    let rest = &bytes[at..];
                    let length = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                    // Not `any`: without an early exit, the loop is compiled to vector instructions.
                    if rest[..length].iter().fold(u8::MAX, |least, byte| least.min(*byte)) < b' ' {
                        let control = rest.iter().position(|byte| *byte < b' ').unwrap_or_default();
                        self.string_fault(at + control);
                    }
                    at += length;
                    match bytes.get(at) {
                        Some(b'\\') => escape = Escape::Character,
                        Some(_) | None => break,
                    }
                }
                Escape::Character => {
                    escape = if *byte == b'u' { Escape::Digits(4) } else { Escape::None };
                    if !br#"u"\/bfnrt"#.contains(byte) {
                        self.string_fault(at);
                    }
                }
                Escape::Digits(left) if byte.is_ascii_hexdigit() => {
                    escape = if left == 1 { Escape::None } else { Escape::Digits(left - 1) };
                }
                Escape::Digits(_) => {
                    self.string_fault(at);
                    // The byte may be the quote at the end: it is looked at again.
                    escape = Escape::None;
                    continue;
                }
            }
            at += 1;
        }
        self.state = State::String(kind, escape);
        self.check_characters(&bytes[..at]);
        at
    }

    /// Checks the encoding of the content of a string. Pieces may divide a character.
    fn check_characters(&mut self, content: &[u8]) {
        let offset = self.offset;
        let fault = |at: usize| SyntaxError::NotUtf8 { offset: offset + at as u64 };
        let mut rest = content;
        while !self.character.is_empty()
            && let Some((byte, others)) = rest.split_first()
        {
            self.character.push(*byte);
            rest = others;
            match std::str::from_utf8(&self.character) {
                Err(error) if error.error_len().is_none() => {}
                // The character is complete or invalid. Either way, the next byte starts another one.
                checked => {
                    if checked.is_err() {
                        self.string_error.get_or_insert(fault(0));
                    }
                    self.character.clear();
                }
            }
        }
        match std::str::from_utf8(rest) {
            Ok(_) => {}
            // The next piece may complete the character.
            Err(error) if error.error_len().is_none() => self.character.extend_from_slice(&rest[error.valid_up_to()..]),
            Err(error) => {
                let at = content.len() - rest.len() + error.valid_up_to();
                self.string_error.get_or_insert(fault(at));
            }
        }
    }

    fn scalar(&mut self, bytes: &[u8]) -> Option<(Token, usize)> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let next = match self.state {
                State::Number(number) => number.next(*byte).map(State::Number),
                State::Literal([first, rest @ ..]) if first == byte => Some(State::Literal(rest)),
                _ => None,
            };
            let Some(next) = next else { break };
            self.state = next;
            at += 1;
        }
        if at > 0 {
            return Some((Token::Content, at));
        }
        // `12x` is not a number followed by a letter.
        let is_delimiter = is_space(bytes[0]) || b",]}".contains(&bytes[0]);
        if !is_delimiter || !self.is_scalar_complete() {
            return self.unexpected();
        }
        self.state = State::Between;
        self.end_value();
        // The delimiter is read again, as a gap or as the end of a container.
        Some((Token::End(Kind::Scalar), 0))
    }

    const fn is_scalar_complete(&self) -> bool {
        use Number::{ExponentDigits, Fraction, Integer, Zero};
        matches!(self.state, State::Number(Zero | Integer | Fraction | ExponentDigits) | State::Literal([]))
    }

    fn close(&mut self, kind: Kind) -> Token {
        self.open.pop();
        self.end_value();
        Token::End(kind)
    }

    fn end_value(&mut self) {
        self.expected = if self.open.is_empty() { Expected::Nothing } else { Expected::CommaOrEnd };
    }

    fn is_in_object(&self) -> bool {
        self.open.last() == Some(&Kind::Object)
    }

    fn string_fault(&mut self, at: usize) {
        self.string_error.get_or_insert(SyntaxError::Unexpected { offset: self.offset + at as u64 });
    }

    fn unexpected<T>(&mut self) -> Option<T> {
        self.fail(SyntaxError::Unexpected { offset: self.offset })
    }

    fn fail<T>(&mut self, error: SyntaxError) -> Option<T> {
        // A fault within a string comes earlier in the text.
        self.error = Some(self.string_error.unwrap_or(error));
        None
    }
}

impl Number {
    /// Continues a number; `None` if the byte is not part of it.
    const fn next(self, byte: u8) -> Option<Self> {
        use Number::{Exponent, ExponentDigits, ExponentSign, Fraction, Integer, Point, Sign, Start, Zero};
        Some(match (self, byte) {
            (Start, b'-') => Sign,
            (Start | Sign, b'0') => Zero,
            (Start | Sign, b'1'..=b'9') | (Integer, b'0'..=b'9') => Integer,
            (Zero | Integer, b'.') => Point,
            (Point | Fraction, b'0'..=b'9') => Fraction,
            (Zero | Integer | Fraction, b'e' | b'E') => Exponent,
            (Exponent, b'+' | b'-') => ExponentSign,
            (Exponent | ExponentSign | ExponentDigits, b'0'..=b'9') => ExponentDigits,
            _ => return None,
        })
    }
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}
