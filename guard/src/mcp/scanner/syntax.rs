//! Checks, piece by piece, that a text is one JSON value.
//!
//! Lone surrogates in escapes are accepted: the grammar of RFC 8259 allows them.

use serde::de::IgnoredAny;

/// Deepest nesting, the same as in messages that are read as a whole.
const MAX_DEPTH: usize = 127;

/// Longest number.
const MAX_SCALAR_BYTES: usize = 4096;

/// Why a text is not one JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxProblem {
    #[error("the message is not UTF-8")]
    NotText,
    #[error("the message is not JSON: unexpected byte at offset {offset}")]
    Unexpected {
        /// The number of bytes before it.
        offset: u64,
    },
    #[error("the message has more than one JSON value")]
    SecondValue,
    #[error("the message is not JSON: it ends early")]
    Unfinished,
    #[error("the message is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
}

#[derive(Debug, Default)]
pub(super) struct Syntax {
    expected: Expected,
    token: Token,
    /// For each open container: true for an object.
    containers: Vec<bool>,
    /// The number or literal that is being read.
    scalar: Vec<u8>,
    /// The start of a character of several bytes.
    character: Vec<u8>,
    offset: u64,
    problem: Option<SyntaxProblem>,
}

/// What may come next between tokens.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Expected {
    #[default]
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Nothing,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Token {
    #[default]
    None,
    Text,
    /// After a backslash.
    Escape,
    /// After `\u`: the number of digits that follow.
    Digits(u8),
    Scalar,
}

impl Syntax {
    pub(super) fn push(&mut self, piece: &[u8]) {
        if self.problem.is_some() {
            return;
        }
        let checked = self.characters(piece).and_then(|()| self.tokens(piece));
        self.problem = checked.err();
        self.offset += piece.len() as u64;
    }

    /// Ends the text.
    pub(super) fn finish(mut self) -> Result<(), SyntaxProblem> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        if self.token == Token::Scalar {
            self.end_scalar(0)?;
        }
        let is_whole = self.expected == Expected::Nothing && self.token == Token::None && self.character.is_empty();
        if is_whole { Ok(()) } else { Err(SyntaxProblem::Unfinished) }
    }

    fn characters(&mut self, piece: &[u8]) -> Result<(), SyntaxProblem> {
        // Pieces may divide a character.
        let mut rest = piece;
        while !self.character.is_empty()
            && let Some((byte, others)) = rest.split_first()
        {
            self.character.push(*byte);
            rest = others;
            match std::str::from_utf8(&self.character) {
                Ok(_) => self.character.clear(),
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(SyntaxProblem::NotText),
            }
        }
        match std::str::from_utf8(rest) {
            Ok(_) => {}
            Err(error) if error.error_len().is_none() => self.character.extend_from_slice(&rest[error.valid_up_to()..]),
            Err(_) => return Err(SyntaxProblem::NotText),
        }
        Ok(())
    }

    fn tokens(&mut self, piece: &[u8]) -> Result<(), SyntaxProblem> {
        let mut at = 0;
        while let Some(&byte) = piece.get(at) {
            match self.token {
                Token::Text => {
                    at += self.text(&piece[at..], at)?;
                    continue;
                }
                Token::Escape => {
                    self.token = match byte {
                        b'u' => Token::Digits(4),
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Token::Text,
                        _ => return Err(self.unexpected(at)),
                    }
                }
                Token::Digits(left) if byte.is_ascii_hexdigit() => {
                    self.token = if left == 1 { Token::Text } else { Token::Digits(left - 1) };
                }
                Token::Digits(_) => return Err(self.unexpected(at)),
                Token::Scalar if !matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n') => {
                    if self.scalar.len() == MAX_SCALAR_BYTES {
                        return Err(self.unexpected(at));
                    }
                    self.scalar.push(byte);
                }
                Token::Scalar => {
                    self.end_scalar(at)?;
                    continue;
                }
                Token::None => self.between(byte, at)?,
            }
            at += 1;
        }
        Ok(())
    }

    /// Checks a string up to its end or its next escape. Returns the number of bytes.
    fn text(&mut self, rest: &[u8], at: usize) -> Result<usize, SyntaxProblem> {
        let length = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        // Not `any`: without an early exit, the loop is compiled to vector instructions.
        let least = rest[..length].iter().fold(u8::MAX, |least, byte| least.min(*byte));
        if least < b' ' {
            return Err(self.unexpected(at));
        }
        match rest.get(length) {
            Some(b'\\') => self.token = Token::Escape,
            Some(_) => {
                self.token = Token::None;
                if self.expected != Expected::Colon {
                    self.end_value();
                }
            }
            None => return Ok(length),
        }
        Ok(length + 1)
    }

    fn between(&mut self, byte: u8, at: usize) -> Result<(), SyntaxProblem> {
        use Expected::{Colon, CommaOrEnd, Key, KeyOrEnd, Nothing, Value, ValueOrEnd};

        match (byte, self.expected) {
            (b' ' | b'\t' | b'\r' | b'\n', _) => {}
            (_, Nothing) => return Err(SyntaxProblem::SecondValue),
            (b'"', Key | KeyOrEnd) => (self.token, self.expected) = (Token::Text, Colon),
            (b':', Colon) => self.expected = Value,
            (b',', CommaOrEnd) => self.expected = if self.is_in_object() { Key } else { Value },
            (b'}', KeyOrEnd) | (b']', ValueOrEnd) => self.close(),
            (b'}', CommaOrEnd) if self.is_in_object() => self.close(),
            (b']', CommaOrEnd) if !self.is_in_object() => self.close(),
            (b'"', Value | ValueOrEnd) => (self.token, self.expected) = (Token::Text, CommaOrEnd),
            (b'{' | b'[', Value | ValueOrEnd) => {
                if self.containers.len() == MAX_DEPTH {
                    return Err(SyntaxProblem::TooDeep);
                }
                self.containers.push(byte == b'{');
                self.expected = if byte == b'{' { KeyOrEnd } else { ValueOrEnd };
            }
            (_, Value | ValueOrEnd) => {
                self.token = Token::Scalar;
                self.scalar.clear();
                self.scalar.push(byte);
            }
            _ => return Err(self.unexpected(at)),
        }
        Ok(())
    }

    fn end_scalar(&mut self, at: usize) -> Result<(), SyntaxProblem> {
        if serde_json::from_slice::<IgnoredAny>(&self.scalar).is_err() {
            return Err(self.unexpected(at));
        }
        self.token = Token::None;
        self.end_value();
        Ok(())
    }

    fn close(&mut self) {
        self.containers.pop();
        self.end_value();
    }

    fn end_value(&mut self) {
        self.expected = if self.containers.is_empty() { Expected::Nothing } else { Expected::CommaOrEnd };
    }

    fn is_in_object(&self) -> bool {
        self.containers.last() == Some(&true)
    }

    const fn unexpected(&self, at: usize) -> SyntaxProblem {
        SyntaxProblem::Unexpected { offset: self.offset + at as u64 }
    }
}
