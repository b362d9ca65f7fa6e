//! A parsed pattern.

use super::braces::expand;
use super::characters::Characters;

/// Longest pattern in bytes. Its start is an absolute path, as long as the system allows.
const MAX_BYTES: usize = 8192;

/// A text that is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::resources) enum PatternError {
    #[error("the pattern is empty")]
    Empty,
    #[error("the pattern has {0} bytes; at most {MAX_BYTES} are allowed")]
    TooLong(usize),
    #[error("the pattern has an empty name: write it without `/` at its end, and without `//`")]
    EmptyName,
    #[error("the pattern has the name `{0}`; write the path without it")]
    Dots(String),
    #[error("`**` next to other characters; write it as a whole name, such as `src/**/x.rs`")]
    DoubleStar,
    #[error("the set `[` is not closed by `]`")]
    OpenSet,
    #[error("the set `[{0}]` is empty or has a range in the wrong order")]
    InvalidSet(String),
    #[error("the pattern ends with `\\`")]
    OpenEscape,
    #[error("`{0}` has no counterpart; write `\\{0}` for the character")]
    Unbalanced(char),
    #[error("the braces stand for more than {limit} patterns")]
    TooManyAlternatives { limit: usize },
    #[error("the pattern contains NUL")]
    Nul,
}

/// A part of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// One character of a set.
    One(Characters),
    /// Any characters.
    Star,
}

/// A name of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name {
    /// `**`: any number of names.
    Any,
    Tokens(Vec<Token>),
}

impl Name {
    /// True if some name matches.
    pub(super) fn is_satisfiable(&self) -> bool {
        match self {
            Name::Any => true,
            Name::Tokens(tokens) => {
                tokens.iter().all(|token| !matches!(token, Token::One(characters) if characters.is_empty()))
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::resources) struct PathPattern {
    /// One list of names for each alternative.
    alternatives: Vec<Vec<Name>>,
}

impl PathPattern {
    /// Parses a pattern. A slash at its start is allowed: the pattern of an absolute path.
    pub(in crate::resources) fn parse(text: &str) -> Result<Self, PatternError> {
        if text.len() > MAX_BYTES {
            return Err(PatternError::TooLong(text.len()));
        }
        if text.contains('\0') {
            return Err(PatternError::Nul);
        }
        let alternatives = expand(text)?.iter().map(|pattern| names(pattern)).collect::<Result<_, _>>()?;
        Ok(Self { alternatives })
    }

    /// Returns the number of patterns without braces.
    pub(in crate::resources) fn alternatives(&self) -> usize {
        self.alternatives.len()
    }

    /// True if some path matches both patterns.
    pub(in crate::resources) fn intersects(&self, other: &Self) -> bool {
        self.alternatives.iter().any(|a| other.alternatives.iter().any(|b| super::intersection::of_paths(a, b)))
    }

    #[cfg(test)]
    pub(super) fn names(&self) -> &[Vec<Name>] {
        &self.alternatives
    }
}

/// Escapes a path, so that it is a pattern of exactly this path.
pub(in crate::resources) fn escape(path: &str) -> String {
    let mut escaped = String::with_capacity(path.len());
    for char in path.chars() {
        if r"*?[]{},\".contains(char) {
            escaped.push('\\');
        }
        escaped.push(char);
    }
    escaped
}

fn names(pattern: &str) -> Result<Vec<Name>, PatternError> {
    let pattern = pattern.strip_prefix('/').unwrap_or(pattern);
    if pattern.is_empty() {
        return Err(PatternError::Empty);
    }
    // A slash in a set ends the name and leaves the set open, which is an error: no name has a slash.
    pattern.split('/').map(name).collect()
}

fn name(text: &str) -> Result<Name, PatternError> {
    match text {
        "" => return Err(PatternError::EmptyName),
        "." | ".." => return Err(PatternError::Dots(text.to_owned())),
        "**" => return Ok(Name::Any),
        _ => {}
    }
    let (mut tokens, mut chars) = (Vec::new(), text.chars().peekable());
    while let Some(char) = chars.next() {
        tokens.push(match char {
            '*' if chars.peek() == Some(&'*') => return Err(PatternError::DoubleStar),
            '*' => Token::Star,
            '?' => Token::One(Characters::any()),
            '[' => Token::One(set(&mut chars)?),
            '\\' => Token::One(Characters::one(chars.next().ok_or(PatternError::OpenEscape)?)),
            char => Token::One(Characters::one(char)),
        });
    }
    Ok(Name::Tokens(tokens))
}

/// Parses a set after its opening bracket.
fn set(chars: &mut impl Iterator<Item = char>) -> Result<Characters, PatternError> {
    let (mut text, mut members) = (String::new(), Vec::new());
    loop {
        match chars.next().ok_or(PatternError::OpenSet)? {
            // A closing bracket at the start is a member.
            ']' if !members.is_empty() => break,
            char => {
                text.push(char);
                let is_negation = matches!(char, '!' | '^') && text.chars().count() == 1;
                if !is_negation {
                    members.push(if char == '\\' { chars.next().ok_or(PatternError::OpenSet)? } else { char });
                }
            }
        }
    }
    let (mut ranges, mut at) = (Vec::new(), 0);
    while let Some(&from) = members.get(at) {
        let is_range = members.get(at + 1) == Some(&'-') && at + 2 < members.len();
        let to = if is_range { members[at + 2] } else { from };
        if to < from {
            return Err(PatternError::InvalidSet(text));
        }
        ranges.push((from, to));
        at += if is_range { 3 } else { 1 };
    }
    let set = Characters::ranges(&ranges);
    Ok(if text.starts_with(['!', '^']) { set.complement() } else { set })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_patterns_are_errors() {
        for (pattern, error) in [
            ("", PatternError::Empty),
            ("/", PatternError::Empty),
            ("a/", PatternError::EmptyName),
            ("a//b", PatternError::EmptyName),
            ("a/../b", PatternError::Dots("..".to_owned())),
            ("{a,.}/b", PatternError::Dots(".".to_owned())),
            ("a**", PatternError::DoubleStar),
            ("***", PatternError::DoubleStar),
            ("[a", PatternError::OpenSet),
            ("[]", PatternError::OpenSet),
            ("[b-a]", PatternError::InvalidSet("b-a".to_owned())),
            ("a\\", PatternError::OpenEscape),
            ("{a", PatternError::Unbalanced('{')),
            ("a\0", PatternError::Nul),
        ] {
            assert_eq!(PathPattern::parse(pattern), Err(error), "{pattern:?}");
        }
        assert_eq!(PathPattern::parse(&"a".repeat(8193)), Err(PatternError::TooLong(8193)));
    }

    #[test]
    fn an_escaped_path_matches_only_itself() {
        let path = r"/a/[x]{1,2}*?\b,c";
        let pattern = PathPattern::parse(&escape(path)).unwrap();
        let expected: Vec<Name> = path[1..]
            .split('/')
            .map(|name| Name::Tokens(name.chars().map(|char| Token::One(Characters::one(char))).collect()))
            .collect();
        assert_eq!(pattern.names(), [expected]);
    }
}
