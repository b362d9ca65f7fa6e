//! Headers that belong to one connection and are not passed on.

use axum::http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, LOCATION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::UpstreamUrl;

/// The headers of one connection (RFC 9110, section 7.6.1), in addition to those that `Connection` names.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Turns the headers of the client's request into those of the request to the server. `length` is the size of the body, or
/// none without one.
pub(super) fn to_server(headers: &mut HeaderMap, length: Option<u64>) {
    remove_hop_by_hop(headers);
    // The proxy itself answers `Expect`, and the HTTP client sets `Host` to the name of the server.
    headers.remove(EXPECT);
    headers.remove(HOST);
    headers.remove(CONTENT_LENGTH);
    if let Some(length) = length {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    // A compressed answer could not be inspected.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

/// Turns the headers of the server's response into those of the response to the client.
pub(super) fn to_client(headers: &mut HeaderMap, upstream: &UpstreamUrl) {
    remove_hop_by_hop(headers);
    // A redirect within the server must not lead the client past the proxy.
    if let Some(location) = headers.get(LOCATION).and_then(|value| upstream.relative(value.to_str().ok()?))
        && let Ok(location) = HeaderValue::try_from(location)
    {
        headers.insert(LOCATION, location);
    }
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP.iter().chain(&named) {
        headers.remove(name);
    }
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
    fn headers_of_the_connection_are_removed_and_all_others_are_kept() {
        let mut found = headers(&[
            ("connection", "close, X-Hop"),
            ("x-hop", "1"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("mcp-session-id", "abc"),
            ("set-cookie", "a=1"),
            ("set-cookie", "b=2"),
        ]);
        let upstream = "http://tools.example/mcp".parse().unwrap();
        to_client(&mut found, &upstream);
        assert_eq!(found, headers(&[("mcp-session-id", "abc"), ("set-cookie", "a=1"), ("set-cookie", "b=2")]));
    }

    #[test]
    fn a_request_gets_the_length_of_its_body_and_asks_for_an_answer_without_compression() {
        let mut found = headers(&[("host", "127.0.0.1:1"), ("content-length", "9"), ("accept-encoding", "gzip, br")]);
        to_server(&mut found, Some(7));
        assert_eq!(found, headers(&[("content-length", "7"), ("accept-encoding", "identity")]));
        to_server(&mut found, None);
        assert_eq!(found, headers(&[("accept-encoding", "identity")]));
    }
}
