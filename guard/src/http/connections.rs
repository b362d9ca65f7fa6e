//! The connections of clients: how many are open at a time, and how long a client may send nothing.
//!
//! What a client holds open costs memory that it pays for with bytes: buffers grow with what arrives and not with the
//! lengths that a client announces.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::proxy::Proxy;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// Number of connections at a time. Further ones wait in the queue of the listener.
    pub connections: u32,
    /// Within this time, a client must send all headers of a request, and each further piece of its body. A connection
    /// without a request is closed after this time.
    pub silence: Duration,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self { connections: 256, silence: Duration::from_secs(30) }
    }
}

pub(super) struct Connections {
    slots: Arc<Semaphore>,
    limits: ClientLimits,
}

impl Connections {
    pub(super) fn new(limits: ClientLimits) -> Self {
        Self { slots: Arc::new(Semaphore::new(limits.connections as usize)), limits }
    }

    /// Accepts connections, and serves each in a task of its own.
    pub(super) async fn serve(&self, mut listener: TcpListener, proxy: &Arc<Proxy>) -> Infallible {
        let mut has_warned = false;
        loop {
            let slot = if let Ok(slot) = self.slots.clone().try_acquire_owned() {
                slot
            } else {
                if !std::mem::replace(&mut has_warned, true) {
                    proxy.warn(&format!(
                        "all {} connections are in use, and further ones wait; see `--max-connections`",
                        self.limits.connections
                    ));
                }
                self.free_slot().await
            };
            // Failures to accept, such as too many open files, are waited out.
            let (stream, _) = Listener::accept(&mut listener).await;
            // A piece must not wait for the next one. Without the option it only comes later.
            let _ = stream.set_nodelay(true);
            tokio::spawn(serve_connection(stream, proxy.clone(), self.limits.silence, slot));
        }
    }

    async fn free_slot(&self) -> OwnedSemaphorePermit {
        match self.slots.clone().acquire_owned().await {
            Ok(slot) => slot,
            // Only a closed semaphore fails, and this one is never closed.
            Err(_) => std::future::pending().await,
        }
    }

    /// Waits until every connection has ended.
    pub(super) async fn ended(&self) {
        let _ = self.slots.acquire_many(self.limits.connections).await;
    }
}

async fn serve_connection(stream: TcpStream, proxy: Arc<Proxy>, silence: Duration, _slot: OwnedSemaphorePermit) {
    let stopping = proxy.stopping();
    let service = service_fn(move |request: Request<Incoming>| {
        let proxy = proxy.clone();
        async move { Ok::<_, Infallible>(proxy.handle(request.map(Body::new)).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(silence);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // An error is the end of a connection by its client, or by the time limit.
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = stopping => None,
    };
    if ended.is_none() {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}
