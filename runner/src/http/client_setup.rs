//! The configuration of the HTTP clients of one agent: no redirects, no built-in retries, and a proxy for remote hosts only.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder};

use super::proxy::Proxy;
use super::reused_connections::ReusedConnections;
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
    /// To this machine. A proxy cannot reach its `localhost`.
    Loopback,
    /// To a configured address. A proxy would not apply the rule.
    Resolved(ResolveRule),
}

impl ClientSetup {
    pub(super) fn new(settings: &Settings, base: &BaseUrl) -> Self {
        let route = match settings.resolve.iter().find(|rule| rule.applies_to(base)) {
            Some(rule) => Route::Resolved(rule.clone()),
            None if base.is_loopback() => Route::Loopback,
            None => Route::System(Proxy::of_system(base)),
        };
        Self {
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
            Route::Loopback | Route::Resolved(_) => None,
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
            Route::Loopback => builder.no_proxy(),
            Route::Resolved(rule) => builder.no_proxy().resolve(rule.host(), rule.address()),
        }
    }
}

/// Installs the TLS provider of the process. An error means that the embedding program installed one already, which is fine.
fn install_tls_provider() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
