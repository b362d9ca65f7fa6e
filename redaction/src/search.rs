//! The secrets of a text in their order: those in its bytes, and those that appear once the escapes of JSON are decoded.
//!
//! An escape can stand for any character of a string, also for a digit of base64 in which a value is encoded. So a text with such
//! escapes is searched twice. The decoded text is only searched: masks replace bytes of the original one.

use std::ops::Range;

use counterproof_json_text::escape;

use crate::redactor::{Content, Found, Redactor};

pub(crate) struct Search<'a> {
    redactor: &'a Redactor,
    text: &'a [u8],
    content: Content,
    literal: Literal,
    /// The secrets with escapes, in reverse order.
    unescaped: Vec<Found>,
}

/// The next secret in the bytes.
enum Literal {
    NotSearched,
    /// None at the end.
    Searched(Option<Found>),
}

impl<'a> Search<'a> {
    pub(crate) fn new(redactor: &'a Redactor, text: &'a [u8], content: Content) -> Self {
        let mut unescaped = if has_escapes(text) { unescaped_secrets(redactor, text) } else { Vec::new() };
        unescaped.reverse();
        Self { redactor, text, content, literal: Literal::NotSearched, unescaped }
    }

    /// Returns the first secret from a place on. Places do not decrease, and are not within an escape.
    pub(crate) fn next(&mut self, from: usize) -> Option<Found> {
        let literal = match std::mem::replace(&mut self.literal, Literal::NotSearched) {
            Literal::Searched(found) if found.as_ref().is_none_or(|found| found.range.start >= from) => found,
            _ => self.redactor.find_next(self.text, from, self.content),
        };
        while let Some(mut last) = self.unescaped.pop() {
            if last.clip(from) {
                self.unescaped.push(last);
                break;
            }
        }
        let starts_first = |found: &Found| literal.as_ref().is_none_or(|it| found.range.start <= it.range.start);
        let mut next = match self.unescaped.pop_if(|found| starts_first(found)) {
            Some(found) => {
                self.literal = Literal::Searched(literal);
                found
            }
            None => literal?,
        };
        // One secret in both readings has one mask.
        loop {
            let overlaps = |found: &Found| found.range.start < next.range.end;
            let other = match self.unescaped.pop_if(|found| overlaps(found)) {
                Some(other) => other,
                None => match std::mem::replace(&mut self.literal, Literal::NotSearched) {
                    Literal::Searched(Some(other)) if overlaps(&other) => other,
                    literal => {
                        self.literal = literal;
                        return Some(next);
                    }
                },
            };
            next.join(other);
        }
    }
}

/// True if the text may have an escaped letter, digit or slash. Other escapes hide no digit of an encoding.
fn has_escapes(text: &[u8]) -> bool {
    memchr::memchr_iter(b'\\', text).any(|at| matches!(text.get(at + 1), Some(b'u' | b'/')))
}

/// Returns the secrets that the decoded text has, by their places in the text. Secrets without an escape are left out.
fn unescaped_secrets(redactor: &Redactor, text: &[u8]) -> Vec<Found> {
    let decoded = Decoded::new(text);
    let mut secrets = Vec::new();
    let mut from = 0;
    while let Some(found) = redactor.find_next(&decoded.text, from, Content::Text) {
        from = found.range.end.max(from + 1);
        let found = found.map(|range| decoded.original(range));
        if memchr::memchr(b'\\', &text[found.range.clone()]).is_some() {
            secrets.push(found);
        }
    }
    secrets
}

/// A text without the escapes of JSON.
struct Decoded {
    text: Vec<u8>,
    /// For each byte, where the character or the escape starts in the original. The last one is the length of the original.
    starts: Vec<usize>,
}

impl Decoded {
    fn new(original: &[u8]) -> Self {
        let (mut text, mut starts) = (Vec::with_capacity(original.len()), Vec::with_capacity(original.len() + 1));
        let mut at = 0;
        while at < original.len() {
            let rest = &original[at..];
            let (character, length) = escape(rest).map_or((None, 1), |(character, length)| (Some(character), length));
            match character {
                Some(character) => text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
                None => text.push(rest[0]),
            }
            starts.resize(text.len(), at);
            at += length;
        }
        starts.push(original.len());
        Self { text, starts }
    }

    fn original(&self, range: Range<usize>) -> Range<usize> {
        let start = self.starts[range.start];
        // A range ends with the whole escape.
        let end =
            self.starts[range.end..].iter().find(|place| range.is_empty() || **place > self.starts[range.end - 1]);
        start..end.copied().unwrap_or(start)
    }
}
