//! Connects to a PostgreSQL server, with TLS where its URL requires it.

use std::error::Error;
use std::time::Duration;

use postgres::config::{Host, SslMode};
use postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::location::PostgresUrl;
use crate::store::StoreError;

/// The name by which the server lists the connection.
const NAME: &str = "counterproof";

/// How long to wait for a connection, unless the URL states a time.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// How long the system waits for the answer to a packet.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// Settings of a session. Each commit is on the disk of the server when it returns, and a client that hangs does not block the
/// others.
const SETTINGS: &str = "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'; \
                        SET synchronous_commit = on; SET client_min_messages = warning";

/// Connects to the database of a URL.
pub(super) fn connect(url: &PostgresUrl) -> Result<Client, StoreError> {
    let failed = StoreError::postgres(url);
    let mut config = parse(url)?;
    config.application_name(NAME).tcp_user_timeout(ANSWER_WITHIN);
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_WITHIN);
    }
    let mut client = match tls(&config).map_err(|reason| StoreError::Tls { location: url.to_string(), reason })? {
        Some(tls) => config.connect(tls),
        None => config.connect(NoTls),
    }
    .map_err(&failed)?;
    client.batch_execute(SETTINGS).map_err(&failed)?;
    Ok(client)
}

fn parse(url: &PostgresUrl) -> Result<Config, StoreError> {
    let Some(text) = url.connection_text() else {
        let reason = "write `:`, `/`, `?`, `&`, `=` and `@` in names and passwords as `%3A`, `%2F`, `%3F`, `%26`, `%3D` and `%40`";
        return Err(StoreError::Url { location: url.to_string(), reason: reason.to_owned() });
    };
    text.parse().map_err(|error: postgres::Error| {
        // The error names a parameter, and never its value.
        let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        StoreError::Url { location: url.to_string(), reason }
    })
}

/// Returns the TLS client. Returns `None` if the connection needs none, or prefers TLS and the system has no certificates.
fn tls(config: &Config) -> Result<Option<MakeRustlsConnect>, String> {
    let is_local = config.get_hosts().iter().all(|host| !matches!(host, Host::Tcp(_)));
    if config.get_ssl_mode() == SslMode::Disable || is_local {
        return Ok(None);
    }
    // An error means that the program installed a provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match MakeRustlsConnect::with_native_certs() {
        Ok((tls, _)) => Ok(Some(tls)),
        Err(_) if config.get_ssl_mode() == SslMode::Prefer => Ok(None),
        Err(errors) => Err(errors.first().map_or_else(|| "there are none".to_owned(), ToString::to_string)),
    }
}
