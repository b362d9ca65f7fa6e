//! Patterns over the names of servers and tools: globs and regular expressions, compiled together for all rules.

use std::fmt::Write as _;

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

/// Longest name that patterns are matched with, in bytes. The protocol recommends at most 128 characters.
pub const MAX_NAME_BYTES: usize = 1024;

/// Largest compiled form of one pattern, and of all patterns over one kind of name.
const MAX_PATTERN_SIZE: usize = 1 << 20;
const MAX_SET_SIZE: usize = 16 << 20;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPattern {
    #[error(transparent)]
    Glob(#[from] InvalidGlob),
    #[error("the regular expression is empty and matches every name")]
    EmptyRegex,
    #[error("invalid regular expression: {0}")]
    Regex(String),
    #[error("the pattern is too large when compiled")]
    TooLarge,
}

/// The patterns of one rule within [`NamePatterns`]: a range of indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternRange {
    first: usize,
    end: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameMatch {
    Yes,
    No,
    TooLong,
}

#[derive(Debug, Clone, Default)]
pub struct NamePatterns {
    set: RegexSet,
}

#[derive(Debug)]
pub struct MatchedPatterns(Option<regex::SetMatches>);

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
        // An empty expression would match every name, and is more likely a mistake than a rule for everything.
        if regex.is_empty() {
            return Err(InvalidPattern::EmptyRegex);
        }
        self.add(regex.to_owned())
    }

    fn add(&mut self, regex: String) -> Result<(), InvalidPattern> {
        // Each pattern alone, so that an error names it. The set below is compiled once for all.
        compile(&regex)?;
        self.regexes.push(regex);
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.regexes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.regexes.is_empty()
    }

    pub fn since(&self, first: usize) -> PatternRange {
        PatternRange { first, end: self.regexes.len() }
    }

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
        // Matching is linear in the name, but an agent chooses the name.
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

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidGlob {
    #[error("the glob is empty and matches no name")]
    Empty,
    #[error("the class that starts with `[` at character {0} has no end")]
    OpenClass(usize),
    #[error("the class at character {0} is invalid")]
    BadClass(usize),
    #[error("the backslash at the end escapes nothing")]
    OpenEscape,
}

pub fn glob_to_regex(glob: &str) -> Result<String, InvalidGlob> {
    if glob.is_empty() {
        return Err(InvalidGlob::Empty);
    }
    let chars: Vec<char> = glob.chars().collect();
    // Not the crate `globset`: there, `{` is special, `!` negates a class, and a class may start with `]`. A policy that means
    // these characters would match other names.
    let mut regex = String::from("(?s)\\A");
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        at += 1;
        match c {
            // Also `/`: a tool named `delete_a/b` would otherwise pass a rule for `delete_*`.
            '*' => regex.push_str(".*"),
            '?' => regex.push('.'),
            '[' => at = class(&chars, at, &mut regex)?,
            '\\' => {
                literal(*chars.get(at).ok_or(InvalidGlob::OpenEscape)?, &mut regex);
                at += 1;
            }
            c => literal(c, &mut regex),
        }
    }
    regex.push_str("\\z");
    Ok(regex)
}

/// Writes the class that starts before `at`, and returns the index after it.
fn class(chars: &[char], mut at: usize, regex: &mut String) -> Result<usize, InvalidGlob> {
    let (start, mut is_empty) = (at, true);
    let open = InvalidGlob::OpenClass(start);
    regex.push('[');
    // Not `!`, which `path.Match` takes for an ordinary character.
    if chars.get(at) == Some(&'^') {
        regex.push('^');
        at += 1;
    }
    loop {
        if chars.get(at) == Some(&']') && !is_empty {
            regex.push(']');
            return Ok(at + 1);
        }
        let low = class_char(chars, &mut at, start)?;
        let mut high = low;
        if chars.get(at) == Some(&'-') {
            at += 1;
            high = class_char(chars, &mut at, start)?;
        }
        if high < low {
            return Err(InvalidGlob::BadClass(start));
        }
        // As code points, so that no character is special in the regular expression.
        let _ = write!(regex, "\\x{{{:x}}}-\\x{{{:x}}}", u32::from(low), u32::from(high));
        is_empty = false;
        if at >= chars.len() {
            return Err(open);
        }
    }
}

fn class_char(chars: &[char], at: &mut usize, start: usize) -> Result<char, InvalidGlob> {
    let mut c = *chars.get(*at).ok_or(InvalidGlob::OpenClass(start))?;
    *at += 1;
    match c {
        '\\' => {
            c = *chars.get(*at).ok_or(InvalidGlob::OpenEscape)?;
            *at += 1;
        }
        ']' | '-' => return Err(InvalidGlob::BadClass(start)),
        _ => {}
    }
    Ok(c)
}

fn literal(c: char, regex: &mut String) {
    let _ = write!(regex, "\\x{{{:x}}}", u32::from(c));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

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

    fn matches(glob: &str, name: &str) -> bool {
        Regex::new(&glob_to_regex(glob).unwrap()).unwrap().is_match(name)
    }

    #[test]
    fn globs_match_whole_names() {
        for (glob, name) in [
            ("*", "any/thing\nat all"),
            ("*", ""),
            ("git_*", "git_push"),
            ("git_*", "git_a/b"),
            ("g?t", "gét"),
            ("[a-c]x", "bx"),
            ("[^a-c]x", "dx"),
            ("[\\]]", "]"),
            ("a\\*b", "a*b"),
            ("a.b", "a.b"),
            ("{a,b}", "{a,b}"),
        ] {
            assert!(matches(glob, name), "{glob} {name}");
        }
        for (glob, name) in [
            ("git_*", "xgit_push"),
            ("git", "git_push"),
            ("g?t", "gt"),
            ("[^a-c]x", "ax"),
            ("a\\*b", "axb"),
            ("a.b", "axb"),
            ("GIT_*", "git_push"),
        ] {
            assert!(!matches(glob, name), "{glob} {name}");
        }
    }

    #[test]
    fn invalid_globs_are_refused() {
        for (glob, error) in [
            ("", InvalidGlob::Empty),
            ("a[", InvalidGlob::OpenClass(2)),
            ("a[b", InvalidGlob::OpenClass(2)),
            ("[]", InvalidGlob::BadClass(1)),
            ("[b-a]", InvalidGlob::BadClass(1)),
            ("[a-]", InvalidGlob::BadClass(1)),
            ("a\\", InvalidGlob::OpenEscape),
            ("[\\", InvalidGlob::OpenEscape),
        ] {
            assert_eq!(glob_to_regex(glob), Err(error), "{glob}");
        }
    }

    proptest! {
        #[test]
        fn every_glob_is_refused_or_compiles(glob in "[\\[\\]^*?\\\\a-c/é{}.&~-]{0,12}") {
            if let Ok(regex) = glob_to_regex(&glob) {
                prop_assert!(Regex::new(&regex).is_ok(), "{} {}", glob, regex);
            }
        }

        #[test]
        fn an_escaped_name_matches_itself_only(name in "[*?\\[\\]a-b/]{1,8}", other in "[*?\\[\\]a-b/]{1,8}") {
            let escaped: String = name.chars().flat_map(|c| ['\\', c]).collect();
            prop_assert!(matches(&escaped, &name));
            prop_assert_eq!(matches(&escaped, &other), name == other);
        }
    }
}
