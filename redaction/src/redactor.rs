//! Searches for secrets with compiled rules, and masks the matches.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use counterproof_json_text::EscapeCursor;
use regex::bytes::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use crate::encodings::Variants;
use crate::patterns::{BROAD_PATTERNS, KEY_PATTERNS, KeyPattern};
use crate::search::Search;
use crate::value_search::{Beginning, ValueSearch};

/// Replacement for a secret.
pub const MASK: &str = "[redacted]";

/// Whether a text has the mark of a redaction, in the letter case of any of the programs that write it.
pub fn has_mark(text: &str) -> bool {
    let is_mark =
        |at: usize| text.as_bytes()[at..].get(..MASK.len()).is_some_and(|it| it.eq_ignore_ascii_case(MASK.as_bytes()));
    text.match_indices('[').any(|(at, _)| is_mark(at))
}

/// Name of the rule for configured secrets.
pub const CONFIGURED: &str = "configured_secret";

/// Length of the shortest secret that is redacted, in bytes. Shorter values occur in unrelated text.
pub const SHORTEST: usize = 4;

/// Largest compiled search, in bytes.
const COMPILED_LIMIT: usize = 256 << 20;

/// Largest memory of one running search, in bytes. With less, many values would make it restart often. With more, a single
/// body would take more memory than the runner promises.
const SEARCH_MEMORY: usize = 4 << 20;

/// Longest match of the search for candidates, in bytes, apart from keys.
const LONGEST_CANDIDATE: usize = 192;

/// An expression that matches no text.
const NOTHING: &str = r"[^\x00-\xff]";

/// Secrets that are too many to compile into a search.
#[derive(Debug, thiserror::Error)]
#[error("failed to compile the search for secrets of {bytes} bytes")]
pub struct RedactError {
    /// The total length of the secrets. Messages never contain a secret.
    pub bytes: usize,
}

/// The rules that masked something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied(BTreeSet<&'static str>);

impl Applied {
    /// The names of the rules, sorted.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().copied().collect()
    }

    /// Returns whether nothing was masked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the rules applied to another text.
    pub fn merge(&mut self, other: &Applied) {
        self.0.extend(&other.0);
    }
}

/// A compiled search for secrets. Cheap to clone; `Debug` prints no secret.
#[derive(Clone)]
pub struct Redactor {
    values: ValueSearch,
    keys: Vec<KeyRule>,
    /// Matches wherever a key is, and wherever a value may start: one pass finds all candidates.
    any: Regex,
    /// The replacement for a secret.
    mask: &'static str,
    /// True if a mask is followed by the line breaks of the secret.
    preserves_lines: bool,
}

/// A match in a text.
#[derive(Debug)]
pub(crate) struct Found {
    /// The bytes of the match.
    pub(crate) range: Range<usize>,
    /// The bytes to mask, in their order, and the rule of each.
    secrets: Vec<(Range<usize>, &'static str)>,
}

/// Whether a text is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Complete,
    /// The text is truncated, possibly inside a secret.
    Truncated,
}

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Any bytes.
    Text,
    /// The content of a JSON string, of which only whole escapes are masked.
    JsonString,
}

impl Found {
    /// Returns the match with other places.
    pub(crate) fn map(self, place: impl Fn(Range<usize>) -> Range<usize>) -> Self {
        let secrets = self.secrets.into_iter().map(|(secret, name)| (place(secret), name)).collect();
        Self { range: place(self.range), secrets }
    }

    /// Removes what is before a place. Returns false if nothing remains.
    pub(crate) fn clip(&mut self, from: usize) -> bool {
        self.range.start = self.range.start.max(from);
        self.secrets.retain_mut(|(secret, _)| {
            secret.start = secret.start.max(from);
            secret.start < secret.end
        });
        self.range.start < self.range.end && !self.secrets.is_empty()
    }

    /// Adds the secrets of a match that overlaps this one.
    pub(crate) fn join(&mut self, other: Self) {
        self.range = self.range.start.min(other.range.start)..self.range.end.max(other.range.end);
        self.secrets.extend(other.secrets);
        self.secrets.sort_by_key(|(secret, _)| secret.start);
        self.secrets.dedup_by(|(next, _), (secret, _)| {
            let overlaps = next.start < secret.end;
            if overlaps {
                secret.end = secret.end.max(next.end);
            }
            overlaps
        });
    }

    /// Extends the match and its secrets to the bounds of the escapes in which they start and end.
    fn with_whole_escapes(self, text: &[u8], first: usize) -> Self {
        let mut escapes = EscapeCursor::new(text, first);
        let start = escapes.start(self.range.start);
        let mut done = start;
        let mut secrets = Vec::with_capacity(self.secrets.len());
        for (secret, name) in self.secrets {
            let start = escapes.start(secret.start).max(done);
            done = escapes.end(secret.end).max(start);
            secrets.push((start..done, name));
        }
        Self { range: start..escapes.end(self.range.end).max(done), secrets }
    }
}

#[derive(Clone)]
struct KeyRule {
    name: &'static str,
    regex: Regex,
    /// A key that is cut off at the end of the text.
    truncated: Option<Regex>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} keys)", self.keys.len())
    }
}

impl Redactor {
    /// Compiles a redactor for these secrets and all [`KEY_PATTERNS`]. Ignores values shorter than [`SHORTEST`].
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<Self, RedactError> {
        Self::compile(values, &KEY_PATTERNS.iter().collect::<Vec<_>>())
    }

    /// Compiles a redactor as [`Redactor::new`] does, which masks all [`BROAD_PATTERNS`] as well.
    pub fn broad<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<Self, RedactError> {
        Self::compile(values, &KEY_PATTERNS.iter().chain(&BROAD_PATTERNS).collect::<Vec<_>>())
    }

    /// Compiles a redactor for these secrets alone, without the patterns of keys. For text whose reader needs everything else.
    pub fn of_values<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<Self, RedactError> {
        Self::compile(values, &[])
    }

    fn compile<'a>(values: impl IntoIterator<Item = &'a str>, patterns: &[&KeyPattern]) -> Result<Self, RedactError> {
        let values = Variants::new(values);
        let bytes = values.whole.iter().map(|value| value.len()).sum();
        let compile = |pattern: &str| {
            let mut builder = RegexBuilder::new(pattern);
            // Bytes, not characters: responses need not be UTF-8, and a secret in them must be found anyway.
            builder.unicode(false).size_limit(COMPILED_LIMIT).dfa_size_limit(SEARCH_MEMORY);
            // Without its cause, which quotes the pattern and with it the secrets.
            builder.build().map_err(|_| RedactError { bytes })
        };
        let keys = patterns.iter().map(|pattern| {
            // Only a key at the very end of the text can be cut off.
            let truncated = pattern.truncated.map(|source| compile(&format!("(?:{source})\\z"))).transpose()?;
            Ok(KeyRule { name: pattern.name, regex: compile(pattern.regex)?, truncated })
        });
        let keys = keys.collect::<Result<_, _>>()?;
        let values = ValueSearch::new(&values);
        // Compiled with the keys into one expression, so that nearly all text is read once.
        let candidates = values.candidates();
        // Keys first: a candidate for a value must not hide a key that starts at the same place.
        let sources = patterns.iter().map(|pattern| pattern.regex).chain(candidates.iter().map(String::as_str));
        // Without values and patterns, an empty expression would match everywhere.
        let nothing = (patterns.is_empty() && candidates.is_empty()).then_some(NOTHING);
        let any = sources.chain(nothing).map(|source| format!("(?:{source})")).collect::<Vec<_>>().join("|");
        Ok(Self { any: compile(&any)?, keys, values, mask: MASK, preserves_lines: false })
    }

    /// Preserves the number of lines: a mask is followed by the line breaks of the secret.
    #[must_use]
    pub fn with_line_breaks(self) -> Self {
        Self { preserves_lines: true, ..self }
    }

    /// Replaces secrets with another text than [`MASK`].
    #[must_use]
    pub fn with_mask(self, mask: &'static str) -> Self {
        Self { mask, ..self }
    }

    /// Returns the text that replaces a secret.
    pub fn replacement(&self) -> &'static str {
        self.mask
    }

    /// Masks every secret in a text.
    pub fn text(&self, text: &str, applied: &mut Applied) -> String {
        self.masked_text(text, applied).unwrap_or_else(|| text.to_owned())
    }

    /// Returns the masked text, if it has a secret.
    fn masked_text(&self, text: &str, applied: &mut Applied) -> Option<String> {
        match self.bytes(text.as_bytes(), applied) {
            Cow::Borrowed(_) => None,
            Cow::Owned(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Masks every secret in complete bytes. For chunks, use [`RedactingStream`](crate::RedactingStream).
    pub fn bytes<'a>(&self, bytes: &'a [u8], applied: &mut Applied) -> Cow<'a, [u8]> {
        self.mask(bytes, End::Complete, Content::Text, applied)
    }

    /// Masks every secret in the content of a JSON string, which stays the content of a JSON string.
    pub(crate) fn json_string<'a>(&self, content: &'a [u8], applied: &mut Applied) -> Cow<'a, [u8]> {
        self.mask(content, End::Complete, Content::JsonString, applied)
    }

    /// Masks every secret in truncated bytes, including one that is cut off at the end. A remainder shorter than [`SHORTEST`]
    /// is removed without a mask, because it is rarely the start of a secret.
    pub fn truncated_bytes<'a>(&self, bytes: &'a [u8], applied: &mut Applied) -> Cow<'a, [u8]> {
        self.mask(bytes, End::Truncated, Content::Text, applied)
    }

    pub(crate) fn mask<'a>(&self, bytes: &'a [u8], end: End, content: Content, applied: &mut Applied) -> Cow<'a, [u8]> {
        let partial = if end == End::Truncated { self.partial_secret(bytes) } else { None };
        let limit = partial.map_or(bytes.len(), |(start, _)| start);
        let mut masked = Vec::new();
        let mut done = 0;
        // A match that starts inside the partial secret belongs to it, and the mask at the end covers it.
        let mut search = Search::new(self, bytes, content);
        while let Some(found) = search.next(done).filter(|found| found.range.start < limit) {
            masked.extend_from_slice(&bytes[done..found.range.start]);
            self.mask_one(bytes, &found, &mut masked, applied);
            done = found.range.end;
        }
        if done == 0 && partial.is_none() {
            return Cow::Borrowed(bytes);
        }
        masked.extend_from_slice(&bytes[done.min(limit)..limit]);
        if let Some((start, name)) = partial {
            self.mask_partial(bytes.len() - start.max(done).min(bytes.len()), name, &mut masked, applied);
        }
        Cow::Owned(masked)
    }

    /// Returns the largest length of a form of a value in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.values.longest()
    }

    /// Returns the first secret from a place on, which is not within an escape. In a JSON string, a secret has whole escapes.
    pub(crate) fn find_next(&self, text: &[u8], first: usize, content: Content) -> Option<Found> {
        let found = self.find_at(text, first)?;
        Some(match content {
            Content::Text => found,
            Content::JsonString => found.with_whole_escapes(text, first),
        })
    }

    /// Returns the first secret from a place on.
    fn find_at(&self, text: &[u8], first: usize) -> Option<Found> {
        let mut at = first;
        loop {
            let candidate = self.any.find_at(text, at)?;
            let range = candidate.range();
            if let Some(range) = self.values.find(text, range.start, first) {
                return Some(Found { secrets: vec![(range.clone(), CONFIGURED)], range });
            }
            let bytes = candidate.as_bytes();
            let key = self.keys.iter().find_map(|key| Some((key.name, key.regex.captures(bytes)?)));
            if let Some((name, captures)) = key {
                let secret = captures.get(1).map_or(0..bytes.len(), |secret| secret.range());
                return Some(self.found_key(
                    text,
                    range.clone(),
                    range.start + secret.start..range.start + secret.end,
                    name,
                ));
            }
            // Not the end of the candidate: a secret can start within it.
            at = range.start + 1;
        }
    }

    /// Returns a key, together with the values in the part of the match before it, such as the user name of a URL.
    fn found_key(&self, text: &[u8], range: Range<usize>, secret: Range<usize>, name: &'static str) -> Found {
        let mut secrets: Vec<(Range<usize>, &'static str)> = Vec::new();
        let (mut at, mut done) = (range.start, range.start);
        while at < secret.start {
            if let Some(value) = self.values.find(text, at, done) {
                (at, done) = (value.end, value.end);
                secrets.push((value, CONFIGURED));
            } else {
                at += 1;
            }
        }
        // A value can reach into the key. Then the rest of the key is masked as well.
        if done < secret.end {
            secrets.push((done.max(secret.start)..secret.end, name));
        }
        Found { range: range.start..range.end.max(done), secrets }
    }

    /// Returns the start of a secret that is cut off at the end of the text, and the name of its rule.
    fn partial_secret(&self, text: &[u8]) -> Option<(usize, &'static str)> {
        let value = self.cut_value(text, Beginning::Revealing).map(|start| (start, CONFIGURED));
        let keys = self.keys.iter().filter_map(|key| {
            let found = key.truncated.as_ref()?.captures(text)?;
            Some((found.get(1).or(found.get(0))?.start(), key.name))
        });
        value.into_iter().chain(keys).min_by_key(|(start, _)| *start)
    }

    /// Returns the start of a value that is cut off at the end of the text.
    fn cut_value(&self, text: &[u8], beginning: Beginning) -> Option<usize> {
        // A form that is cut off is shorter than the longest form, so earlier starts need no search. Where the text goes on
        // for long enough, every form starts at a candidate.
        let mut at = text.len().saturating_sub(self.values.longest());
        let end = text.len().saturating_sub(LONGEST_CANDIDATE);
        while let Some(candidate) = self.any.find_at(text, at).filter(|candidate| candidate.start() < end) {
            if self.values.is_cut(text, candidate.start(), beginning) {
                return Some(candidate.start());
            }
            at = candidate.start() + 1;
        }
        (at.max(end)..text.len()).find(|start| self.values.is_cut(text, *start, beginning))
    }

    /// Returns the place from which on a text that goes on may have a value that it does not have yet.
    pub(crate) fn open_value(&self, text: &[u8]) -> usize {
        // The digit of base64 before a form can have bits of it.
        self.cut_value(text, Beginning::Any).map_or(text.len(), |start| start.saturating_sub(1))
    }

    /// Writes the mask for the first `length` bytes of a secret, if they are long enough.
    fn mask_partial(&self, length: usize, name: &'static str, masked: &mut Vec<u8>, applied: &mut Applied) {
        if length >= SHORTEST {
            applied.0.insert(name);
            masked.extend_from_slice(self.mask.as_bytes());
        }
    }

    /// Masks every secret in the strings, keys and numbers of a JSON value. The result is valid JSON.
    pub fn json(&self, value: &mut Value, applied: &mut Applied) {
        match value {
            Value::String(text) => {
                if let Some(masked) = self.masked_text(text, applied) {
                    *text = masked;
                }
            }
            // A number that contains a secret becomes a string.
            Value::Number(number) => {
                if let Some(masked) = self.masked_text(&number.to_string(), applied) {
                    *value = Value::String(masked);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.json(item, applied)),
            Value::Object(fields) => self.object(fields, applied),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Masks every secret in the keys and values of an object.
    pub fn object(&self, fields: &mut Map<String, Value>, applied: &mut Applied) {
        if fields.keys().any(|name| self.any.is_match(name.as_bytes())) {
            for (name, value) in std::mem::take(fields) {
                let mut name = self.text(&name, applied);
                // Keys that differ only in their secrets must not overwrite each other.
                while fields.contains_key(&name) {
                    name.push('+');
                }
                fields.insert(name, value);
            }
        }
        fields.values_mut().for_each(|value| self.json(value, applied));
    }

    /// Writes one match with its secrets masked.
    pub(crate) fn mask_one(&self, text: &[u8], found: &Found, masked: &mut Vec<u8>, applied: &mut Applied) {
        let mut done = found.range.start;
        for (secret, name) in &found.secrets {
            applied.0.insert(name);
            masked.extend_from_slice(&text[done..secret.start]);
            self.mask_bytes(&text[secret.clone()], masked);
            done = secret.end;
        }
        masked.extend_from_slice(&text[done..found.range.end]);
    }

    pub(crate) fn mask_bytes(&self, secret: &[u8], masked: &mut Vec<u8>) {
        masked.extend_from_slice(self.mask.as_bytes());
        self.push_line_breaks(secret, masked);
    }

    /// Writes the line breaks of removed text, if lines are preserved.
    pub(crate) fn push_line_breaks(&self, removed: &[u8], masked: &mut Vec<u8>) {
        if self.preserves_lines {
            masked.extend(removed.iter().filter(|byte| **byte == b'\n'));
        }
    }
}
