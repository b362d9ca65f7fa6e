//! Finds keys of known shapes in a text without masking them.

use std::ops::Range;

use regex::bytes::{Regex, RegexBuilder};

use crate::patterns::KEY_PATTERNS;
use crate::redactor::{MASK, RedactError};

/// A compiled search for all [`KEY_PATTERNS`].
#[derive(Debug, Clone)]
pub struct KeyFinder {
    /// Matches wherever any pattern matches: most texts are read once, by this one.
    any: Regex,
    patterns: Vec<(&'static str, Regex)>,
}

/// A key in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyMatch {
    /// The name of its pattern.
    pub name: &'static str,
    /// The bytes of the key.
    pub range: Range<usize>,
}

impl KeyFinder {
    /// Compiles the patterns.
    pub fn new() -> Result<Self, RedactError> {
        let compile = |source: &str| {
            RegexBuilder::new(source).unicode(false).build().map_err(|_| RedactError { bytes: source.len() })
        };
        let all: Vec<_> = KEY_PATTERNS.iter().map(|pattern| format!("(?:{})", pattern.regex)).collect();
        let patterns = KEY_PATTERNS.iter().map(|pattern| Ok((pattern.name, compile(pattern.regex)?)));
        Ok(Self { any: compile(&all.join("|"))?, patterns: patterns.collect::<Result<_, _>>()? })
    }

    /// The keys in a text, in their order. A key that is masked already is none.
    pub fn find<'a>(&'a self, text: &'a str) -> impl Iterator<Item = KeyMatch> + 'a {
        self.any.find_iter(text.as_bytes()).filter_map(|found| {
            let bytes = found.as_bytes();
            let (name, key) = self.patterns.iter().find_map(|(name, regex)| {
                let captures = regex.captures(bytes)?;
                Some((*name, captures.get(1).or_else(|| captures.get(0))?.range()))
            })?;
            let is_masked = bytes.windows(MASK.len()).any(|window| window == MASK.as_bytes());
            (!is_masked).then(|| KeyMatch { name, range: found.start() + key.start..found.start() + key.end })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Applied, Redactor};

    #[test]
    fn keys_are_found_where_the_redactor_would_mask_them() {
        let finder = KeyFinder::new().unwrap();
        let text = "use ghp_0123456789abcdefghijklmnopqrstuvwxyz and postgres://app:hunter22@db/x";
        let found: Vec<_> = finder.find(text).map(|key| (key.name, &text[key.range])).collect();
        let expected = [("github_token", "ghp_0123456789abcdefghijklmnopqrstuvwxyz"), ("url_password", "hunter22")];
        assert_eq!(found, expected);
    }

    #[test]
    fn masked_keys_are_not_found() {
        let redactor = Redactor::new(["hunter22-secret"]).unwrap();
        let text = "ghp_0123456789abcdefghijklmnopqrstuvwxyz https://u:pa55word@host Bearer abcdefghijklmnopqrstuvwx";
        let masked = redactor.text(text, &mut Applied::default());
        assert_eq!(KeyFinder::new().unwrap().find(&masked).collect::<Vec<_>>(), []);
    }
}
