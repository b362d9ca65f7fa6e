//! The life of a proxy: from its listener to the end of its last response.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::serve::ListenerExt as _;
use counterproof_ledger::event::{CallStatus, ErrorClass, RunStatus};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::proxy::Proxy;
use super::upstream::Upstream;
use super::{PeerRules, UpstreamUrl};
use crate::session::{OpenCallsEnd, Session};

/// Calls that have not ended this long after the proxy was stopped are cut off.
const GRACE: Duration = Duration::from_secs(5);

/// What a proxy is made of.
pub struct ProxyOptions {
    /// The run.
    pub session: Arc<Session>,
    /// The server.
    pub upstream: UpstreamUrl,
    /// Which requests are accepted.
    pub peers: PeerRules,
}

/// Why a proxy could not run.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The HTTP client could not be created.
    #[error("cannot create the HTTP client: {0}")]
    Client(#[source] reqwest::Error),
    #[error("the listener failed: {0}")]
    Listener(#[source] io::Error),
}

/// Serves until `stop` ends or a rule ends the run, and then ends the session. Open calls have a few seconds to end.
pub async fn serve(
    listener: TcpListener,
    options: ProxyOptions,
    stop: impl Future<Output = ()>,
) -> Result<(), ProxyError> {
    let upstream = Upstream::new(options.upstream).map_err(ProxyError::Client)?;
    let proxy = Arc::new(Proxy::new(options.session.clone(), upstream, options.peers));
    let handler = proxy.clone();
    let app = Router::new().fallback(move |request: Request<Body>| {
        let proxy = handler.clone();
        async move { proxy.handle(request).await }
    });
    let listener = listener.tap_io(|stream| {
        // A piece must not wait for the next one. Without the option it only comes later.
        let _ = stream.set_nodelay(true);
    });
    let mut serving = std::pin::pin!(axum::serve(listener, app).with_graceful_shutdown(proxy.stopping()).into_future());
    let abandoned = proxy.end_abandoned_calls();
    let result = tokio::select! {
        served = &mut serving => served,
        () = abandoned => Ok(()),
        () = async { tokio::select! { () = stop => {}, () = proxy.stopping() => {} } } => {
            proxy.stop();
            timeout(GRACE, serving).await.unwrap_or(Ok(()))
        }
    };
    let reached = proxy.reachability.finish(&options.session);
    let status = if options.session.termination().is_some() { RunStatus::Terminated } else { reached };
    let open = OpenCallsEnd {
        status: CallStatus::Cancelled,
        class: ErrorClass::Unknown,
        message: "the proxy was stopped before the call ended",
    };
    options.session.finish(status, open);
    result.map_err(ProxyError::Listener)
}
