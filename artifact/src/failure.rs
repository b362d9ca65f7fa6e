//! Runner failures: what is known when no valid answer came back, and what is known of a saved body.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{CaseId, Count, Extra, Href, Millis, Nullable, Sha256Digest, Side};

/// Why the runner got no valid answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunnerFailure {
    /// The stable class.
    pub class: FailureClass,
    /// What was asked, without credentials.
    pub url: String,
    /// The attempt that failed last, counted from 1.
    pub attempt: Count,
    /// How long an attempt was allowed to take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<Millis>,
    /// How long the last attempt took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<Millis>,
    /// The HTTP status; always there for [`FailureClass::HttpError`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Count>,
    /// The HTTP reason phrase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_text: Option<String>,
    /// A finer, stable name of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_name: Option<String>,
    /// The error in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The start of the body; null where there was none.
    pub body_snippet: Option<String>,
    /// Where the body is, under `assets/`; null where there was none.
    pub full_body_saved_to: Option<Href>,
    /// Where the body's metadata are, under `assets/`.
    #[serde(default, skip_serializing_if = "Nullable::is_absent")]
    pub full_body_meta_saved_to: Nullable<Href>,
    /// What this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The stable classes of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// No whole response within the time allowed.
    Timeout,
    /// A status other than 2xx.
    HttpError,
    /// A body that is not JSON.
    InvalidJson,
    /// JSON that is not an answer to the case.
    SchemaMismatch,
    /// The connection could not be made, or broke.
    NetworkError,
    /// Anything else; `error_name` says what.
    Other,
}

impl FailureClass {
    /// All classes.
    pub const ALL: [FailureClass; 6] = [
        FailureClass::Timeout,
        FailureClass::HttpError,
        FailureClass::InvalidJson,
        FailureClass::SchemaMismatch,
        FailureClass::NetworkError,
        FailureClass::Other,
    ];

    /// The word that stands in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            FailureClass::Timeout => "timeout",
            FailureClass::HttpError => "http_error",
            FailureClass::InvalidJson => "invalid_json",
            FailureClass::SchemaMismatch => "schema_mismatch",
            FailureClass::NetworkError => "network_error",
            FailureClass::Other => "other",
        }
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The version of the failure metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum FailureMetaSchema {
    /// `failure-meta.v1`
    #[default]
    #[serde(rename = "failure-meta.v1")]
    V1,
}

/// What is known of a saved body.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FailureMeta {
    /// Always `failure-meta.v1`.
    pub schema_version: FailureMetaSchema,
    /// The case that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// The side that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Side>,
    /// The class of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The `Content-Type` header; null where there was none.
    #[serde(default, skip_serializing_if = "Nullable::is_absent")]
    pub content_type: Nullable<String>,
    /// The `Content-Encoding` header; null where there was none.
    #[serde(default, skip_serializing_if = "Nullable::is_absent")]
    pub encoding: Nullable<String>,
    /// Bytes of the body that were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_written: Option<Count>,
    /// Bytes that the body had; null where its end was never seen.
    #[serde(default, skip_serializing_if = "Nullable::is_absent")]
    pub bytes_total: Nullable<Count>,
    /// True where less was kept than there was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// The digest of what was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256Digest>,
    /// Response headers that hold no secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Extra>,
    /// Anything worth knowing, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}
