//! The headers that repeat parts of a request, from the revision of 2026-07-28 on.
//!
//! `Mcp-Method` and `Mcp-Name` exist so that programs on the way can act without reading the body. The guard decides by the body.
//! A server that acts by the headers would then run another call than the one that was decided.

use axum::http::{HeaderMap, HeaderName};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::mcp::TOOLS_CALL;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The JSON-RPC error code for headers that contradict the body.
pub(super) const HEADER_MISMATCH: i64 = -32020;

/// Checks the headers of a tool call. `tool` is its name, and none for another request. Missing headers are left to the server.
pub(super) fn contradiction(headers: &HeaderMap, tool: Option<&str>) -> Option<&'static str> {
    let methods: Vec<_> = headers.get_all(METHOD).iter().map(|value| value.as_bytes().trim_ascii()).collect();
    let names: Vec<_> = headers.get_all(NAME).iter().map(|value| decoded(value.as_bytes())).collect();
    let says_call = methods.iter().any(|method| *method == TOOLS_CALL.as_bytes());
    let Some(tool) = tool else {
        return says_call.then_some("the header Mcp-Method names a tool call, and the body is another message");
    };
    if methods.iter().any(|method| *method != TOOLS_CALL.as_bytes()) {
        return Some("the header Mcp-Method is not the method of the body");
    }
    let is_other = names.iter().any(|name| name.as_deref() != Some(tool.as_bytes()));
    is_other.then_some("the header Mcp-Name is not the name of the tool in the body")
}

/// Decodes a value that is in base64 between `=?base64?` and `?=`, as values outside of visible ASCII are.
fn decoded(value: &[u8]) -> Option<Vec<u8>> {
    let value = value.trim_ascii();
    let is_encoded = value.get(..9).is_some_and(|start| start.eq_ignore_ascii_case(b"=?base64?"));
    match value.strip_suffix(b"?=") {
        Some(start) if is_encoded => STANDARD.decode(start.get(9..)?).ok(),
        _ => Some(value.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn check(pairs: &[(&'static str, &'static str)], tool: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        contradiction(&headers, tool).is_none()
    }

    #[test]
    fn headers_that_repeat_the_call_are_accepted() {
        assert!(check(&[], Some("push")));
        assert!(check(&[("mcp-method", "tools/call"), ("mcp-name", " push ")], Some("push")));
        assert!(check(&[("mcp-name", "=?base64?cMO8c2g=?=")], Some("püsh")));
        assert!(check(&[("mcp-method", "ping")], None));
    }

    #[test]
    fn headers_that_name_another_call_are_detected() {
        assert!(!check(&[("mcp-name", "delete")], Some("push")));
        assert!(!check(&[("mcp-name", "push"), ("mcp-name", "delete")], Some("push")));
        assert!(!check(&[("mcp-name", "=?base64?ZGVsZXRl?=")], Some("push")));
        assert!(!check(&[("mcp-name", "=?base64?!?=")], Some("push")));
        assert!(!check(&[("mcp-method", "ping")], Some("push")));
        assert!(!check(&[("mcp-method", "tools/call")], None));
    }
}
