//! The server behind the proxy: its address, requests to it, and whether it answers.

use std::error::Error;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{HeaderMap, Method, Uri};
use counterproof_ledger::event::RunStatus;
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};

use crate::session::{Problem, Session};

/// A server that does not accept a connection in this time is down.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// How long an unused connection is kept. Common servers close it after five seconds, and a request could meet that moment.
const KEPT_FOR: Duration = Duration::from_secs(3);

#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamUrl(Url);

/// An invalid URL. The messages do not quote it, because it may contain credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamUrlError {
    #[error("invalid URL: {0}; write all of it, such as `https://tools.example/mcp`")]
    Syntax(<Url as FromStr>::Err),
    #[error("unsupported scheme `{0}`; use http or https")]
    Scheme(String),
}

impl FromStr for UpstreamUrl {
    type Err = UpstreamUrlError;

    fn from_str(text: &str) -> Result<Self, UpstreamUrlError> {
        let url = Url::parse(text).map_err(UpstreamUrlError::Syntax)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UpstreamUrlError::Scheme(url.scheme().to_owned()));
        }
        Ok(Self(url))
    }
}

impl UpstreamUrl {
    /// The path of the endpoint, which is the same at the proxy.
    pub fn path(&self) -> &str {
        self.0.path()
    }

    pub fn query(&self) -> Option<&str> {
        self.0.query()
    }

    pub fn username(&self) -> &str {
        self.0.username()
    }

    pub fn password(&self) -> Option<&str> {
        self.0.password()
    }

    /// The URL without credentials, query and fragment.
    pub fn recorded(&self) -> String {
        let mut url = self.0.clone();
        // Both fail only for URLs without a host, which have no credentials.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.set_fragment(None);
        url.into()
    }

    fn is_loopback(&self) -> bool {
        let host = self.0.host_str().unwrap_or_default();
        let name = host.trim_start_matches('[').trim_end_matches(']');
        name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// Returns a redirect to the origin of the server as a reference to a path, which the client resolves against the proxy. Returns
    /// none for other redirects.
    pub(super) fn relative(&self, location: &str) -> Option<String> {
        // A reference to a path needs no change, and has no origin.
        let (scheme, rest) = location.split_once("//")?;
        let is_scheme = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        let has_origin = scheme.is_empty() || scheme.strip_suffix(':').is_some_and(is_scheme);
        if !has_origin || self.0.join(location).ok()?.origin() != self.0.origin() {
            return None;
        }
        let rest = &rest[rest.find(['/', '?', '#']).unwrap_or(rest.len())..];
        Some(match rest.as_bytes() {
            // Two slashes at the start would name a host. Browsers take a backslash for one.
            [b'/', b'/' | b'\\', ..] => format!("/.{rest}"),
            [b'/', ..] => rest.to_owned(),
            _ => format!("/{rest}"),
        })
    }

    /// The URL of the server for a request to the proxy: the same path and query.
    fn request_url(&self, uri: &Uri) -> Url {
        let mut url = self.0.clone();
        url.set_path(uri.path());
        // The query of the configured URL, such as a key, belongs to its endpoint.
        if uri.query().is_some() || uri.path() != self.0.path() {
            url.set_query(uri.query());
        }
        url.set_fragment(None);
        url
    }
}

impl std::fmt::Debug for UpstreamUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UpstreamUrl({})", self.recorded())
    }
}

/// A server, and the HTTP client for requests to it: without redirects, retries and a limit for answers.
#[derive(Debug)]
pub struct Upstream {
    client: Client,
    url: UpstreamUrl,
}

impl Upstream {
    pub fn new(url: UpstreamUrl) -> Result<Self, reqwest::Error> {
        // An error means that the embedding program installed a provider already, and that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            let builder = Client::builder()
                .redirect(Policy::none())
                .retry(reqwest::retry::never())
                .connect_timeout(CONNECT_WITHIN)
                .pool_idle_timeout(KEPT_FOR);
            // A proxy cannot reach the loopback addresses of this machine.
            if url.is_loopback() { builder.no_proxy() } else { builder }
        };
        let client = builder().build();
        // Plain HTTP must also work on systems without certificates, such as small containers.
        let is_plain = url.0.scheme() == "http";
        let client =
            client.or_else(|error| if is_plain { builder().tls_certs_only([]).build() } else { Err(error) })?;
        Ok(Self { client, url })
    }

    pub const fn url(&self) -> &UpstreamUrl {
        &self.url
    }

    /// Sends a request to the path and query of `uri`.
    pub async fn send(
        &self,
        method: Method,
        uri: &Uri,
        headers: HeaderMap,
        body: Option<reqwest::Body>,
    ) -> Result<Response, reqwest::Error> {
        let request = self.client.request(method, self.url.request_url(uri)).headers(headers);
        match body {
            Some(body) => request.body(body).send().await,
            None => request.send().await,
        }
    }

    /// Describes a request without an answer.
    pub fn failure(&self, error: &reqwest::Error) -> String {
        // The client's own message is not passed on, because it contains the whole URL.
        let url = self.url.recorded();
        if error.is_timeout() {
            return format!("{url} accepted no connection in time");
        }
        if !error.is_connect() {
            return format!("{url} closed the connection without a response");
        }
        format!("the proxy cannot connect to {url}: {}", last_cause(error))
    }
}

/// Returns the last cause of an error of the client, which comes from the system, or from TLS.
pub fn last_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

#[derive(Debug, Default)]
pub(super) struct Reachability {
    answered: AtomicU64,
    unanswered: AtomicU64,
}

impl Reachability {
    pub(super) fn answered(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request without a response, and reports the first one.
    pub(super) fn unanswered(&self, problem: &str, session: &Session) {
        if self.unanswered.fetch_add(1, Ordering::Relaxed) == 0 {
            let remedy = "check that the server runs, and the scheme, host and port of `--upstream`";
            session.report(Problem::Unreachable, &format!("{problem}; {remedy}"));
        }
    }

    /// Reports the requests without a response at the end of a run, and returns how the run ended.
    pub(super) fn finish(&self, session: &Session) -> RunStatus {
        let (answered, unanswered) = (self.answered.load(Ordering::Relaxed), self.unanswered.load(Ordering::Relaxed));
        let all = answered + unanswered;
        if unanswered == 0 {
            return RunStatus::Succeeded;
        }
        let count = format!("requests that the server did not answer: {unanswered} of {all}");
        if answered > 0 {
            session.warn(&count);
            return RunStatus::Succeeded;
        }
        session.warn(&format!("{count}; the status of the run is `FAILED`"));
        RunStatus::Failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::tests::session;

    #[test]
    fn a_request_keeps_its_path_and_query() {
        let url: UpstreamUrl = "https://user:secret@tools.example:8443/mcp?key=1#x".parse().unwrap();
        assert_eq!(url.recorded(), "https://tools.example:8443/mcp");
        let request = |uri: &'static str| url.request_url(&Uri::from_static(uri)).to_string();
        assert_eq!(request("/mcp"), "https://user:secret@tools.example:8443/mcp?key=1");
        assert_eq!(request("/mcp?a=%20"), "https://user:secret@tools.example:8443/mcp?a=%20");
        assert_eq!(request("/.well-known/x"), "https://user:secret@tools.example:8443/.well-known/x");
    }

    #[test]
    fn a_redirect_to_the_server_becomes_a_path() {
        let url: UpstreamUrl = "http://user:secret@tools.example/mcp".parse().unwrap();
        for (location, expected) in [
            ("http://tools.example/a%20b?x=//y#z", Some("/a%20b?x=//y#z")),
            ("HTTP://tools.example:80", Some("/")),
            ("http://tools.example?x", Some("/?x")),
            ("//tools.example/a", Some("/a")),
            ("http://tools.example//evil.example/", Some("/.//evil.example/")),
            ("http://tools.example/\\evil.example/", Some("/./\\evil.example/")),
            ("https://tools.example/a", None),
            ("http://tools.example:8080/a", None),
            ("//other.example/a", None),
            ("/a//b", None),
            ("a?b=http://tools.example/", None),
            ("", None),
        ] {
            assert_eq!(url.relative(location).as_deref(), expected, "{location}");
        }
    }

    #[test]
    fn other_schemes_are_refused_and_the_url_is_not_quoted() {
        let error = "ftp://user:secret@a/".parse::<UpstreamUrl>().unwrap_err();
        assert_eq!(error, UpstreamUrlError::Scheme("ftp".to_owned()));
        let error = "tools.example/mcp".parse::<UpstreamUrl>().unwrap_err().to_string();
        assert!(error.contains("such as `https://") && !error.contains("`tools"), "{error}");
    }

    #[test]
    fn a_run_fails_if_the_server_answered_no_request() {
        let (session, sink) = session(None, &[]);
        let reachability = Reachability::default();
        assert_eq!(reachability.finish(&session), RunStatus::Succeeded, "without requests");
        reachability.unanswered("refused", &session);
        reachability.unanswered("refused", &session);
        assert_eq!(reachability.finish(&session), RunStatus::Failed);
        assert_eq!(sink.names(), ["run_start", "shim_health"], "the first one is recorded");
        reachability.answered();
        assert_eq!(reachability.finish(&session), RunStatus::Succeeded);
    }
}
