//! The HTTP client of one agent: its URL and headers, and the connections to it.

use std::sync::OnceLock;

use counterproof_redaction::RedactError;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use reqwest::{Client, Response, Url};

use super::client_setup::{ClientSetup, ConnectionReuse};
use super::proxy::Proxy;
use super::reused_connections::SendFailure;
use crate::settings::{BaseUrl, ResolveRule, Secret, Settings};

pub(crate) struct AgentClient {
    /// Keeps connections for further requests.
    keeping: Client,
    /// Opens a connection for every request. Built when it is first needed, because most runs never need it.
    fresh: OnceLock<Client>,
    setup: ClientSetup,
    url: Url,
    headers: HeaderMap,
}

/// The connection for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connection {
    /// One that an earlier request has left open, or else a fresh one.
    KeptOrFresh,
    Fresh,
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
        let setup = ClientSetup::new(settings, base);
        if setup.is_resolved()
            && let Some(host) = ResolveRule::take_port(&mut url)
        {
            headers.insert(HOST, host);
        }
        let keeping = setup.build(ConnectionReuse::Keep).map_err(ClientError::Http)?;
        Ok(Self { keeping, fresh: OnceLock::new(), setup, url, headers })
    }

    /// Returns the texts that the client sends in addition to the settings and that no output may contain.
    pub(crate) fn secrets(&self) -> &[Secret] {
        self.setup.proxy().map(Proxy::credentials).unwrap_or_default()
    }

    /// Reports whether requests go through a proxy.
    pub(super) fn has_proxy(&self) -> bool {
        self.setup.proxy().is_some()
    }

    /// Sends a request and waits for the response headers. If a kept connection breaks before them, sends the request once more on a
    /// fresh one.
    pub(super) async fn post(&self, body: &[u8], connection: Connection) -> Result<Response, reqwest::Error> {
        if connection == Connection::KeptOrFresh {
            match self.send(&self.keeping, body).await {
                Err(failure) if failure.on_reused_connection => {}
                result => return result.map_err(|failure| failure.error),
            }
        }
        self.send(self.fresh()?, body).await.map_err(|failure| failure.error)
    }

    async fn send(&self, client: &Client, body: &[u8]) -> Result<Response, SendFailure> {
        let request = client.post(self.url.clone()).headers(self.headers.clone()).body(body.to_vec());
        self.setup.connections().send(request.send()).await
    }

    fn fresh(&self) -> Result<&Client, reqwest::Error> {
        if let Some(client) = self.fresh.get() {
            return Ok(client);
        }
        let client = self.setup.build(ConnectionReuse::Never)?;
        Ok(self.fresh.get_or_init(|| client))
    }
}
