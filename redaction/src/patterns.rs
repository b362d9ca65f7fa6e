//! The shapes of widely used keys. A shape has to be so particular that ordinary text does not have it.

/// The shape of a key.
#[derive(Debug, Clone, Copy)]
pub struct KeyPattern {
    /// Its stable name, as `redactions_applied` has it.
    pub name: &'static str,
    /// What it looks like, in a word.
    pub looks_like: &'static str,
    /// Its regular expression over bytes; the first group, if there is one, is what is masked.
    pub(super) regex: &'static str,
    /// The regular expression of a key that has begun, from where it can be recognised up to the end of a text that was cut off.
    /// `None` where `regex` does that too.
    pub(super) begun: Option<&'static str>,
}

/// All shapes that are looked for. `docs/runner.md` has the same list, and a test holds it to that.
pub const KEY_PATTERNS: [KeyPattern; 13] = [
    KeyPattern {
        name: "private_key",
        looks_like: "`-----BEGIN … PRIVATE KEY-----`",
        // A key that was cut off has no end.
        regex: r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?",
        begun: None,
    },
    KeyPattern {
        name: "json_web_token",
        looks_like: "`eyJ….eyJ….…`",
        regex: r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
        begun: Some(r"eyJ[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?"),
    },
    KeyPattern {
        name: "bearer_token",
        looks_like: "`Bearer …` with at least 20 characters behind it",
        regex: r"(?i:bearer)(?: |\t|\+|%20){1,8}([A-Za-z0-9._~+/-]{20,}={0,2})",
        begun: Some(r"(?i:bearer)(?: |\t|\+|%20){1,8}([A-Za-z0-9._~+/-]+={0,2})"),
    },
    KeyPattern {
        name: "secret_key",
        looks_like: "`sk-…` (OpenAI, Anthropic and others)",
        // Not within a word: `task-…` is no key. In JSON the letter before it may belong to an escape.
        regex: r"(?:[^A-Za-z0-9]|\\[bfnrt]|^)(sk-[A-Za-z0-9_-]{20,})",
        begun: Some(r"(?:[^A-Za-z0-9]|\\[bfnrt]|^)(sk-[A-Za-z0-9_-]+)"),
    },
    KeyPattern {
        name: "github_token",
        looks_like: "`ghp_…`, `gho_…`, `ghu_…`, `ghs_…`, `ghr_…`, `github_pat_…`",
        regex: r"gh[opsur]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}",
        begun: Some(r"gh[opsur]_[A-Za-z0-9]+|github_pat_[A-Za-z0-9_]+"),
    },
    KeyPattern {
        name: "gitlab_token",
        looks_like: "`glpat-…`",
        regex: r"glpat-[A-Za-z0-9_-]{20,}",
        begun: Some(r"glpat-[A-Za-z0-9_-]+"),
    },
    KeyPattern {
        name: "aws_key_id",
        looks_like: "`AKIA…`, `ASIA…`",
        regex: r"A[KS]IA[A-Z0-9]{16}",
        begun: Some(r"A[KS]IA[A-Z0-9]+"),
    },
    KeyPattern {
        name: "google_api_key",
        looks_like: "`AIza…`",
        regex: r"AIza[A-Za-z0-9_-]{35}",
        begun: Some(r"AIza[A-Za-z0-9_-]+"),
    },
    KeyPattern {
        name: "slack_token",
        looks_like: "`xoxb-…`, `xoxp-…` and their like",
        regex: r"xox[abeprs]-[A-Za-z0-9-]{10,}",
        begun: Some(r"xox[abeprs]-[A-Za-z0-9-]+"),
    },
    KeyPattern {
        name: "stripe_key",
        looks_like: "`sk_live_…`, `sk_test_…`, `rk_live_…`, `rk_test_…`",
        regex: r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
        begun: Some(r"[rs]k_(?:live|test)_[A-Za-z0-9]+"),
    },
    KeyPattern {
        name: "npm_token",
        looks_like: "`npm_…`",
        regex: r"npm_[A-Za-z0-9]{36}",
        begun: Some(r"npm_[A-Za-z0-9]+"),
    },
    KeyPattern {
        name: "hugging_face_token",
        looks_like: "`hf_…`",
        regex: r"hf_[A-Za-z0-9]{30,}",
        begun: Some(r"hf_[A-Za-z0-9]+"),
    },
    KeyPattern {
        name: "url_password",
        looks_like: "`scheme://user:password@host`",
        regex: r"[a-z][a-z0-9+.-]{1,15}://[^\s/:@\x22'<>\\]{0,100}:([^\s/:@\x22'<>\\]{4,200})@",
        begun: Some(r"[a-z][a-z0-9+.-]{1,15}://[^\s/:@\x22'<>\\]{0,100}:([^\s/:@\x22'<>\\]+)"),
    },
];
