//! The forms of a value as sequences of characters, each of which can be encoded again.

use std::collections::HashMap;

use crate::encodings::{self, Base64};
use crate::escapes::{self, Escapes};
use crate::matcher::{Encoders, Matcher, Places};

/// Smallest number of bytes for base64 and hexadecimal: shorter values occur in unrelated text.
const SHORTEST_ENCODED: usize = 6;

/// Longest value, in bytes, whose encoded forms are searched within base64 and hexadecimal. They take several hundred times
/// the memory of the value.
pub(super) const LONGEST_COMPOSED: usize = 16 * 1024;

/// One form of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Needle {
    /// The characters of the value, or the digits that encode it.
    pub(super) characters: Vec<char>,
    pub(super) digits: Digits,
    pub(super) content: Content,
    /// True where a digit before the known ones encodes bits of the value and of the preceding byte.
    pub(super) shares_first: bool,
    shares_last: bool,
}

/// The digits of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Digits {
    /// None: the characters themselves.
    Text,
    /// Those of base64, of both alphabets.
    Base64,
    Hexadecimal,
}

/// What the digits of a form encode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Value,
    /// An encoded form of the value.
    Encoded,
}

/// The escapes of the characters beyond ASCII in all values.
pub(super) type Escaped = HashMap<char, Vec<Escapes>>;

impl Needle {
    /// Returns all forms of a value.
    pub(super) fn all(value: &str) -> Vec<Self> {
        let mut needles = Self::of_line(value);
        if (SHORTEST_ENCODED..=LONGEST_COMPOSED).contains(&value.len()) {
            needles.extend(encodings::all(value).iter().flat_map(|text| Self::in_digits(text, Content::Encoded)));
        }
        needles
    }

    /// Returns the forms of a line of a value: all but base64 and hexadecimal of its encoded forms. A value can have many lines.
    pub(super) fn of_line(line: &str) -> Vec<Self> {
        let mut needles = vec![Self::text(line)];
        if line.len() >= SHORTEST_ENCODED {
            needles.extend(Self::in_digits(line, Content::Value));
        }
        needles
    }

    fn text(value: &str) -> Self {
        let characters = value.chars().collect();
        Self { characters, digits: Digits::Text, content: Content::Value, shares_first: false, shares_last: false }
    }

    fn in_digits(text: &str, content: Content) -> impl Iterator<Item = Self> {
        let base64 = encodings::base64(text.as_bytes()).map(|Base64 { shares_first, digits, shares_last }| Self {
            characters: digits.into_iter().map(char::from).collect(),
            digits: Digits::Base64,
            content,
            shares_first,
            shares_last,
        });
        let hexadecimal = Self { digits: Digits::Hexadecimal, ..Self::text(&encodings::hexadecimal(text.as_bytes())) };
        base64.into_iter().chain([Self { content, ..hexadecimal }])
    }

    /// How many encoders each character may go through.
    pub(super) fn encoders(&self) -> Encoders {
        match (self.digits, self.content) {
            (Digits::Text, _) => Encoders::Two,
            (_, Content::Value) => Encoders::One,
            (_, Content::Encoded) => Encoders::None,
        }
    }

    /// Returns the characters that can stand for the one at an index.
    pub(super) fn alternatives(&self, index: usize) -> [char; 2] {
        let character = self.characters[index];
        match (self.digits, character) {
            (Digits::Base64, '+') => ['+', '-'],
            (Digits::Base64, '/') => ['/', '_'],
            (Digits::Hexadecimal, 'a'..='f') => [character, character.to_ascii_uppercase()],
            _ => [character; 2],
        }
    }

    /// Follows this form from a place. Returns its end.
    pub(super) fn follow(&self, matcher: &mut Matcher<'_>, at: usize, escaped: &Escaped) -> Option<usize> {
        let mut places = Places::one(at);
        for index in 0..self.characters.len() {
            // Letters and digits start no escape and no line break, so most texts are compared byte by byte.
            if let Some((at, byte)) = matcher.alphanumeric(&places) {
                if !self.alternatives(index).contains(&char::from(byte)) {
                    return None;
                }
                places = Places::one(at + 1);
                continue;
            }
            if index > 0 {
                places = matcher.each(places, |matcher, at, next| self.separator(index, matcher, at, next));
            }
            places = matcher.each(places, |matcher, at, next| self.character(index, matcher, at, escaped, next));
            if places.as_slice().is_empty() {
                return None;
            }
        }
        let end = places.as_slice().iter().copied().max()?;
        Some(if self.shares_last && matcher.is_base64_digit(end) { end + 1 } else { end })
    }

    fn character(&self, index: usize, matcher: &mut Matcher<'_>, at: usize, escaped: &Escaped, next: &mut Places) {
        let [one, other] = self.alternatives(index);
        self.alternative(one, matcher, at, escaped, next);
        if other != one {
            self.alternative(other, matcher, at, escaped, next);
        }
    }

    fn alternative(&self, one: char, matcher: &mut Matcher<'_>, at: usize, escaped: &Escaped, next: &mut Places) {
        if one.is_ascii() {
            matcher.ascii(one as u8, at, self.encoders(), next);
        } else if let Some(escapes) = escaped.get(&one) {
            matcher.character(one.encode_utf8(&mut [0; 4]).as_bytes(), escapes, at, self.encoders(), next);
        }
    }

    /// Adds the places after what may be before the character at an index: nothing, or a line break.
    fn separator(&self, index: usize, matcher: &mut Matcher<'_>, at: usize, next: &mut Places) {
        next.push(at);
        match self.digits {
            Digits::Text => matcher.soft_break(at, Encoders::One, next),
            Digits::Base64 => matcher.line_break(at, Encoders::One, next),
            Digits::Hexadecimal if index.is_multiple_of(2) => {
                matcher.line_break(at, Encoders::One, next);
                matcher.any_of(b" :-", at, next);
            }
            Digits::Hexadecimal => {}
        }
    }
}

/// Returns the escapes of all characters beyond ASCII.
pub(super) fn escaped(needles: &[Needle]) -> Escaped {
    let texts = needles.iter().filter(|needle| needle.digits == Digits::Text);
    let characters = texts.flat_map(|needle| &needle.characters).filter(|it| !it.is_ascii());
    characters.map(|character| (*character, escapes::of(*character))).collect()
}
