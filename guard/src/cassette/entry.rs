//! The lines of a cassette.

use counterproof_artifact::Sha256Digest;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The version of the format.
pub const SCHEMA_VERSION: &str = "cassette.v1";

/// The first line of a recording. A cassette can have several recordings of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA_VERSION`].
    pub schema_version: String,
    pub server_name: String,
    /// The time of the recording.
    pub recorded_at: Timestamp,
}

/// An answered request.
#[derive(Debug, Serialize, Deserialize)]
pub struct Entry<'a> {
    pub method: String,
    /// The hash of the parameters; see [`super::request_key`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params_hash: Option<Sha256Digest>,
    /// The parameters, redacted. They are for people: requests are compared by the hash.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub answer: Answer<'a>,
}

/// An answer, redacted.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer<'a> {
    #[serde(borrow)]
    Result(&'a RawValue),
    /// A JSON-RPC error.
    #[serde(borrow)]
    Error(&'a RawValue),
}
