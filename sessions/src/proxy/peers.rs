//! Which requests are accepted: a web page must not reach the proxy through the browser of its user.
//!
//! A page can make its own name resolve to a loopback address, and then send requests to the proxy. Such requests name
//! the page's host in `Host` and in `Origin`.

use std::net::IpAddr;

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum PeerError {
    #[error("the host of the request is not a name of this machine")]
    Host,
    #[error("the origin of the request is not this machine")]
    Origin,
    #[error("the request has more than one Host header")]
    RepeatedHost,
}

impl PeerError {
    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            // RFC 9112, section 3.2.
            Self::RepeatedHost => StatusCode::BAD_REQUEST,
        }
    }
}

pub(super) fn check(uri: &Uri, headers: &HeaderMap) -> Result<(), PeerError> {
    if headers.get_all(HOST).iter().nth(1).is_some() {
        return Err(PeerError::RepeatedHost);
    }
    // Both: a request to a forward proxy names its server in the URI.
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()?.parse().ok());
    let hosts: Vec<&Authority> = uri.authority().into_iter().chain(&host).collect();
    if hosts.is_empty() || !hosts.iter().all(|host| is_loopback(host.host())) {
        return Err(PeerError::Host);
    }
    // All of them: a server may use any value of a repeated header.
    if headers.get_all(ORIGIN).iter().all(is_local_origin) { Ok(()) } else { Err(PeerError::Origin) }
}

fn is_local_origin(origin: &HeaderValue) -> bool {
    let uri: Option<Uri> = origin.to_str().ok().and_then(|origin| origin.parse().ok());
    uri.is_some_and(|uri| uri.host().is_some_and(is_loopback))
}

/// True for names and addresses of this machine. A web page of another site has none of them as its origin.
pub(super) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_with(uri: &'static str, host: &'static str, origin: Option<&'static str>) -> Result<(), PeerError> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static(host));
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_static(origin));
        }
        check(&Uri::from_static(uri), &headers)
    }

    #[test]
    fn only_names_of_this_machine_are_accepted() {
        for host in ["localhost", "LOCALHOST:3000", "127.0.0.1:3000", "[::1]:3000"] {
            assert_eq!(check_with("/v1", host, None), Ok(()), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", ""] {
            assert_eq!(check_with("/v1", host, None), Err(PeerError::Host), "{host}");
        }
        assert_eq!(check_with("http://evil.example/", "localhost", None), Err(PeerError::Host));
        assert_eq!(check(&Uri::from_static("/v1"), &HeaderMap::new()), Err(PeerError::Host));
        for (origin, expected) in [
            ("http://localhost:6274", Ok(())),
            ("http://[::1]:1", Ok(())),
            ("http://evil.example", Err(PeerError::Origin)),
            ("null", Err(PeerError::Origin)),
            ("", Err(PeerError::Origin)),
        ] {
            assert_eq!(check_with("/v1", "localhost", Some(origin)), expected, "{origin}");
        }
    }

    #[test]
    fn a_request_has_one_host() {
        let mut headers = HeaderMap::new();
        headers.append(HOST, HeaderValue::from_static("localhost"));
        headers.append(HOST, HeaderValue::from_static("localhost"));
        let error = check(&Uri::from_static("/v1"), &headers).unwrap_err();
        assert_eq!((error, error.status()), (PeerError::RepeatedHost, StatusCode::BAD_REQUEST));
    }
}
