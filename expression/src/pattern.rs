//! Regular expressions of bounded size.

use regex::{Regex, RegexBuilder};

/// Maximum size of a compiled regular expression, in bytes.
const MAX_COMPILED_BYTES: usize = 256 * 1024;

/// Compiled size up to which a match is cheap, in bytes.
const SMALL_BYTES: usize = 16 * 1024;

/// Cost of a match with a larger regular expression, relative to a small one.
const LARGE_WEIGHT: u64 = (MAX_COMPILED_BYTES / SMALL_BYTES) as u64;

/// Maximum size of the cache for matching, in bytes.
const MAX_DFA_BYTES: usize = 2 * 1024 * 1024;

/// A compiled regular expression, and the cost of a match relative to a small one.
#[derive(Debug)]
pub(crate) struct Matcher {
    regex: Regex,
    weight: u64,
}

/// An invalid or too large regular expression. The message is one line.
#[derive(Debug, thiserror::Error)]
#[error("not a valid regular expression: {0}")]
pub(crate) struct PatternError(String);

impl Matcher {
    /// Compiles a regular expression.
    pub(crate) fn compile(pattern: &str) -> Result<Self, PatternError> {
        let build = |limit: usize| RegexBuilder::new(pattern).size_limit(limit).dfa_size_limit(MAX_DFA_BYTES).build();
        // The worst-case time of a match grows with the compiled size, so a large one costs more steps.
        let small = build(SMALL_BYTES).map(|regex| Self { regex, weight: 1 });
        let matcher = small.or_else(|_| build(MAX_COMPILED_BYTES).map(|regex| Self { regex, weight: LARGE_WEIGHT }));
        matcher.map_err(|error| {
            let text = error.to_string();
            let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            PatternError(last.trim().trim_start_matches("error: ").to_owned())
        })
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }
}
