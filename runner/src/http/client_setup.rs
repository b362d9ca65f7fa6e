//! The configuration of the HTTP clients of one agent: no redirects, no built-in retries, and a proxy for remote hosts only.

use std::cell::Cell;
use std::collections::HashSet;
use std::error::Error;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::http::{Extensions, Uri};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpInfo};
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, Response};
use tower::util::MapFutureLayer;

use crate::secret::Secret;
use crate::settings::{BaseUrl, ResolveRule, Settings};

/// How long an unused connection is kept.
const KEPT_FOR: Duration = Duration::from_secs(90);

/// Whether a client keeps connections for further requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionReuse {
    Keep,
    Never,
}

/// What the clients of one agent are built from.
#[derive(Debug)]
pub(super) struct ClientSetup {
    connect_timeout: Duration,
    route: Route,
    /// Trusted in addition to the certificates of the system.
    certificates: Vec<Certificate>,
    is_plain: bool,
    connections: ReusedConnections,
}

/// The way to the agent.
#[derive(Debug)]
enum Route {
    /// Through the proxy of the system, if one applies.
    System(Option<Proxy>),
    /// To this machine, by a name or by an address. A proxy cannot reach its `localhost`.
    Loopback(Option<String>),
    /// To a configured address. A proxy would not apply the rule.
    Resolved(ResolveRule),
}

/// How long one question whether an agent is ready waits for a connection.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Builds a client that asks whether the agent at `base` is ready.
pub(crate) fn probe_client(base: &BaseUrl) -> Result<Client, reqwest::Error> {
    let setup = ClientSetup {
        connect_timeout: PROBE_TIMEOUT,
        route: Route::of_base(base),
        certificates: Vec::new(),
        is_plain: base.is_plain(),
        connections: ReusedConnections::default(),
    };
    setup.build(ConnectionReuse::Never)
}

/// Returns the addresses of this machine.
pub(crate) fn loopback_addresses(port: u16) -> [SocketAddr; 2] {
    [(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()]
}

impl Route {
    fn of_base(base: &BaseUrl) -> Self {
        if base.is_loopback() {
            Route::Loopback(base.loopback_name().map(str::to_owned))
        } else {
            Route::System(Proxy::of_system(base))
        }
    }
}

impl ClientSetup {
    pub(super) fn new(settings: &Settings, base: &BaseUrl) -> Self {
        let route = match settings.resolve.iter().find(|rule| rule.applies_to(base)) {
            Some(rule) => Route::Resolved(rule.clone()),
            None => Route::of_base(base),
        };
        Self {
            // Shorter than the attempt, so that a host that drops packets is distinguished from a slow agent.
            connect_timeout: settings.phases.connect.min(settings.timeout.mul_f64(0.75)),
            route,
            certificates: settings.certificates.to_vec(),
            is_plain: base.is_plain(),
            connections: ReusedConnections::default(),
        }
    }

    /// Reports whether a rule names the address of the agent.
    pub(super) const fn is_resolved(&self) -> bool {
        matches!(self.route, Route::Resolved(_))
    }

    /// Returns the proxy between this program and the agent.
    pub(super) const fn proxy(&self) -> Option<&Proxy> {
        match &self.route {
            Route::System(proxy) => proxy.as_ref(),
            Route::Loopback(_) | Route::Resolved(_) => None,
        }
    }

    /// Returns the connections of all clients of this setup.
    pub(super) const fn connections(&self) -> &ReusedConnections {
        &self.connections
    }

    /// Builds a client. Reads the certificates of the system.
    pub(super) fn build(&self, reuse: ConnectionReuse) -> Result<Client, reqwest::Error> {
        install_tls_provider();
        let client = self.builder(reuse).tls_certs_merge(self.certificates.clone()).build();
        // Plain HTTP must also work on systems without certificates, such as small containers.
        client.or_else(|error| if self.is_plain { self.builder(reuse).tls_certs_only([]).build() } else { Err(error) })
    }

    fn builder(&self, reuse: ConnectionReuse) -> ClientBuilder {
        let builder = Client::builder()
            .user_agent(concat!("counterproof/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            // Built-in retries would be attempts that are not recorded.
            .retry(reqwest::retry::never())
            .connect_timeout(self.connect_timeout);
        let builder = match reuse {
            ConnectionReuse::Keep => builder.pool_idle_timeout(KEPT_FOR),
            ConnectionReuse::Never => builder.pool_max_idle_per_host(0),
        };
        let builder = self.connections.observe(builder);
        match &self.route {
            Route::System(_) => builder,
            // Both addresses: the system may know one of them only, and the agent may listen on the other one. The port is that of
            // the URL.
            Route::Loopback(Some(name)) => builder.no_proxy().resolve_to_addrs(name, &loopback_addresses(0)),
            Route::Loopback(None) => builder.no_proxy(),
            Route::Resolved(rule) => builder.no_proxy().resolve(rule.host(), rule.address()),
        }
    }
}

/// Installs the TLS provider of the process.
fn install_tls_provider() {
    // An error means that the embedding program installed one already, which is fine.
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// The proxy of an agent.
#[derive(Debug)]
pub(super) struct Proxy {
    credentials: Vec<Secret>,
}

impl Proxy {
    /// Returns the proxy that the HTTP client takes for the agent, if there is one.
    pub(super) fn of_system(base: &BaseUrl) -> Option<Self> {
        let url: Uri = base.request_url("").as_str().parse().ok()?;
        let proxy = Matcher::from_system().intercept(&url)?;
        let basic = proxy.basic_auth().and_then(|header| header.to_str().ok());
        Some(Self { credentials: basic.map(credentials).unwrap_or_default() })
    }

    /// Returns every text that could reveal the credentials.
    pub(super) fn credentials(&self) -> &[Secret] {
        // A proxy may echo them in an error page.
        &self.credentials
    }
}

/// Returns the secrets in the value of a `Proxy-Authorization` header: `Basic` and `user:password` in base64.
fn credentials(header: &str) -> Vec<Secret> {
    let encoded = header.trim_start_matches("Basic ").trim();
    let plain = STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    let password = plain.split_once(':').map_or("", |(_user, password)| password);
    // The user name is not a secret, and without a password it may be a common word.
    let secrets = [encoded, &plain, password].map(str::to_owned);
    let is_long_enough = |text: &String| text.len() >= counterproof_redaction::SHORTEST;
    secrets.into_iter().filter(is_long_enough).map(Secret::from).collect()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_secret_in_each_of_its_forms() {
        let secrets = credentials("Basic dXNlcjpwNHNzd29yZA==");
        let texts: Vec<_> = secrets.iter().map(Secret::expose).collect();
        assert_eq!(texts, ["dXNlcjpwNHNzd29yZA==", "user:p4ssword", "p4ssword"]);
        assert!(credentials("Basic !").is_empty());
    }
}
