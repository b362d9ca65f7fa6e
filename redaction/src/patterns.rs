//! What is a secret by its looks or its name: patterns of widely used keys, each specific enough not to match ordinary text, and names of
//! options, variables and fields whose values are secrets.

use std::ops::Range;

use regex::bytes::{Regex, RegexBuilder};

use crate::redactor::{MASK, RedactError};

/// The pattern of a kind of key.
#[derive(Debug, Clone, Copy)]
pub struct KeyPattern {
    /// The stable name, used in `redactions_applied`.
    pub name: &'static str,
    /// A short description of the format.
    pub looks_like: &'static str,
    /// A regular expression over bytes. Its first group is masked, or the complete match if it has no group.
    pub(super) regex: &'static str,
    /// A regular expression for a key that is truncated at the end of the text. `None` if `regex` matches it as well.
    pub(super) truncated: Option<&'static str>,
}

/// All patterns. A test compares the list in `docs/runner.md` with it.
pub const KEY_PATTERNS: [KeyPattern; 13] = [
    KeyPattern {
        name: "private_key",
        looks_like: "`-----BEGIN … PRIVATE KEY-----`",
        // The end marker is optional: a truncated key has none.
        regex: r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?",
        truncated: None,
    },
    KeyPattern {
        name: "json_web_token",
        looks_like: "`eyJ….eyJ….…`",
        regex: r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
        truncated: Some(r"eyJ[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?"),
    },
    KeyPattern {
        name: "bearer_token",
        looks_like: "`Bearer …` with at least 20 characters after it",
        regex: r"(?i:bearer)(?: |\t|\+|%20){1,8}([A-Za-z0-9._~+/-]{20,}={0,2})",
        truncated: Some(r"(?i:bearer)(?: |\t|\+|%20){1,8}([A-Za-z0-9._~+/-]+={0,2})"),
    },
    KeyPattern {
        name: "secret_key",
        looks_like: "`sk-…` (OpenAI, Anthropic and others)",
        // Not inside a word: `task-…` is not a key. In JSON the preceding letter may belong to an escape.
        regex: r"(?:[^A-Za-z0-9]|\\[bfnrt]|^)(sk-[A-Za-z0-9_-]{20,})",
        truncated: Some(r"(?:[^A-Za-z0-9]|\\[bfnrt]|^)(sk-[A-Za-z0-9_-]+)"),
    },
    KeyPattern {
        name: "github_token",
        looks_like: "`ghp_…`, `gho_…`, `ghu_…`, `ghs_…`, `ghr_…`, `github_pat_…`",
        regex: r"gh[opsur]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}",
        truncated: Some(r"gh[opsur]_[A-Za-z0-9]+|github_pat_[A-Za-z0-9_]+"),
    },
    KeyPattern {
        name: "gitlab_token",
        looks_like: "`glpat-…`",
        regex: r"glpat-[A-Za-z0-9_-]{20,}",
        truncated: Some(r"glpat-[A-Za-z0-9_-]+"),
    },
    KeyPattern {
        name: "aws_key_id",
        looks_like: "`AKIA…`, `ASIA…`",
        regex: r"A[KS]IA[A-Z0-9]{16}",
        truncated: Some(r"A[KS]IA[A-Z0-9]+"),
    },
    KeyPattern {
        name: "google_api_key",
        looks_like: "`AIza…`",
        regex: r"AIza[A-Za-z0-9_-]{35}",
        truncated: Some(r"AIza[A-Za-z0-9_-]+"),
    },
    KeyPattern {
        name: "slack_token",
        looks_like: "`xoxb-…`, `xoxp-…` and similar",
        regex: r"xox[abeprs]-[A-Za-z0-9-]{10,}",
        truncated: Some(r"xox[abeprs]-[A-Za-z0-9-]+"),
    },
    KeyPattern {
        name: "stripe_key",
        looks_like: "`sk_live_…`, `sk_test_…`, `rk_live_…`, `rk_test_…`",
        regex: r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
        truncated: Some(r"[rs]k_(?:live|test)_[A-Za-z0-9]+"),
    },
    KeyPattern {
        name: "npm_token",
        looks_like: "`npm_…`",
        regex: r"npm_[A-Za-z0-9]{36}",
        truncated: Some(r"npm_[A-Za-z0-9]+"),
    },
    KeyPattern {
        name: "hugging_face_token",
        looks_like: "`hf_…`",
        regex: r"hf_[A-Za-z0-9]{30,}",
        truncated: Some(r"hf_[A-Za-z0-9]+"),
    },
    KeyPattern {
        name: "url_password",
        looks_like: "`scheme://user:password@host`",
        regex: r"[a-z][a-z0-9+.-]{1,15}://[^\s/:@\x22'<>\\]{0,100}:([^\s/:@\x22'<>\\]{4,200})@",
        truncated: Some(r"[a-z][a-z0-9+.-]{1,15}://[^\s/:@\x22'<>\\]{0,100}:([^\s/:@\x22'<>\\]+)"),
    },
];

/// Patterns that are less specific: they match short keys, and also some ordinary text, such as `password_reset`. For text that
/// only people read, such as previews, where masking too much does no harm.
pub const BROAD_PATTERNS: [KeyPattern; 3] = [
    KeyPattern {
        name: "short_secret_key",
        looks_like: "`sk-…` with at least 6 characters after it",
        regex: r"(?:[^A-Za-z0-9]|\\[bfnrt]|^)(sk-[A-Za-z0-9_-]{6,})",
        truncated: Some(r"(?:[^A-Za-z0-9]|\\[bfnrt]|^)(sk-[A-Za-z0-9_-]+)"),
    },
    KeyPattern {
        name: "short_github_token",
        looks_like: "`ghp_…` with at least 6 characters after it",
        regex: r"ghp_[A-Za-z0-9_]{6,}",
        truncated: Some(r"ghp_[A-Za-z0-9_]+"),
    },
    KeyPattern {
        name: "password_word",
        looks_like: "`password…` in any case, as one word",
        regex: r"(?i:password)[A-Za-z0-9_-]+",
        truncated: None,
    },
];

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

    /// Returns the keys in a text, in their order. A key that is masked already is left out.
    pub fn find<'a>(&'a self, text: &'a str) -> impl Iterator<Item = KeyMatch> + 'a {
        self.any.find_iter(text.as_bytes()).filter_map(|found| {
            let bytes = found.as_bytes();
            // Only now the patterns are tried one by one, for the name and the group of the one that matched.
            let (name, key) = self.patterns.iter().find_map(|(name, regex)| {
                let captures = regex.captures(bytes)?;
                Some((*name, captures.get(1).or_else(|| captures.get(0))?.range()))
            })?;
            // A text that was redacted before has the mask where a key was.
            let is_masked = bytes.windows(MASK.len()).any(|window| window == MASK.as_bytes());
            (!is_masked).then(|| KeyMatch { name, range: found.start() + key.start..found.start() + key.end })
        })
    }
}

/// Words in the name of a secret.
const SECRET_WORDS: [&str; 19] = [
    "key",
    "apikey",
    "token",
    "secret",
    "pass",
    "passcode",
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "credential",
    "credentials",
    "creds",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "jwt",
    "sshpass",
];

/// Ends of words in the name of a secret, such as `PGPASSWORD`.
const SECRET_ENDS: [&str; 9] =
    ["password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "secretkey", "privatekey"];

/// Last words of names whose value only describes a secret.
const DESCRIBING_WORDS: [&str; 16] = [
    "file", "path", "dir", "url", "uri", "mode", "type", "name", "size", "limit", "count", "ttl", "method", "provider",
    "env", "var",
];

/// Reports whether the values of a name are secrets, as of `--api-key`, `apiKey`, `DB_PASS` and `PGPASSWORD`.
pub fn is_secret_name(name: &str) -> bool {
    let words: Vec<String> = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .flat_map(camel_case_words)
        .map(str::to_ascii_lowercase)
        .collect();
    // The value of `TOKEN_FILE` is a path and not a token.
    let is_description = words.last().is_some_and(|last| DESCRIBING_WORDS.contains(&last.as_str()));
    let is_secret =
        |word: &String| SECRET_WORDS.contains(&word.as_str()) || SECRET_ENDS.iter().any(|end| word.ends_with(end));
    !is_description && words.iter().any(is_secret)
}

/// Splits `apiKey` into `api` and `Key`, and `APIKey` into `API` and `Key`.
fn camel_case_words(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let is_start = |at: usize| {
        let (before, this) = (bytes[at - 1], bytes[at]);
        let is_followed_by_lower = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        this.is_ascii_uppercase() && (!before.is_ascii_uppercase() || is_followed_by_lower)
    };
    let mut words = Vec::new();
    let mut start = 0;
    for at in (1..bytes.len()).filter(|at| is_start(*at)) {
        words.push(&text[start..at]);
        start = at;
    }
    words.push(&text[start..]);
    words
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

    #[test]
    fn names_of_secrets_are_found_in_every_case_style() {
        for name in [
            "api-key",
            "--apiKey",
            "APIKey",
            "API_KEY",
            "accessToken",
            "clientSecret",
            "oAuthToken",
            "X-Api-Key",
            "DB_PASS",
            "dbPass",
            "PGPASSWORD",
            "SSHPASS",
            "authtoken",
            "secretkey",
            "AccountKey",
            "MYSQL_PWD",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "",
            "tokenizer",
            "maxTokens",
            "monkey",
            "bypass",
            "compass",
            "keyFile",
            "PGPASSFILE",
            "tokenUrl",
            "authors",
            "bearer_token_env_var",
            "authProvider",
            "passes",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
