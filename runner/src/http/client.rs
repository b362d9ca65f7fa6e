//! The HTTP client as the runner needs it: no redirects, no retries of its own, proxies for other machines only.

use std::sync::OnceLock;

use counterproof_redaction::RedactError;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};

use crate::settings::endpoint::BaseUrl;
use crate::settings::run_settings::Settings;

/// One agent, reached over HTTP.
pub(crate) struct AgentClient {
    http: Client,
    url: Url,
    headers: HeaderMap,
}

/// The HTTP client could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The system's certificates or proxy settings are of no use.
    #[error("failed to set up the HTTP client")]
    Http(#[source] reqwest::Error),
    /// A secret is too long to look for: nothing is sent, for what comes back could not be kept.
    #[error(transparent)]
    Secret(#[from] RedactError),
}

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
            && let Some(host) = crate::settings::endpoint::ResolveRule::take_port(&mut url)
        {
            headers.insert(HOST, host);
        }
        let builder = || {
            let builder = Client::builder()
                .user_agent(concat!("counterproof/", env!("CARGO_PKG_VERSION")))
                .redirect(Policy::none())
                // The client's own retries would be attempts that nobody recorded.
                .retry(reqwest::retry::never())
                .connect_timeout(settings.phases.connect.min(settings.timeout.mul_f64(0.75)));
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
        Ok(Self { http: http.map_err(ClientError::Http)?, url, headers })
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
