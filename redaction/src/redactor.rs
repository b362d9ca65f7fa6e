//! Searches for secrets with compiled rules, and masks the matches.

use std::borrow::Cow;
use std::collections::BTreeSet;

use regex::bytes::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use crate::forms;
use crate::partial_secret::PartialSecret;
use crate::patterns::KEY_PATTERNS;

/// Replacement for a secret.
pub const MASK: &str = "[redacted]";

/// Name of the rule for configured secrets.
pub const CONFIGURED: &str = "configured_secret";

/// Length of the shortest secret that is redacted, in bytes. Shorter values occur in unrelated text.
pub const SHORTEST: usize = 4;

/// Largest compiled rule, in bytes. A value of 64 KiB stays below it.
const COMPILED_LIMIT: usize = 256 << 20;

/// A secret that is too long to compile into a search.
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

    /// True where nothing was masked.
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
    rules: Vec<Rule>,
    /// Matches wherever any rule matches: one pass finds all candidates.
    pub(crate) any: Regex,
    partial: PartialSecret,
    pub(crate) longest: usize,
    /// True where a mask is followed by the line breaks of the secret.
    preserves_lines: bool,
}

/// Whether a text is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The text is complete.
    Complete,
    /// The text is truncated, possibly inside a secret.
    Truncated,
}

#[derive(Clone)]
struct Rule {
    name: &'static str,
    regex: Regex,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} rules)", self.rules.len())
    }
}

impl Redactor {
    /// Compiles a redactor for these secrets and all [`KEY_PATTERNS`]. Ignores values shorter than [`SHORTEST`].
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<Self, RedactError> {
        let mut values: Vec<&str> = values.into_iter().filter(|value| value.len() >= SHORTEST).collect();
        // Longest first: otherwise a secret that is a prefix of another would leave the rest of that one unmasked.
        values.sort_by_key(|value| (std::cmp::Reverse(value.len()), *value));
        values.dedup();
        let bytes = values.iter().map(|value| value.len()).sum();
        let compile = |pattern: &str| {
            let mut builder = RegexBuilder::new(pattern);
            // Bytes, not characters: responses need not be UTF-8, and a secret in them must be found anyway.
            builder.unicode(false).size_limit(COMPILED_LIMIT).build().map_err(|_| RedactError { bytes })
        };
        let mut sources: Vec<(&'static str, String)> =
            values.iter().map(|value| (CONFIGURED, forms::all(value))).collect();
        sources.extend(KEY_PATTERNS.iter().map(|pattern| (pattern.name, pattern.regex.to_owned())));
        let rules = sources.iter().map(|(name, source)| Ok(Rule { name, regex: compile(source)? }));
        let any = sources.iter().map(|(_, source)| format!("(?:{source})")).collect::<Vec<_>>().join("|");
        let longest = values.first().map_or(0, |value| forms::longest(value));
        let beginnings: Vec<String> = values.iter().map(|value| forms::beginnings(value)).collect();
        let partial = PartialSecret::new(&beginnings, longest, COMPILED_LIMIT, |source| compile(source).ok());
        Ok(Self {
            rules: rules.collect::<Result<_, _>>()?,
            any: compile(&any)?,
            partial: partial.ok_or(RedactError { bytes })?,
            longest,
            preserves_lines: false,
        })
    }

    /// Preserves the number of lines: a mask is followed by the line breaks of the secret.
    #[must_use]
    pub fn with_line_breaks(self) -> Self {
        Self { preserves_lines: true, ..self }
    }

    /// Masks every secret in a text.
    pub fn text(&self, text: &str, applied: &mut Applied) -> String {
        match self.bytes(text.as_bytes(), applied) {
            Cow::Borrowed(_) => text.to_owned(),
            Cow::Owned(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        }
    }

    /// Masks every secret in complete bytes. For chunks, use [`RedactingStream`](crate::RedactingStream).
    pub fn bytes<'a>(&self, bytes: &'a [u8], applied: &mut Applied) -> Cow<'a, [u8]> {
        self.mask(bytes, End::Complete, applied)
    }

    /// Masks every secret in truncated bytes, including one that is cut off at the end. A remainder shorter than [`SHORTEST`]
    /// is removed without a mask, because it is rarely the start of a secret.
    pub fn truncated_bytes<'a>(&self, bytes: &'a [u8], applied: &mut Applied) -> Cow<'a, [u8]> {
        self.mask(bytes, End::Truncated, applied)
    }

    pub(crate) fn mask<'a>(&self, bytes: &'a [u8], end: End, applied: &mut Applied) -> Cow<'a, [u8]> {
        let partial = self.partial_secret(bytes, end);
        let limit = partial.map_or(bytes.len(), |(start, _)| start);
        let mut masked = Vec::new();
        let mut done = 0;
        // A match that starts inside the partial secret belongs to it, and the mask at the end covers it.
        for found in self.any.find_iter(bytes).take_while(|found| found.start() < limit) {
            masked.extend_from_slice(&bytes[done..found.start()]);
            self.mask_one(found.as_bytes(), &mut masked, applied);
            done = found.end();
        }
        if done == 0 && partial.is_none() {
            return Cow::Borrowed(bytes);
        }
        masked.extend_from_slice(&bytes[done.min(limit)..limit]);
        if let Some((start, name)) = partial {
            Self::mask_partial(bytes.len() - start.max(done).min(bytes.len()), name, &mut masked, applied);
        }
        Cow::Owned(masked)
    }

    /// Returns the start of a truncated secret and the name of its rule.
    fn partial_secret(&self, bytes: &[u8], end: End) -> Option<(usize, &'static str)> {
        if end == End::Truncated { self.partial.find(bytes) } else { None }
    }

    /// Writes the mask for the first `length` bytes of a secret, if they are long enough.
    fn mask_partial(length: usize, name: &'static str, masked: &mut Vec<u8>, applied: &mut Applied) {
        if length >= SHORTEST {
            applied.0.insert(name);
            masked.extend_from_slice(MASK.as_bytes());
        }
    }

    /// Masks every secret in the strings, keys and numbers of a JSON value. The result is valid JSON.
    pub fn json(&self, value: &mut Value, applied: &mut Applied) {
        match value {
            Value::String(text) => {
                if self.any.is_match(text.as_bytes()) {
                    *text = self.text(text, applied);
                }
            }
            // A number that contains a secret becomes a string.
            Value::Number(number) => {
                let text = number.to_string();
                if self.any.is_match(text.as_bytes()) {
                    *value = Value::String(self.text(&text, applied));
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

    /// Masks one match of `any`: the first group of the matching rule, or the complete match.
    pub(crate) fn mask_one(&self, found: &[u8], masked: &mut Vec<u8>, applied: &mut Applied) {
        // `any` does not report which rule matched. Matches are rare, so a second search costs less than capture groups.
        let matched = self.rules.iter().find_map(|rule| Some((rule.name, rule.regex.captures(found)?)));
        let Some((name, captures)) = matched else {
            self.mask_bytes(found, masked);
            return;
        };
        applied.0.insert(name);
        let secret = captures.get(1).map_or(0..found.len(), |secret| secret.range());
        masked.extend_from_slice(&found[..secret.start]);
        self.mask_bytes(&found[secret.clone()], masked);
        masked.extend_from_slice(&found[secret.end..]);
    }

    pub(crate) fn mask_bytes(&self, secret: &[u8], masked: &mut Vec<u8>) {
        masked.extend_from_slice(MASK.as_bytes());
        self.push_line_breaks(secret, masked);
    }

    /// Writes the line breaks of removed text, if lines are preserved.
    pub(crate) fn push_line_breaks(&self, removed: &[u8], masked: &mut Vec<u8>) {
        if self.preserves_lines {
            masked.extend(removed.iter().filter(|byte| **byte == b'\n'));
        }
    }
}
