//! The model server behind the proxy: its address, and requests to it.

use std::error::Error;
use std::str::FromStr;
use std::time::Duration;

use axum::http::{HeaderMap, Method, Uri};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};

use super::peers::is_loopback;
use super::records::Secret;

/// The base URL of the clients of OpenAI.
pub const OPENAI_DEFAULT: &str = "https://api.openai.com/v1";
/// The base URL of the clients of Anthropic.
pub const ANTHROPIC_DEFAULT: &str = "https://api.anthropic.com";

/// A server that does not accept a connection in this time is down.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// How long an unused connection is kept. Common servers close it after five seconds, and a request could meet that moment.
const KEPT_FOR: Duration = Duration::from_secs(4);

/// The base URL of a model server, as clients take it from the environment.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamUrl(Url);

/// An invalid URL. The messages do not quote it, because it may contain credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamUrlError {
    #[error("invalid URL: {0}; write all of it, such as `https://models.example/v1`")]
    Syntax(<Url as FromStr>::Err),
    #[error("unsupported scheme `{0}`; use http or https")]
    Scheme(String),
}

impl FromStr for UpstreamUrl {
    type Err = UpstreamUrlError;

    fn from_str(text: &str) -> Result<Self, UpstreamUrlError> {
        let url = Url::parse(text.trim()).map_err(UpstreamUrlError::Syntax)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UpstreamUrlError::Scheme(url.scheme().to_owned()));
        }
        Ok(Self(url))
    }
}

impl UpstreamUrl {
    /// The path and query of the base URL, which are the same at the proxy. Empty for a URL without a path.
    pub(super) fn path_and_query(&self) -> String {
        let path = if self.0.path() == "/" { "" } else { self.0.path() };
        match self.0.query() {
            Some(query) => format!("{path}?{query}"),
            None => path.to_owned(),
        }
    }

    /// The URL without credentials, query and fragment.
    fn shown(&self) -> String {
        let mut url = self.0.clone();
        // Both fail only for URLs without a host, which have no credentials.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.set_fragment(None);
        url.into()
    }

    /// The password of the URL.
    pub(super) fn secret(&self) -> Option<Secret> {
        self.0.password().map(|password| Secret::new(password.to_owned()))
    }

    /// The URL of the server for a request to the proxy: the same path and query.
    fn request_url(&self, uri: &Uri) -> Url {
        let mut url = self.0.clone();
        url.set_path(uri.path());
        url.set_query(uri.query());
        url.set_fragment(None);
        url
    }
}

impl std::fmt::Debug for UpstreamUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UpstreamUrl({})", self.shown())
    }
}

#[derive(Debug)]
pub(super) struct Upstream {
    client: Client,
    url: UpstreamUrl,
}

impl Upstream {
    pub(super) fn new(url: UpstreamUrl) -> Result<Self, reqwest::Error> {
        // An error means that the embedding program installed a provider already, and that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            let builder = Client::builder()
                .redirect(Policy::none())
                .retry(reqwest::retry::never())
                .connect_timeout(CONNECT_WITHIN)
                .pool_idle_timeout(KEPT_FOR)
                .tcp_nodelay(true);
            // An HTTP proxy of the environment cannot reach the loopback addresses of this machine.
            if url.0.host_str().is_some_and(is_loopback) { builder.no_proxy() } else { builder }
        };
        // Plain HTTP must also work on systems without certificates, such as small containers.
        let is_plain = url.0.scheme() == "http";
        let client = builder().build();
        let client =
            client.or_else(|error| if is_plain { builder().tls_certs_only([]).build() } else { Err(error) })?;
        Ok(Self { client, url })
    }

    pub(super) const fn url(&self) -> &UpstreamUrl {
        &self.url
    }

    pub(super) async fn send(
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
    pub(super) fn failure(&self, error: &reqwest::Error) -> String {
        // The client's own message is not passed on, because it contains the whole URL.
        let url = self.url.shown();
        if error.is_timeout() {
            return format!("{url} accepted no connection in time");
        }
        let cause = last_cause(error);
        if error.is_connect() {
            format!("the proxy cannot connect to {url}: {cause}")
        } else {
            format!("{url} closed the connection without an answer: {cause}")
        }
    }
}

/// The last cause comes from the system, or from TLS.
pub(super) fn last_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_keeps_its_path_and_query() {
        let url: UpstreamUrl = "https://user:secret@models.example:8443/v1?key=1#x".parse().unwrap();
        assert_eq!(
            (url.shown().as_str(), url.path_and_query().as_str()),
            ("https://models.example:8443/v1", "/v1?key=1")
        );
        assert_eq!(url.secret().unwrap().expose(), "secret");
        let request = |uri: &'static str| url.request_url(&Uri::from_static(uri)).to_string();
        let origin = "https://user:secret@models.example:8443";
        assert_eq!(request("/v1/responses?a=%20&b"), format!("{origin}/v1/responses?a=%20&b"));
        assert_eq!(request("/elsewhere"), format!("{origin}/elsewhere"));
    }

    #[test]
    fn base_urls_keep_their_path() {
        for (url, expected) in [
            (OPENAI_DEFAULT, "/v1"),
            (ANTHROPIC_DEFAULT, ""),
            ("http://localhost:1/", ""),
            ("http://localhost:1/a/v1/", "/a/v1/"),
        ] {
            assert_eq!(url.parse::<UpstreamUrl>().unwrap().path_and_query(), expected, "{url}");
        }
    }

    #[test]
    fn other_schemes_are_refused_and_the_url_is_not_quoted() {
        let error = "ftp://user:secret@a/".parse::<UpstreamUrl>().unwrap_err();
        assert_eq!(error, UpstreamUrlError::Scheme("ftp".to_owned()));
        let error = "models.example/v1".parse::<UpstreamUrl>().unwrap_err().to_string();
        assert!(error.contains("such as `https://") && !error.contains("models.example/v1;"), "{error}");
    }
}
