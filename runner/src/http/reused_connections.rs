//! Connections that are kept for further requests, and requests that break on one of them.
//!
//! A server may close a kept connection at any time. If a request is sent at that moment, it breaks although the agent is fine:
//! the server has not read it. Such a request is sent once more on a fresh connection, and does not count as an attempt.

use std::cell::Cell;
use std::collections::HashSet;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::http::Extensions;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpInfo};
use reqwest::{ClientBuilder, Response};
use tower::util::MapFutureLayer;

tokio::task_local! {
    /// The local address of the connection that the request of this task has opened.
    ///
    /// A request may open a connection and then use one that another request has left open in the meantime.
    static OPENED: Cell<Option<SocketAddr>>;
}

/// The open connections that have answered a request, by their local address.
#[derive(Debug, Clone, Default)]
pub(super) struct ReusedConnections(Arc<Mutex<HashSet<SocketAddr>>>);

/// A request that failed before the head of a response.
#[derive(Debug)]
pub(super) struct SendFailure {
    pub(super) error: reqwest::Error,
    /// The request broke on a connection that another request had opened or used.
    pub(super) on_reused_connection: bool,
}

impl ReusedConnections {
    /// Observes which connections the client opens.
    pub(super) fn observe(&self, builder: ClientBuilder) -> ClientBuilder {
        let connections = self.clone();
        builder.connector_layer(MapFutureLayer::new(move |connecting| note_opened(connections.clone(), connecting)))
    }

    /// Awaits the response to a request of a client that is observed.
    pub(super) async fn send(
        &self,
        response: impl Future<Output = Result<Response, reqwest::Error>>,
    ) -> Result<Response, SendFailure> {
        let noted = async {
            match response.await {
                Ok(response) => {
                    self.answered().extend(response.extensions().get::<HttpInfo>().map(HttpInfo::local_addr));
                    Ok(response)
                }
                Err(error) => {
                    let on_reused_connection = broken_connection(&error).is_some_and(|broken| self.is_reused(broken));
                    Err(SendFailure { error, on_reused_connection })
                }
            }
        };
        OPENED.scope(Cell::new(None), noted).await
    }

    fn is_reused(&self, connection: SocketAddr) -> bool {
        OPENED.with(Cell::get) != Some(connection) || self.answered().contains(&connection)
    }

    fn answered(&self) -> MutexGuard<'_, HashSet<SocketAddr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn note_opened<C: Connection, E>(
    connections: ReusedConnections,
    connecting: impl Future<Output = Result<C, E>>,
) -> Result<C, E> {
    let connection = connecting.await?;
    if let Some(address) = local_address(&connection.connected()) {
        // An earlier connection may have had the same port.
        connections.answered().remove(&address);
        // Outside of `send`, the request is already under way on another connection.
        let _ = OPENED.try_with(|opened| opened.set(Some(address)));
    }
    Ok(connection)
}

/// Returns the local address of the connection that broke while a request was sent or a response was awaited.
fn broken_connection(error: &reqwest::Error) -> Option<SocketAddr> {
    let causes = || std::iter::successors(error.source(), |error| (*error).source());
    let connected = causes().find_map(|cause| cause.downcast_ref::<legacy::Error>()?.connect_info())?;
    let cause = causes().find_map(|cause| cause.downcast_ref::<hyper::Error>())?;
    // A response that is not HTTP is an answer, and a time-out may follow work that the agent has done.
    if cause.is_parse() || cause.is_timeout() || cause.is_user() {
        return None;
    }
    local_address(connected)
}

fn local_address(connected: &Connected) -> Option<SocketAddr> {
    let mut extensions = Extensions::new();
    connected.get_extras(&mut extensions);
    extensions.get::<HttpInfo>().map(HttpInfo::local_addr)
}
