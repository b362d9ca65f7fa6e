//! Finds configured values, complete or cut off at the end of a text.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::encodings::{self, Base64, Variants};
use crate::matcher::{self, Escapes, INTRODUCERS};
use crate::matcher::{Encoders, Matcher, Places, is_base64_digit};
use crate::redactor::SHORTEST;

/// Upper bound of the length of a form of one byte of a value: each character of `&amp;amp;#x000000068;` as `\U00000026`, rounded up.
const LONGEST: usize = 256;

/// A search for values. Cheap to clone.
#[derive(Clone)]
pub(super) struct ValueSearch(Arc<Forms>);

struct Forms {
    needles: Vec<Needle>,
    escaped: Escaped,
    /// For each byte, the forms that can start with it literally.
    by_first_byte: Vec<Vec<usize>>,
    /// The forms that can start with an escape.
    escapable: Vec<usize>,
    /// The longest form of a value, in bytes.
    longest: usize,
}

/// Which beginnings of a form count at the end of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beginning {
    Revealing,
    /// All, because the text goes on.
    Any,
}

impl ValueSearch {
    /// Prepares a search for all forms of the values.
    pub(super) fn new(values: &Variants<'_>) -> Self {
        let whole = values.whole.iter().flat_map(|value| Needle::all(value));
        let needles: Vec<Needle> = whole.chain(values.lines.iter().flat_map(|line| Needle::of_line(line))).collect();
        let mut by_first_byte = vec![Vec::new(); 256];
        for (index, needle) in needles.iter().enumerate() {
            for first in first_bytes(needle) {
                by_first_byte[usize::from(first)].push(index);
            }
        }
        // Tried wherever an escape starts: which character it encodes is only known after it is read.
        let escapable = (0..needles.len()).filter(|index| needles[*index].encoders() != Encoders::None).collect();
        let longest = values.whole.iter().map(|value| value.len() * LONGEST).max().unwrap_or_default();
        Self(Arc::new(Forms { escaped: escaped(&needles), needles, by_first_byte, escapable, longest }))
    }

    /// Returns patterns that match wherever a form may start.
    pub(super) fn candidates(&self) -> Vec<String> {
        encodings::patterns(&self.0.needles).into_iter().collect()
    }

    /// The largest length of a form in bytes.
    pub(super) fn longest(&self) -> usize {
        self.0.longest
    }

    /// Returns the longest complete form that starts at a place. A digit before it that encodes bits of the value belongs to
    /// it, from `first` on.
    pub(super) fn find(&self, text: &[u8], at: usize, first: usize) -> Option<Range<usize>> {
        let mut matcher = Matcher::new(text, at);
        let forms = self.starting_with(text[at]);
        let complete = forms.filter_map(|needle| {
            let end = needle.follow(&mut matcher, at, &self.0.escaped)?;
            let shares_first = needle.shares_first && at > first && is_base64_digit(text[at - 1]);
            Some((end, shares_first))
        });
        // The longest: a shorter form would leave the rest of the secret in the text.
        let (end, shares_first) = complete.max()?;
        Some(at - usize::from(shares_first)..end)
    }

    /// Returns whether the text ends inside a form that starts at a place, and its beginning is long enough.
    pub(super) fn is_cut(&self, text: &[u8], start: usize, beginning: Beginning) -> bool {
        let mut matcher = Matcher::new(text, start);
        let is_cut = |needle: &Needle| {
            // The matcher is shared by all forms, for its cache of introducers.
            matcher.is_cut = false;
            needle.follow(&mut matcher, start, &self.0.escaped);
            let is_long_enough = || text.len() - start >= shortest_beginning(needle);
            matcher.is_cut && (beginning == Beginning::Any || is_long_enough())
        };
        self.starting_with(text[start]).any(is_cut)
    }

    /// Returns the forms that can start with a byte.
    fn starting_with(&self, byte: u8) -> impl Iterator<Item = &Needle> {
        let escapable = if INTRODUCERS.contains(&byte) { self.0.escapable.as_slice() } else { &[] };
        self.0.by_first_byte[usize::from(byte)].iter().chain(escapable).map(|index| &self.0.needles[*index])
    }
}

/// Returns the bytes with which a form starts if its first character is not escaped.
fn first_bytes(needle: &Needle) -> Vec<u8> {
    let mut bytes: Vec<u8> = needle.alternatives(0).map(|first| first.encode_utf8(&mut [0; 4]).as_bytes()[0]).to_vec();
    // The forms of a space that have no introducer.
    if needle.digits == Digits::Text && needle.characters[0] == ' ' {
        bytes.extend(b"+_");
    }
    bytes.sort_unstable();
    bytes.dedup();
    bytes
}

/// Returns the length of the shortest first part that reveals something, in bytes.
fn shortest_beginning(needle: &Needle) -> usize {
    match (needle.digits, needle.content) {
        (Digits::Text | Digits::Base64, Content::Value) => 1,
        _ => SHORTEST,
    }
}

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
    /// True if a digit before the known ones encodes bits of the value and of the preceding byte.
    pub(super) shares_first: bool,
    shares_last: bool,
}

/// The digits of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Digits {
    /// None: the characters themselves.
    Text,
    /// The digits of base64, in both alphabets.
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
                places = matcher.each(&places, |matcher, at, next| self.separator(index, matcher, at, next));
            }
            places = matcher.each(&places, |matcher, at, next| self.character(index, matcher, at, escaped, next));
            if places.as_slice().is_empty() {
                return None;
            }
        }
        // Ends differ in optional characters, such as the `;` of a reference. The last one leaves no rest.
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
            // Dumps separate bytes, not digits.
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
    characters.map(|character| (*character, matcher::of(*character))).collect()
}
