//! What makes two requests equal.

use counterproof_artifact::Sha256Digest;
use counterproof_artifact::canonical_json::canonical_hash;
use serde_json::{Map, Value};

use crate::mcp::TOOLS_CALL;

/// Methods whose parameters describe the client. They do not change the answer.
const BY_METHOD_ALONE: [&str; 2] = ["initialize", "server/discover"];

/// Identifies equal requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestKey {
    pub method: String,
    /// The hash of the canonical parameters without `_meta`; none for methods whose parameters do not matter.
    pub params_hash: Option<Sha256Digest>,
}

/// Returns the key of a request. Missing arguments of a tool call are an empty object.
pub fn request_key(method: &str, params: Option<&str>) -> RequestKey {
    if BY_METHOD_ALONE.contains(&method) {
        return RequestKey { method: method.to_owned(), params_hash: None };
    }
    let mut params: Value = params.and_then(|params| serde_json::from_str(params).ok()).unwrap_or_default();
    if params.is_null() {
        params = Value::Object(Map::new());
    }
    if let Some(fields) = params.as_object_mut() {
        fields.shift_remove("_meta");
        if method == TOOLS_CALL && fields.get("arguments").is_none_or(Value::is_null) {
            fields.insert("arguments".to_owned(), Value::Object(Map::new()));
        }
    }
    RequestKey { method: method.to_owned(), params_hash: Some(canonical_hash(&params)) }
}
