//! Runner failures, and the metadata of a saved response body.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{CaseId, Count, Extra, Href, Millis, Nullable, Sha256Digest, Side};

/// A failure to get a valid answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunnerFailure {
    /// The stable class.
    pub class: FailureClass,
    /// The requested URL, without credentials.
    pub url: String,
    /// The attempt that failed last, counted from 1.
    pub attempt: Count,
    /// The time limit of an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<Millis>,
    /// The duration of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<Millis>,
    /// The HTTP status; always set for [`FailureClass::HttpError`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Count>,
    /// The HTTP reason phrase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_text: Option<String>,
    /// A more specific, stable name of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_name: Option<String>,
    /// The error message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The start of the body; null if there is no body.
    pub body_snippet: Option<String>,
    /// The saved body, under `assets/`; null if there is no body.
    pub full_body_saved_to: Option<Href>,
    /// The metadata of the saved body, under `assets/`.
    #[serde(default, skip_serializing_if = "Nullable::is_absent")]
    pub full_body_meta_saved_to: Nullable<Href>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The stable classes of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// No complete response within the time limit.
    Timeout,
    /// A status other than 2xx.
    HttpError,
    /// A body that is not JSON.
    InvalidJson,
    /// JSON that is not a valid answer.
    SchemaMismatch,
    /// The connection failed or broke.
    NetworkError,
    /// Any other failure, named by `error_name`.
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

    /// The word used in files.
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

/// The metadata of a saved body.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FailureMeta {
    /// Always `failure-meta.v1`.
    pub schema_version: FailureMetaSchema,
    /// The case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_id: Option<CaseId>,
    /// The side of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Side>,
    /// The class of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The `Content-Type` header; null if it is missing.
    #[serde(default, skip_serializing_if = "Nullable::is_absent")]
    pub content_type: Nullable<String>,
    /// The `Content-Encoding` header; null if it is missing.
    #[serde(default, skip_serializing_if = "Nullable::is_absent")]
    pub encoding: Nullable<String>,
    /// Size of the saved body in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_written: Option<Count>,
    /// Size of the complete body in bytes; null if its end was not received.
    #[serde(default, skip_serializing_if = "Nullable::is_absent")]
    pub bytes_total: Nullable<Count>,
    /// True where the saved body is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// The digest of the saved body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256Digest>,
    /// Response headers without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Extra>,
    /// Notes for readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}
