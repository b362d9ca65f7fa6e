//! Parts of messages that decide: ids, keys on which parsers must agree, the kinds of responses, and why a message cannot be inspected.

use std::hash::{Hash, Hasher};

use counterproof_artifact::canonical::canonical_json;
use counterproof_ledger::event::{CallError, CallStatus, ErrorClass};
use serde_json::Value;

/// Why a text is not JSON in which no object has a key twice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrictError {
    #[error("the key `{0}` occurs twice in an object")]
    DuplicateKey(String),
    #[error("the message is not UTF-8")]
    NotUtf8,
    #[error("invalid JSON: {0}")]
    Invalid(String),
}

impl From<counterproof_json_text::StrictError> for StrictError {
    fn from(error: counterproof_json_text::StrictError) -> Self {
        use counterproof_json_text::StrictError as Error;

        match error {
            Error::DuplicateKey(key) => Self::DuplicateKey(key),
            Error::NotUtf8 => Self::NotUtf8,
            Error::Invalid(error) => Self::Invalid(error.to_string()),
        }
    }
}

/// Why a tool call is ambiguous, or cannot be inspected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolCallProblem {
    #[error("{0}")]
    Strict(#[from] StrictError),
    #[error("the key `{key}` can be taken for `{known}`")]
    LookAlike { key: String, known: &'static str },
    #[error("`params.{field}` is not {expected}")]
    Type { field: &'static str, expected: &'static str },
    /// The arguments are JSON with values that not all parsers can represent: lone surrogates, or numbers such as `1e999`. The call
    /// has an agreed meaning, but its arguments cannot be inspected.
    #[error("the arguments cannot be read: {0}")]
    Unreadable(String),
}

/// The field of `_meta` that states the protocol revision of a stateless request.
pub(super) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

pub(crate) const TOOLS_CALL: &str = "tools/call";

/// The characters between the tokens of JSON. Other white space makes a text invalid.
pub(super) const JSON_WHITESPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// Keys of a message and of the parameters of a tool call on which parsers must agree.
const SIGNIFICANT: [&str; 9] =
    ["jsonrpc", "id", "method", "params", "result", "error", "name", "arguments", "requestState"];

/// Returns the significant key that a key may be taken for by parsers that ignore case, such as the one of Go.
pub(super) fn look_alike(key: &str) -> Option<&'static str> {
    SIGNIFICANT.into_iter().find(|known| *known != key && known.chars().map(folded).eq(key.chars().map(folded)))
}

/// Folds the case of ASCII letters and of the two other characters that Unicode folds to ASCII letters.
const fn folded(character: char) -> char {
    match character {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    }
}

/// The text of a state that the server gave to the client and gets back.
pub(super) fn state_text(state: &Value) -> String {
    state.as_str().map_or_else(|| state.to_string(), str::to_owned)
}

/// The id of a request: a number or a string. `7` and `"7"` are different ids; `"a"` and `"\u0061"` are the same.
#[derive(Debug, Clone)]
pub struct RequestId {
    /// The canonical form, by which ids are compared. The text itself if no parser can represent it, such as `1e999`.
    key: String,
    text: String,
}

impl RequestId {
    /// Reads an id from its JSON text. Returns `None` for `null` and for other values, which MCP does not allow as ids.
    pub fn parse(json: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(json).ok()?.trim_ascii();
        // `null`, a boolean or an object cannot be an id, and no response could name it.
        let is_id = text.starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit());
        // Compared in the canonical form: a server may write the id of its response with other escapes.
        let key = serde_json::from_str(text).map_or_else(|_| text.to_owned(), |value: Value| canonical_json(&value));
        is_id.then(|| Self { key, text: text.to_owned() })
    }

    pub fn from_value(value: &Value) -> Option<Self> {
        Self::parse(value.to_string().as_bytes())
    }

    pub fn as_json(&self) -> &str {
        &self.text
    }
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for RequestId {}

impl Hash for RequestId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

/// The code by which SDKs report that a request took too long.
const REQUEST_TIMEOUT: i64 = -32001;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseKind {
    Result,
    /// An error, or a result that the tool marks as an error.
    Failed {
        /// `Error` or `Timeout`.
        status: CallStatus,
        error: CallError,
    },
    /// The server needs input of the client, which sends the request again with it.
    InputRequired {
        request_state: Option<String>,
    },
}

pub(super) fn error_kind(code: Option<i64>, message: String) -> ResponseKind {
    // Whether a call with another error may be retried is not known.
    let is_timeout = code == Some(REQUEST_TIMEOUT);
    let (status, class) = if is_timeout {
        (CallStatus::Timeout, ErrorClass::Timeout)
    } else {
        (CallStatus::Error, ErrorClass::UpstreamError)
    };
    let error =
        CallError { class, message, code: code.map(|code| code.to_string()), retryable: is_timeout.then_some(true) };
    ResponseKind::Failed { status, error }
}

pub(super) fn tool_error_with(message: String) -> ResponseKind {
    let error = CallError { class: ErrorClass::UpstreamError, message, code: None, retryable: None };
    ResponseKind::Failed { status: CallStatus::Error, error }
}
