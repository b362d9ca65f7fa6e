//! Globs over names of servers and tools.
//!
//! The syntax is that of Go's `path.Match` with one difference: `*` and `?` also match `/`. A tool named `delete_a/b` would otherwise
//! pass a rule for `delete_*`.

use std::fmt::Write as _;

/// Why a text is not a glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidGlob {
    /// It is empty, and matches no name.
    #[error("the glob is empty and matches no name")]
    Empty,
    /// A `[` without its `]`.
    #[error("the class that starts with `[` at character {0} has no end")]
    OpenClass(usize),
    /// A class without characters, or a range whose end comes before its start.
    #[error("the class at character {0} is invalid")]
    BadClass(usize),
    /// A backslash at the end.
    #[error("the backslash at the end escapes nothing")]
    OpenEscape,
}

/// Translates a glob into a regular expression that matches whole names.
pub fn glob_to_regex(glob: &str) -> Result<String, InvalidGlob> {
    if glob.is_empty() {
        return Err(InvalidGlob::Empty);
    }
    let chars: Vec<char> = glob.chars().collect();
    let mut regex = String::from("(?s)\\A");
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        at += 1;
        match c {
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
        let _ = write!(regex, "\\x{{{:x}}}-\\x{{{:x}}}", u32::from(low), u32::from(high));
        is_empty = false;
        if at >= chars.len() {
            return Err(open);
        }
    }
}

/// Reads one character of a class, which may be escaped.
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
