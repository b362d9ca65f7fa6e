//! Which requests are accepted: a web page must not reach the proxy through the browser of its user.
//!
//! A page can make its own name resolve to a loopback address, and then send requests to the proxy. Such requests name the
//! page's host in `Host` and in `Origin`.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};

#[derive(Debug, Clone)]
pub struct PeerRules {
    is_loopback: bool,
    hosts: Vec<String>,
    origins: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    #[error("the host of the request is not allowed; see --allow-host")]
    Host,
    #[error("the origin of the request is not allowed; see --allow-origin")]
    Origin,
    #[error("the request has more than one Host header")]
    RepeatedHost,
}

impl PeerError {
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            // RFC 9112, section 3.2.
            Self::RepeatedHost => StatusCode::BAD_REQUEST,
        }
    }
}

impl PeerRules {
    /// Creates the rules of a proxy that listens on `address`. `hosts` and `origins` are accepted in addition.
    pub fn new(address: SocketAddr, hosts: Vec<String>, origins: Vec<String>) -> Self {
        Self { is_loopback: address.ip().is_loopback(), hosts, origins }
    }

    /// Checks the host and the origins of a request.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), PeerError> {
        // Also if both are the same: programs differ in which one they use.
        if headers.get_all(HOST).iter().nth(1).is_some() {
            return Err(PeerError::RepeatedHost);
        }
        let host = uri.authority().cloned().or_else(|| authority(headers.get(HOST)?));
        let host = host.as_ref().map(Authority::host);
        let is_named = |name: &str| self.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
        // On other addresses the names of the machine are not known. They are checked if they are listed.
        let checks_host = self.is_loopback || !self.hosts.is_empty();
        if checks_host && !host.is_some_and(|name| is_loopback(name) || is_named(name)) {
            return Err(PeerError::Host);
        }
        // All of them: a server may use any value of a repeated header.
        let mut origins = headers.get_all(ORIGIN).iter();
        if origins.all(|origin| self.is_allowed_origin(origin, host)) { Ok(()) } else { Err(PeerError::Origin) }
    }

    fn is_allowed_origin(&self, origin: &HeaderValue, host: Option<&str>) -> bool {
        let Ok(origin) = origin.to_str() else { return false };
        if self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin)) {
            return true;
        }
        let Some(name) = origin.parse().ok().and_then(|uri: Uri| uri.authority().map(|it| it.host().to_owned())) else {
            return false;
        };
        is_loopback(&name) || host.is_some_and(|host| host.eq_ignore_ascii_case(&name))
    }
}

fn authority(host: &HeaderValue) -> Option<Authority> {
    host.to_str().ok()?.parse().ok()
}

/// True for names and addresses of this machine. A web page of another site has none of them as its origin.
fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rules: &PeerRules, host: &'static str, origin: Option<&'static str>) -> Result<(), PeerError> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static(host));
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_static(origin));
        }
        rules.check(&Uri::from_static("/mcp"), &headers)
    }

    #[test]
    fn on_a_loopback_address_only_names_of_this_machine_are_accepted() {
        let rules = PeerRules::new("127.0.0.1:80".parse().unwrap(), Vec::new(), Vec::new());
        for host in ["localhost", "LOCALHOST:3000", "127.0.0.1:3000", "127.9.9.9", "[::1]:3000"] {
            assert_eq!(check(&rules, host, None), Ok(()), "{host}");
        }
        for host in
            ["evil.example", "evil.example:3000", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", ""]
        {
            assert_eq!(check(&rules, host, None), Err(PeerError::Host), "{host}");
        }
        for origin in ["http://localhost:6274", "https://127.0.0.1", "http://[::1]:1"] {
            assert_eq!(check(&rules, "localhost", Some(origin)), Ok(()), "{origin}");
        }
        for origin in ["http://evil.example", "null", "", "http://localhost.evil.example", "file://"] {
            assert_eq!(check(&rules, "localhost", Some(origin)), Err(PeerError::Origin), "{origin}");
        }
    }

    #[test]
    fn a_request_has_one_host() {
        let mut headers = HeaderMap::new();
        for host in ["localhost", "localhost"] {
            headers.append(HOST, HeaderValue::from_static(host));
        }
        for address in ["127.0.0.1:80", "0.0.0.0:80"] {
            let rules = PeerRules::new(address.parse().unwrap(), Vec::new(), Vec::new());
            let error = rules.check(&Uri::from_static("/mcp"), &headers).unwrap_err();
            assert_eq!((error, error.status()), (PeerError::RepeatedHost, StatusCode::BAD_REQUEST));
        }
    }

    #[test]
    fn further_hosts_and_origins_can_be_allowed() {
        let (hosts, origins) = (vec!["tools.example".to_owned()], vec!["https://app.example".to_owned()]);
        let rules = PeerRules::new("127.0.0.1:80".parse().unwrap(), hosts, origins);
        assert_eq!(check(&rules, "Tools.example:8080", Some("https://app.example")), Ok(()));
        assert_eq!(check(&rules, "tools.example", Some("http://app.example")), Err(PeerError::Origin));
    }

    #[test]
    fn on_other_addresses_the_origin_must_be_the_host() {
        let rules = PeerRules::new("0.0.0.0:80".parse().unwrap(), Vec::new(), Vec::new());
        assert_eq!(check(&rules, "tools.example", None), Ok(()));
        assert_eq!(check(&rules, "tools.example", Some("http://tools.example")), Ok(()));
        assert_eq!(check(&rules, "tools.example", Some("http://evil.example")), Err(PeerError::Origin));
    }
}
