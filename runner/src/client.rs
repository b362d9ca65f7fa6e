//! The HTTP client as the runner needs it: no redirects, no retries of its own, proxies for other machines only.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};

use crate::endpoint::BaseUrl;
use crate::redact::Redactor;
use crate::secret::{Header, Secret};
use crate::settings::Settings;

/// Connecting may take this long at most, so that a host which swallows packets is told from a slow answer.
const LONGEST_CONNECT: Duration = Duration::from_secs(10);

/// One agent, reached over HTTP.
pub(crate) struct AgentClient {
    http: Client,
    url: Url,
    headers: HeaderMap,
    pub(crate) redactor: Redactor,
}

/// The HTTP client could not be made: the system's certificates or proxy settings are of no use.
#[derive(Debug, thiserror::Error)]
#[error("failed to set up the HTTP client")]
pub struct ClientError(#[source] reqwest::Error);

impl AgentClient {
    /// A client for requests to `path` below the base URL.
    pub(crate) fn new(settings: &Settings, base: &BaseUrl, path: &str) -> Result<Self, ClientError> {
        install_tls_provider();
        let mut url = base.asked_join(path);
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for header in &settings.headers {
            // The value was held against the rules of header values when the header was parsed.
            if let Ok(mut value) = HeaderValue::from_str(header.value().expose()) {
                value.set_sensitive(true);
                headers.append(header.name(), value);
            }
        }
        let rule = settings.resolve.iter().find(|rule| rule.holds_for(base));
        if rule.is_some()
            && let Some(host) = crate::endpoint::ResolveRule::take_port(&mut url)
        {
            headers.insert(HOST, host);
        }
        let builder = || {
            let builder = Client::builder()
                .user_agent(concat!("counterproof/", env!("CARGO_PKG_VERSION")))
                .redirect(Policy::none())
                // The client's own retries would be attempts that nobody recorded.
                .retry(reqwest::retry::never())
                .connect_timeout(LONGEST_CONNECT.min(settings.timeout.mul_f64(0.75)));
            // A proxy would not know what this machine calls `localhost`, nor the address of a rule.
            let direct = base.is_loopback() || rule.is_some();
            let builder = if direct { builder.no_proxy() } else { builder };
            match rule {
                Some(rule) => builder.resolve(rule.host(), rule.address()),
                None => builder,
            }
        };
        // Plain HTTP must also work where the system has no certificates, as in small containers.
        let http = builder()
            .build()
            .or_else(|error| if base.is_plain() { builder().tls_certs_only([]).build() } else { Err(error) });
        let password = url.password().map(|password| Secret::from(password.to_owned()));
        let secrets = settings.headers.iter().map(Header::value).chain(&password);
        Ok(Self { http: http.map_err(ClientError)?, redactor: Redactor::new(secrets), url, headers })
    }

    /// Sends one request and waits for the head of its response.
    pub(crate) async fn post(&self, body: Vec<u8>) -> Result<Response, reqwest::Error> {
        self.http.post(self.url.clone()).headers(self.headers.clone()).body(body).send().await
    }
}

/// Several clients share one provider, and whoever embeds the runner may have installed another: both are fine.
fn install_tls_provider() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
