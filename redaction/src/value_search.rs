//! Finds configured values, complete or cut off at the end of a text.

use std::ops::Range;
use std::sync::Arc;

use crate::candidates;
use crate::escapes::INTRODUCERS;
use crate::matcher::{Encoders, Matcher, is_base64_digit};
use crate::needle::{self, Content, Digits, Escaped, Needle};
use crate::redactor::SHORTEST;
use crate::variants::Variants;

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
        let escapable = (0..needles.len()).filter(|index| needles[*index].encoders() != Encoders::None).collect();
        let longest = values.whole.iter().map(|value| value.len() * LONGEST).max().unwrap_or_default();
        Self(Arc::new(Forms { escaped: needle::escaped(&needles), needles, by_first_byte, escapable, longest }))
    }

    /// Returns patterns that match wherever a form may start.
    pub(super) fn candidates(&self) -> Vec<String> {
        candidates::patterns(&self.0.needles).into_iter().collect()
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
        let (end, shares_first) = complete.max()?;
        Some(at - usize::from(shares_first)..end)
    }

    /// True where the text ends inside a form that starts at a place, and its beginning is long enough.
    pub(super) fn is_cut(&self, text: &[u8], start: usize, beginning: Beginning) -> bool {
        let mut matcher = Matcher::new(text, start);
        let is_cut = |needle: &Needle| {
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
