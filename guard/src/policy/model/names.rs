//! Patterns over the names of servers and tools, compiled together for all rules.

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use super::glob::{InvalidGlob, glob_to_regex};

/// Longest name that patterns are matched with, in bytes. The protocol recommends at most 128 characters.
pub const MAX_NAME_BYTES: usize = 1024;

/// Largest compiled form of one pattern, and of all patterns over one kind of name.
const MAX_PATTERN_SIZE: usize = 1 << 20;
const MAX_SET_SIZE: usize = 16 << 20;

/// Why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPattern {
    #[error(transparent)]
    Glob(#[from] InvalidGlob),
    /// The regular expression is empty, and matches every name.
    #[error("the regular expression is empty and matches every name")]
    EmptyRegex,
    /// The regular expression is invalid.
    #[error("invalid regular expression: {0}")]
    Regex(String),
    /// The pattern is too large when compiled.
    #[error("the pattern is too large when compiled")]
    TooLarge,
}

/// The patterns of one rule within [`NamePatterns`]: a range of indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternRange {
    first: usize,
    end: usize,
}

/// Whether a name matches the patterns of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameMatch {
    /// One of the patterns matches, or there are none.
    Yes,
    /// None of the patterns matches.
    No,
    /// The name is too long to be matched.
    TooLong,
}

/// The patterns of all rules over one kind of name.
#[derive(Debug, Clone, Default)]
pub struct NamePatterns {
    set: RegexSet,
}

#[derive(Debug)]
pub struct MatchedPatterns(Option<regex::SetMatches>);

/// Collects patterns.
#[derive(Debug, Default)]
pub struct NamePatternsBuilder {
    regexes: Vec<String>,
}

impl NamePatternsBuilder {
    pub fn add_glob(&mut self, glob: &str) -> Result<(), InvalidPattern> {
        self.add(glob_to_regex(glob)?)
    }

    /// Adds a regular expression, which matches any part of a name.
    pub fn add_regex(&mut self, regex: &str) -> Result<(), InvalidPattern> {
        if regex.is_empty() {
            return Err(InvalidPattern::EmptyRegex);
        }
        self.add(regex.to_owned())
    }

    fn add(&mut self, regex: String) -> Result<(), InvalidPattern> {
        compile(&regex)?;
        self.regexes.push(regex);
        Ok(())
    }

    /// The number of patterns.
    pub fn len(&self) -> usize {
        self.regexes.len()
    }

    /// True if there are no patterns.
    pub fn is_empty(&self) -> bool {
        self.regexes.is_empty()
    }

    /// The patterns that were added since there were `first` of them.
    pub fn since(&self, first: usize) -> PatternRange {
        PatternRange { first, end: self.regexes.len() }
    }

    /// Compiles all patterns. Fails if they are too large together.
    pub fn build(&self) -> Result<NamePatterns, InvalidPattern> {
        let set = RegexSetBuilder::new(&self.regexes).size_limit(MAX_SET_SIZE).build();
        Ok(NamePatterns { set: set.map_err(|error| invalid(&error))? })
    }
}

fn compile(regex: &str) -> Result<Regex, InvalidPattern> {
    RegexBuilder::new(regex).size_limit(MAX_PATTERN_SIZE).build().map_err(|error| invalid(&error))
}

fn invalid(error: &regex::Error) -> InvalidPattern {
    match error {
        regex::Error::CompiledTooBig(_) => InvalidPattern::TooLarge,
        error => {
            // The last line of a syntax error has the reason; those before repeat the expression.
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default();
            InvalidPattern::Regex(reason.trim_start_matches("error: ").to_owned())
        }
    }
}

impl NamePatterns {
    pub fn matches(&self, name: &str) -> MatchedPatterns {
        MatchedPatterns((name.len() <= MAX_NAME_BYTES).then(|| self.set.matches(name)))
    }
}

impl MatchedPatterns {
    /// Returns the result for the patterns of one rule; `None` matches every name.
    pub fn of(&self, patterns: Option<&PatternRange>) -> NameMatch {
        match (patterns, &self.0) {
            (None, _) => NameMatch::Yes,
            (Some(_), None) => NameMatch::TooLong,
            (Some(range), Some(matched)) if (range.first..range.end).any(|index| matched.matched(index)) => {
                NameMatch::Yes
            }
            _ => NameMatch::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_sees_its_own_patterns() {
        let mut builder = NamePatternsBuilder::default();
        builder.add_glob("git_*").unwrap();
        builder.add_regex("push$").unwrap();
        let (first, second) = (builder.since(0), builder.len());
        builder.add_glob("read").unwrap();
        let second = builder.since(second);
        let patterns = builder.build().unwrap();
        let found = |name: &str| {
            let matched = patterns.matches(name);
            [matched.of(Some(&first)), matched.of(Some(&second)), matched.of(None)]
        };
        assert_eq!(found("git_a"), [NameMatch::Yes, NameMatch::No, NameMatch::Yes]);
        assert_eq!(found("xpush"), [NameMatch::Yes, NameMatch::No, NameMatch::Yes]);
        assert_eq!(found("read"), [NameMatch::No, NameMatch::Yes, NameMatch::Yes]);
        assert_eq!(found(&"x".repeat(2000)), [NameMatch::TooLong, NameMatch::TooLong, NameMatch::Yes]);
    }

    #[test]
    fn patterns_that_are_empty_invalid_or_too_large_are_refused() {
        let mut builder = NamePatternsBuilder::default();
        assert_eq!(builder.add_regex(""), Err(InvalidPattern::EmptyRegex));
        assert_eq!(builder.add_regex("a("), Err(InvalidPattern::Regex("unclosed group".to_owned())));
        assert_eq!(builder.add_regex("(\\w{100}){100}"), Err(InvalidPattern::TooLarge));
        assert!(builder.is_empty());
        for index in 0..100 {
            builder.add_regex(&format!("\\w{{10}}{index}(\\pL{{10}})?")).unwrap();
        }
        assert_eq!(builder.build().unwrap_err(), InvalidPattern::TooLarge);
    }
}
