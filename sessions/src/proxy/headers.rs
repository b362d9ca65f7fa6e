//! Headers: those that are passed on, and the secrets in them.

use axum::http::header::{AUTHORIZATION, CONNECTION, EXPECT, HOST};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use counterproof_guard::http::HOP_BY_HOP;

use super::recorder::Secret;

const KEYS: [HeaderName; 2] = [HeaderName::from_static("x-api-key"), HeaderName::from_static("api-key")];

/// A key that the agent does not know: it sends a placeholder, and the proxy sends the key to the server.
#[derive(Debug, Clone)]
pub struct SubstitutedKey {
    pub(super) placeholder: Secret,
    pub(super) real: Secret,
}

impl SubstitutedKey {
    /// The placeholder must be a value that occurs nowhere else.
    pub fn new(placeholder: &str, real: &str) -> Self {
        Self { placeholder: Secret::new(placeholder.to_owned()), real: Secret::new(real.to_owned()) }
    }

    /// Replaces the placeholder in the headers with keys.
    pub(super) fn substitute(&self, headers: &mut HeaderMap) {
        let placeholder = self.placeholder.expose();
        for (_, value) in headers.iter_mut().filter(|(name, _)| **name == AUTHORIZATION || KEYS.contains(name)) {
            let Some(text) = value.to_str().ok().filter(|text| text.contains(placeholder)) else { continue };
            // A key that is not a header is refused by the server, as the placeholder.
            if let Ok(mut real) = HeaderValue::from_str(&text.replace(placeholder, self.real.expose())) {
                real.set_sensitive(true);
                *value = real;
            }
        }
    }
}

const SCHEMES: [&str; 2] = ["Bearer", "Basic"];

/// Returns the headers of a request as they go to the server. The HTTP client writes `Host`, and the proxy itself answers
/// `Expect`.
pub(super) fn to_server(headers: &HeaderMap) -> HeaderMap {
    passed_on(headers, &[HOST, EXPECT])
}

pub(super) fn to_client(headers: &HeaderMap) -> HeaderMap {
    passed_on(headers, &[])
}

/// Copies headers in their order. Removing some from a map would change the order of the others.
fn passed_on(headers: &HeaderMap, without: &[HeaderName]) -> HeaderMap {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let mut passed = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        if !HOP_BY_HOP.contains(name) && !without.contains(name) && !named.contains(name) {
            passed.append(name, value.clone());
        }
    }
    passed
}

/// Returns the keys that a request has.
pub(super) fn secrets_of(headers: &HeaderMap) -> Vec<Secret> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).trim().to_owned();
    let credentials = headers.get_all(AUTHORIZATION).iter().map(|value| {
        let value = text(value);
        match value.split_once(' ') {
            Some((_scheme, credentials)) => credentials.trim().to_owned(),
            // A scheme without credentials is not a secret.
            None if SCHEMES.iter().any(|scheme| value.eq_ignore_ascii_case(scheme)) => String::new(),
            None => value,
        }
    });
    let keys = KEYS.into_iter().flat_map(|name| headers.get_all(name)).map(text);
    credentials.chain(keys).filter(|text| !text.is_empty()).map(Secret::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn headers_of_the_connection_are_left_out_and_the_order_of_the_others_is_kept() {
        let found = headers(&[
            ("host", "127.0.0.1"),
            ("connection", "close, X-Hop"),
            ("b", "1"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("c", "2"),
            ("expect", "100-continue"),
            ("a", "3"),
            ("c", "4"),
            ("content-length", "5"),
        ]);
        let expected = headers(&[("b", "1"), ("c", "2"), ("a", "3"), ("c", "4"), ("content-length", "5")]);
        assert_eq!(to_server(&found).iter().collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
        assert!(to_client(&found).contains_key("host"));
    }

    #[test]
    fn keys_are_found_without_their_scheme_and_never_shown() {
        let found = headers(&[("authorization", "Bearer sk-1"), ("x-api-key", "sk-2"), ("api-key", " sk-3 ")]);
        let secrets = secrets_of(&found);
        assert_eq!(secrets.iter().map(Secret::expose).collect::<Vec<_>>(), ["sk-1", "sk-2", "sk-3"]);
        assert!(!format!("{secrets:?}").contains("sk-"));
        assert_eq!(secrets_of(&headers(&[("authorization", "sk-4")]))[0].expose(), "sk-4");
        assert!(secrets_of(&headers(&[("authorization", "bearer "), ("x-api-key", "")])).is_empty());
    }
}
