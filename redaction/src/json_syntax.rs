//! Follows the structure of a JSON text between its strings, numbers and literals.

/// Largest depth whose containers are tracked.
const MAX_DEPTH: usize = 4096;

/// The place in a JSON text.
#[derive(Debug, Default)]
pub(crate) struct JsonSyntax {
    expected: Expected,
    /// The containers around the place: true for objects.
    containers: Vec<bool>,
}

/// What may come next.
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

/// What starts with a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    /// White space, or the colon after a key.
    Gap,
    /// A bracket, a brace or a comma.
    Structure,
    Key,
    /// A string that is a value.
    Text,
    /// A number or a literal.
    Scalar,
    /// Something that is not JSON, or that is nested too deeply.
    Invalid,
}

impl JsonSyntax {
    /// Reads the next byte, which is not within a string, a number or a literal.
    pub(crate) fn next(&mut self, byte: u8) -> Token {
        use Expected::{Colon, CommaOrEnd, Key, KeyOrEnd, Value, ValueOrEnd};

        match (byte, self.expected) {
            (b' ' | b'\t' | b'\r' | b'\n', _) => return Token::Gap,
            (b':', Colon) => {
                self.expected = Value;
                return Token::Gap;
            }
            (b'"', Key | KeyOrEnd) => {
                self.expected = Colon;
                return Token::Key;
            }
            (b'"', Value | ValueOrEnd) => {
                self.end_value();
                return Token::Text;
            }
            (b'{' | b'[', Value | ValueOrEnd) if self.containers.len() < MAX_DEPTH => {
                self.containers.push(byte == b'{');
                self.expected = if byte == b'{' { KeyOrEnd } else { ValueOrEnd };
            }
            (b',', CommaOrEnd) => self.expected = if self.is_in_object() { Key } else { Value },
            (b'}', KeyOrEnd) | (b']', ValueOrEnd) => self.close(),
            (b'}', CommaOrEnd) if self.is_in_object() => self.close(),
            (b']', CommaOrEnd) if !self.is_in_object() => self.close(),
            (b'-' | b'0'..=b'9' | b't' | b'f' | b'n', Value | ValueOrEnd) => {
                self.end_value();
                return Token::Scalar;
            }
            _ => return Token::Invalid,
        }
        Token::Structure
    }

    /// True after a whole value.
    pub(crate) fn is_complete(&self) -> bool {
        self.expected == Expected::Nothing
    }

    /// True for the keys of a JSON-RPC message: of the outermost object, or of an element of a batch.
    pub(crate) fn is_in_message(&self) -> bool {
        matches!(self.containers.as_slice(), [true] | [false, true])
    }

    fn is_in_object(&self) -> bool {
        self.containers.last() == Some(&true)
    }

    fn close(&mut self) {
        self.containers.pop();
        self.end_value();
    }

    fn end_value(&mut self) {
        self.expected = if self.containers.is_empty() { Expected::Nothing } else { Expected::CommaOrEnd };
    }
}
