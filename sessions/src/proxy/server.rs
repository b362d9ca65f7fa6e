//! The listeners of the proxy, one for each provider, and the life of their connections.
//!
//! Each provider has a port of its own, so that the path of a request is the same at the proxy and at the server.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::UPGRADE;
use axum::http::{HeaderValue, Method, Request, Response, StatusCode};
use axum::serve::Listener;
use counterproof_guard::http::{PeerError, PeerRules, Upstream, UpstreamUrl};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::timeout;

use super::exchange::{Shared, ask, pass, refusal};
use super::headers::SubstitutedKey;
use super::recorder::{ProxyCounts, Recorder, Records, Secret};
use crate::protocol::api_of_request;

/// The base URL of the clients of OpenAI.
pub const OPENAI_DEFAULT: &str = "https://api.openai.com/v1";
/// The base URL of the clients of Anthropic.
pub const ANTHROPIC_DEFAULT: &str = "https://api.anthropic.com";

/// Connections at a time, for each provider. Further ones wait in the queue of the listener.
const MAX_CONNECTIONS: usize = 1024;

/// Answers that have not ended this long after the proxy was stopped are cut off, and their records get as long again.
const GRACE: Duration = Duration::from_secs(5);

pub struct ProxyOptions {
    pub session_id: String,
    pub records: Arc<dyn Records>,
    /// Whether requests are refused once a record could not be added.
    pub requires_records: bool,
    pub openai: UpstreamUrl,
    pub anthropic: UpstreamUrl,
    /// The real key, for an agent that does not know it.
    pub key: Option<SubstitutedKey>,
    pub now: fn() -> Timestamp,
}

#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    #[error("cannot listen on 127.0.0.1: {0}")]
    Listen(#[source] std::io::Error),
    #[error("cannot create the HTTP client: {0}")]
    Client(#[source] reqwest::Error),
}

/// A proxy whose ports are known, and which serves nothing yet.
pub struct ListeningProxy {
    recorder: Arc<Recorder>,
    now: fn() -> Timestamp,
    openai: Provider,
    anthropic: Provider,
    key: Option<SubstitutedKey>,
}

struct Provider {
    listener: TcpListener,
    port: u16,
    upstream: Arc<Upstream>,
}

impl Provider {
    async fn bind(url: UpstreamUrl) -> Result<Self, ProxyError> {
        let upstream = Arc::new(Upstream::new(url).map_err(ProxyError::Client)?);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(ProxyError::Listen)?;
        let port = listener.local_addr().map_err(ProxyError::Listen)?.port();
        Ok(Self { listener, port, upstream })
    }

    fn base_url(&self) -> String {
        let url = self.upstream.url();
        // The path and query of the base URL are the same at the proxy.
        let path = if url.path() == "/" { "" } else { url.path() };
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        format!("http://127.0.0.1:{}{path}{query}", self.port)
    }
}

impl ListeningProxy {
    /// Takes a free port for each provider.
    pub async fn bind(options: ProxyOptions) -> Result<Self, ProxyError> {
        let ProxyOptions { session_id, records, requires_records, openai, anthropic, key, now } = options;
        for password in openai.password().iter().chain(&anthropic.password()) {
            records.saw_secret(&Secret::new((*password).to_owned()));
        }
        for secret in key.iter().flat_map(|key| [&key.placeholder, &key.real]) {
            records.saw_secret(secret);
        }
        let recorder = Arc::new(Recorder::new(&session_id, records, requires_records));
        let (openai, anthropic) = (Provider::bind(openai).await?, Provider::bind(anthropic).await?);
        Ok(Self { recorder, now, openai, anthropic, key })
    }

    /// The agent's `OPENAI_BASE_URL`.
    pub fn openai_base_url(&self) -> String {
        self.openai.base_url()
    }

    /// The agent's `ANTHROPIC_BASE_URL`.
    pub fn anthropic_base_url(&self) -> String {
        self.anthropic.base_url()
    }

    /// Serves until `stop` ends. Open answers have a few seconds to end, and are recorded in any case.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> ProxyCounts {
        let Self { recorder, now, openai, anthropic, key } = self;
        let (alive, mut ended) = mpsc::channel(1);
        let ((stopping, stopped), (abort, aborted)) = (watch::channel(false), watch::channel(false));
        let shared = Arc::new(Shared { recorder: recorder.clone(), key, now, abort: aborted, alive });
        tokio::select! {
            () = stop => {}
            never = serve_provider(openai, &shared, &stopped) => match never {},
            never = serve_provider(anthropic, &shared, &stopped) => match never {},
        }
        stopping.send_replace(true);
        drop(shared);
        // No message is sent: the channel ends with the last connection and exchange.
        if timeout(GRACE, ended.recv()).await.is_err() {
            abort.send_replace(true);
            let _ = timeout(GRACE, ended.recv()).await;
        }
        recorder.counts()
    }
}

async fn serve_provider(provider: Provider, shared: &Arc<Shared>, stopped: &watch::Receiver<bool>) -> Infallible {
    let Provider { mut listener, upstream, .. } = provider;
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        // Only a closed semaphore fails, and this one is never closed.
        let Ok(slot) = slots.clone().acquire_owned().await else { return std::future::pending().await };
        // Failures to accept, such as too many open files, are waited out.
        let (stream, _) = Listener::accept(&mut listener).await;
        // A piece must not wait for the next one. Without the option it only comes later.
        let _ = stream.set_nodelay(true);
        tokio::spawn(serve_connection(stream, shared.clone(), upstream.clone(), stopped.clone(), slot));
    }
}

async fn serve_connection(
    stream: TcpStream,
    shared: Arc<Shared>,
    upstream: Arc<Upstream>,
    mut stopped: watch::Receiver<bool>,
    _slot: OwnedSemaphorePermit,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (shared, upstream) = (shared.clone(), upstream.clone());
        async move { Ok::<_, Infallible>(handle(shared, upstream, request).await) }
    });
    let mut builder = http1::Builder::new();
    // The server's own date is passed on. There is no time limit: an agent may keep a connection for its whole life.
    builder.auto_date_header(false);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // An error is the end of a connection by its client.
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        // The sender is dropped with the proxy.
        _ = stopped.wait_for(|stopped| *stopped) => None,
    };
    if ended.is_none() {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

async fn handle(shared: Arc<Shared>, upstream: Arc<Upstream>, request: Request<Incoming>) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    // First, before the body is read: a web page must not make the proxy store anything.
    let rules = PeerRules::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Vec::new(), Vec::new());
    if let Err(problem) = rules.check(&parts.uri, &parts.headers) {
        shared.recorder.count_unrecorded_request();
        let message = match problem {
            PeerError::Host => "the host of the request is not a name of this machine".to_owned(),
            PeerError::Origin => "the origin of the request is not this machine".to_owned(),
            PeerError::RepeatedHost => problem.to_string(),
        };
        return refusal(problem.status(), &message);
    }
    if parts.method == Method::CONNECT {
        shared.recorder.count_unrecorded_request();
        return refusal(StatusCode::METHOD_NOT_ALLOWED, "the proxy opens no tunnels");
    }
    let upgrade = parts.headers.get(UPGRADE);
    if upgrade.is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket")) {
        shared.recorder.count_unrecorded_request();
        // Clients such as Codex take this status as a reason to send the request over HTTP.
        let mut response = refusal(StatusCode::UPGRADE_REQUIRED, "WebSockets are not recorded: use HTTP");
        response.headers_mut().insert(UPGRADE, HeaderValue::from_static("HTTP/1.1"));
        return response;
    }
    if let Some(key) = &shared.key {
        key.substitute(&mut parts.headers);
    }
    if let Some(api) = api_of_request(parts.method.as_str(), parts.uri.path()) {
        return ask(shared, upstream, api, parts, body).await;
    }
    shared.recorder.count_unrecorded_request();
    pass(&upstream, parts, body).await
}
