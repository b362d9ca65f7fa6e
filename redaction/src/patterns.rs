//! Patterns of widely used keys. Each is specific enough not to match ordinary text.

/// The pattern of a kind of key.
#[derive(Debug, Clone, Copy)]
pub struct KeyPattern {
    /// The stable name, used in `redactions_applied`.
    pub name: &'static str,
    /// A short description of the format.
    pub looks_like: &'static str,
    /// A regular expression over bytes. Its first group is masked, or the complete match where it has no group.
    pub(super) regex: &'static str,
    /// A regular expression for a key that is truncated at the end of the text. `None` where `regex` matches it as well.
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
