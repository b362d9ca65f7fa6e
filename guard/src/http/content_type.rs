//! What the headers of a message say about its body.

use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};

/// The types of bodies that the proxy treats differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentType {
    /// JSON.
    Json,
    /// Server-sent events.
    Events,
    /// The fields of a form.
    Form,
    /// Another type, or none.
    Other,
}

impl ContentType {
    /// Reads the type of a body.
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let value = headers.get(CONTENT_TYPE).map_or(b"".as_slice(), |value| value.as_bytes());
        // Parameters, such as the charset, do not matter.
        let media_type = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        match &*media_type.to_ascii_lowercase() {
            b"application/json" | b"application/json-rpc" | b"application/jsonrequest" => Self::Json,
            b"text/event-stream" => Self::Events,
            b"application/x-www-form-urlencoded" => Self::Form,
            _ => Self::Other,
        }
    }
}

/// True if a body is compressed.
pub(super) fn is_compressed(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().any(|encoding| encoding.as_bytes() != b"identity")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn parameters_and_case_of_a_type_do_not_matter() {
        for (value, expected) in [
            ("Application/JSON; charset=utf-8", ContentType::Json),
            ("text/event-stream ;x=y", ContentType::Events),
            ("application/x-www-form-urlencoded", ContentType::Form),
            ("application/json-seq", ContentType::Other),
            ("", ContentType::Other),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))]);
            assert_eq!(ContentType::from_headers(&headers), expected, "{value}");
        }
        assert_eq!(ContentType::from_headers(&HeaderMap::new()), ContentType::Other);
    }
}
