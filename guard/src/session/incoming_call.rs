//! A tool call, as an adapter passes it to the session.

use std::borrow::Cow;

use counterproof_artifact::Sha256Digest;
use serde_json::Value;

/// A tool call that has arrived.
#[derive(Debug, Clone)]
pub struct IncomingCall<'a> {
    pub tool_name: &'a str,
    /// The arguments.
    pub args: IncomingArgs<'a>,
    /// Size of the request in bytes.
    pub bytes_in: u64,
    /// Set if the request answers questions of the server about an earlier request.
    pub retry: Option<Retry<'a>>,
}

/// The arguments of a tool call.
#[derive(Debug, Clone)]
pub enum IncomingArgs<'a> {
    /// The arguments and their JSON text.
    Inspected {
        /// The arguments; an empty object if they are missing.
        value: &'a Value,
        /// The text, for the preview.
        text: Cow<'a, str>,
    },
    /// The request has no agreed meaning, because parsers disagree on it. The call is refused in every mode.
    Ambiguous {
        /// The hash of the bytes of the arguments.
        hash: Sha256Digest,
        /// What parsers disagree on, for people.
        problem: String,
    },
    /// The arguments are too large to be inspected, or have values that cannot be represented.
    Uninspected {
        /// The hash of their bytes.
        hash: Sha256Digest,
        /// The text, for the preview; none if it is too large.
        text: Option<Cow<'a, str>>,
    },
}

/// The part of a request that makes it the continuation of an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry<'a> {
    /// The state that the server gave the client, as JSON text.
    pub request_state: Option<&'a str>,
}
