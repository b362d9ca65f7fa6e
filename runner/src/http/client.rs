//! The configured HTTP client of one agent: no redirects, no built-in retries, and a proxy for remote hosts only.

use std::sync::OnceLock;

use counterproof_redaction::RedactError;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};

use crate::settings::{BaseUrl, ResolveRule, Settings};

/// The client of one agent.
pub(crate) struct AgentClient {
    http: Client,
    url: Url,
    headers: HeaderMap,
}

/// The HTTP client could not be created.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The system's certificates or proxy settings are unusable.
    #[error("failed to set up the HTTP client")]
    Http(#[source] reqwest::Error),
    /// A secret is too long to be masked. No request is sent, because its response could not be stored.
    #[error(transparent)]
    Secret(#[from] RedactError),
}

impl AgentClient {
    /// Creates a client for requests to `path` below the base URL.
    pub(crate) fn new(settings: &Settings, base: &BaseUrl, path: &str) -> Result<Self, ClientError> {
        install_tls_provider();
        let mut url = base.request_url(path);
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for header in &settings.headers {
            // Parsing the header validated the value, so this does not fail.
            if let Ok(mut value) = HeaderValue::from_str(header.value().expose()) {
                value.set_sensitive(true);
                headers.append(header.name(), value);
            }
        }
        let rule = settings.resolve.iter().find(|rule| rule.applies_to(base));
        if rule.is_some()
            && let Some(host) = ResolveRule::take_port(&mut url)
        {
            headers.insert(HOST, host);
        }
        let builder = || {
            let builder = Client::builder()
                .user_agent(concat!("counterproof/", env!("CARGO_PKG_VERSION")))
                .redirect(Policy::none())
                // Built-in retries would be attempts that are not recorded.
                .retry(reqwest::retry::never())
                .connect_timeout(settings.phases.connect.min(settings.timeout.mul_f64(0.75)));
            // A proxy cannot reach this machine's `localhost`, and does not apply resolve rules.
            let direct = base.is_loopback() || rule.is_some();
            let builder = if direct { builder.no_proxy() } else { builder };
            match rule {
                Some(rule) => builder.resolve(rule.host(), rule.address()),
                None => builder,
            }
        };
        // Plain HTTP must also work on systems without certificates, such as small containers.
        let http = builder()
            .build()
            .or_else(|error| if base.is_plain() { builder().tls_certs_only([]).build() } else { Err(error) });
        Ok(Self { http: http.map_err(ClientError::Http)?, url, headers })
    }

    /// Sends one request and waits for the response headers.
    pub(crate) async fn post(&self, body: Vec<u8>) -> Result<Response, reqwest::Error> {
        self.http.post(self.url.clone()).headers(self.headers.clone()).body(body).send().await
    }
}

/// Installs the TLS provider of the process. An error means that the embedding program installed one already, which is fine.
fn install_tls_provider() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
