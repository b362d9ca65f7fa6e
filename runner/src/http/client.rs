//! The HTTP client of one agent: its URL and headers, and the connections to it.

use std::sync::OnceLock;

use counterproof_redaction::RedactError;
use counterproof_store::write::WriteError;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, StatusCode, Url};
use tokio::time::{Instant, timeout_at};

use super::client_setup::Proxy;
use super::client_setup::SendFailure;
use super::client_setup::{ClientSetup, ConnectionReuse};
use super::connect_error::request_fault;
use super::read_body::BodyReader;
use crate::agent::ProtocolAdapter;
use crate::body_sink::{BodyDestination, SinkLimits, is_file_shortage};
use crate::exchange::{AgentResponse, Exchange};
use crate::failure::{Fault, Reason};
use crate::secret::Secret;
use crate::settings::{AttemptLimits, BaseUrl, ResolveRule, Settings};

pub(crate) struct AgentClient {
    /// Keeps connections for further requests.
    keeping: Client,
    /// Opens a connection for every request. Built when it is first needed, because most runs never need it.
    fresh: OnceLock<Client>,
    setup: ClientSetup,
    method: Method,
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
    /// Creates a client for requests of the protocol.
    pub(crate) fn new(
        settings: &Settings,
        base: &BaseUrl,
        protocol: &dyn ProtocolAdapter,
    ) -> Result<Self, ClientError> {
        let mut url = base.request_url(protocol.path());
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(protocol.accept()));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(protocol.content_type()));
        for (name, value) in protocol.headers() {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        // A configured header replaces the one of the protocol.
        for header in settings.headers.iter().filter(|header| *header.name() != CONTENT_TYPE) {
            headers.remove(header.name());
        }
        for header in &settings.headers {
            // Parsing the header validated the value, so this does not fail.
            if let Ok(mut value) = HeaderValue::from_str(header.value().expose()) {
                // The debug output of the client then hides the value.
                value.set_sensitive(true);
                // Not `insert`: a header can be configured more than once.
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
        Ok(Self { keeping, fresh: OnceLock::new(), setup, method: protocol.method(), url, headers })
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
    pub(super) async fn request(&self, body: &[u8], connection: Connection) -> Result<Response, reqwest::Error> {
        if connection == Connection::KeptOrFresh {
            match self.send(&self.keeping, body).await {
                // An agent may close an idle connection just when a request is sent: not a failure of the attempt.
                Err(failure) if failure.on_reused_connection => {}
                result => return result.map_err(|failure| failure.error),
            }
        }
        self.send(self.fresh()?, body).await.map_err(|failure| failure.error)
    }

    async fn send(&self, client: &Client, body: &[u8]) -> Result<Response, SendFailure> {
        let request =
            client.request(self.method.clone(), self.url.clone()).headers(self.headers.clone()).body(body.to_vec());
        self.setup.connections().send(request.send()).await
    }

    fn fresh(&self) -> Result<&Client, reqwest::Error> {
        if let Some(client) = self.fresh.get() {
            return Ok(client);
        }
        let client = self.setup.build(ConnectionReuse::Never)?;
        // Two requests may build a client each. The first is used from then on.
        Ok(self.fresh.get_or_init(|| client))
    }
}

/// How much of a failure's body is held in memory before it is streamed to disk, in bytes.
const FAILURE_MEMORY: usize = 64 * 1024;

impl AgentClient {
    /// Sends one request over the given connection and receives its response. Errors come from the disk.
    pub(crate) async fn exchange(
        &self,
        request: &[u8],
        connection: Connection,
        limits: AttemptLimits,
        destination: BodyDestination<'_>,
    ) -> Result<Exchange, WriteError> {
        let start = Instant::now();
        let mut response = match timeout_at(start + limits.first_byte, self.request(request, connection)).await {
            Err(_elapsed) => {
                let fault = Fault::new(Reason::ResponseTimeout, "the agent did not answer in time");
                return Ok(Exchange::failed(fault));
            }
            Ok(Err(error)) if is_file_shortage(&error) => return Ok(Exchange::without_files()),
            Ok(Err(error)) => return Ok(Exchange::failed(request_fault(&error, self.has_proxy()))),
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        let sink_limits = sink_limits(limits, status);
        let deadline = start + limits.timeout;
        let reader = BodyReader { destination, limits: sink_limits, deadline, idle: limits.idle };
        let body = reader.read(&mut response).await?;
        // The status decides first: a failure status fails the attempt, no matter how its body arrived.
        let fault = proxy_status_fault(status, self.has_proxy())
            .or_else(|| status_fault(status))
            .or_else(|| body.fault.clone())
            .or_else(|| body.answer_size_fault(sink_limits));
        let headers = response.headers().clone();
        let response = AgentResponse { status: Some(status), headers, body };
        Ok(Exchange { response: Some(response), fault, ..Exchange::default() })
    }
}

/// Only a possible answer is held in memory completely, because it is parsed there.
fn sink_limits(limits: AttemptLimits, status: StatusCode) -> SinkLimits {
    let memory = if status.is_success() { limits.bytes.answer } else { FAILURE_MEMORY };
    SinkLimits { total: limits.bytes.body, memory, snippet: limits.bytes.snippet }
}

/// Returns the fault of a status that only a proxy sends.
fn proxy_status_fault(status: StatusCode, has_proxy: bool) -> Option<Fault> {
    (has_proxy && status == StatusCode::PROXY_AUTHENTICATION_REQUIRED)
        .then(|| Fault::new(Reason::ClientError, "the proxy answered with status 407: it requires credentials"))
}

/// Returns the fault of a status other than 2xx, which does not depend on the body.
fn status_fault(status: StatusCode) -> Option<Fault> {
    let reason = match status.as_u16() {
        200..=299 => return None,
        300..=399 => Reason::Redirect,
        429 => Reason::RateLimited,
        400..=499 => Reason::ClientError,
        500..=599 => Reason::ServerError,
        _ => Reason::UnexpectedStatus,
    };
    Some(Fault::new(reason, format!("the agent answered with status {}", status.as_u16())))
}
