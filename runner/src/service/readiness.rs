//! Asks once whether an agent is ready. The caller repeats the question.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use reqwest::{Client, Url};
use tokio::runtime::{Builder, Runtime};

use super::output::Output;
use super::start_spec::Awaited;
use crate::environment::{Interrupt, Urgency};
use crate::http::{loopback_addresses, probe_client};
use crate::settings::BaseUrl;

/// How long one question may take.
const LIMIT: Duration = Duration::from_secs(5);

/// A question that can be asked many times.
pub(super) enum Probe {
    Connection(BaseUrl),
    Response { url: Url, client: Client, runtime: Runtime },
    Time(Duration),
    Line,
}

/// When and for how long a question is asked.
pub(super) struct Question<'a> {
    /// When the agent was started.
    pub(super) started: Instant,
    pub(super) deadline: Instant,
    pub(super) output: &'a Output,
    pub(super) interrupt: &'a Interrupt,
}

impl Probe {
    pub(super) fn new(awaited: &Awaited) -> io::Result<Self> {
        Ok(match awaited {
            Awaited::Connection(base) => Probe::Connection(base.clone()),
            Awaited::Response(url) => Probe::Response {
                url: url.full().clone(),
                client: probe_client(url).map_err(io::Error::other)?,
                runtime: Builder::new_current_thread().enable_all().build()?,
            },
            Awaited::Time(time) => Probe::Time(*time),
            Awaited::Line(_) => Probe::Line,
        })
    }

    /// Reports whether the agent is ready.
    pub(super) fn is_ready(&self, question: &Question<'_>) -> bool {
        let limit = question.deadline.saturating_duration_since(Instant::now()).min(LIMIT);
        match self {
            Probe::Connection(base) => accepts(base, limit),
            Probe::Response { url, client, runtime } => runtime.block_on(async {
                let response = tokio::time::timeout(limit, client.get(url.clone()).send());
                tokio::select! {
                    () = question.interrupt.wait_for(Urgency::Finish) => false,
                    response = response => {
                        matches!(response, Ok(Ok(response)) if !response.status().is_server_error())
                    }
                }
            }),
            Probe::Time(time) => question.started.elapsed() >= *time,
            Probe::Line => question.output.has_awaited(),
        }
    }
}

/// Reports whether the host of a URL accepts a connection, at any of its addresses.
pub(super) fn accepts(base: &BaseUrl, limit: Duration) -> bool {
    // A limit of zero is an error of the system call.
    let limit = limit.max(Duration::from_millis(1));
    addresses(base).iter().any(|address| TcpStream::connect_timeout(address, limit).is_ok())
}

fn addresses(base: &BaseUrl) -> Vec<SocketAddr> {
    let Some(port) = base.full().port_or_known_default() else { return Vec::new() };
    if base.loopback_name().is_some() {
        return loopback_addresses(port).to_vec();
    }
    let host = base.full().host_str().unwrap_or_default();
    // In a URL, an IPv6 address is in brackets.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (host, port).to_socket_addrs().map(Iterator::collect).unwrap_or_default()
}
