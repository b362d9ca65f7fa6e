//! `counterproof guard proxy`: the guard of one MCP server that talks over HTTP.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use counterproof_artifact::Exit;
use counterproof_guard::http::{ClientLimits, PeerRules, ProxyOptions, UpstreamUrl, serve};
use counterproof_guard::identity::{RunIdentity, process_variable};
use counterproof_guard::secrets;
use counterproof_guard::session::{Session, SessionOptions};
use counterproof_ledger::event::Transport;
use serde_json::Map;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::event_recording::EventsArgs;
use super::policy_args::PolicyArgs;
use super::shim::join_run;
use super::warnings::Warnings;
use crate::command_error::CommandError;
use crate::signals::on_ending_signal;
use crate::streams::Streams;
use crate::value_parsers::duration;

/// Guard an MCP server over HTTP: decide about its tool calls, record them, and forward its messages.
///
/// Give the client the URL of the server with the address of the proxy. Without `--policy`, every call is allowed and recorded. The
/// bodies of requests and responses are forwarded byte for byte as they come. The exceptions are refused calls, and batches with
/// refused calls. All clients of one proxy belong to one run, which ends with the proxy.
///
/// Exit code 0: interrupted, which is the normal end. 1: a rule ended the run. 2: the policy or another option is invalid. 3: the
/// policy cannot be read, the address is not available, or the events cannot be recorded.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Address to listen on: a host and a port. Port 0 selects a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8788")]
    listen: ListenAddress,

    /// URL of the server, such as `https://tools.example/mcp`
    #[arg(long, value_name = "URL")]
    upstream: UpstreamUrl,

    /// Name of the server, as in the configuration of the client
    #[arg(long, value_name = "NAME")]
    server_name: String,

    /// Host name that requests may have in addition to those of this machine; may be repeated
    #[arg(long = "allow-host", value_name = "HOST")]
    hosts: Vec<String>,

    /// Origin of web pages that may send requests, such as `https://app.example`; may be repeated
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    origins: Vec<String>,

    /// Forward bodies of the types that a form of any web page can send, such as to an OAuth server at the same address
    #[arg(long)]
    allow_forms: bool,

    /// Maximum number of connections of clients at a time; further ones wait
    #[arg(long, value_name = "N", default_value_t = ClientLimits::default().connections, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_connections: u32,

    /// Time within which a client must send the headers of a request, and each further piece of its body
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    client_timeout: Duration,

    #[command(flatten)]
    policy: PolicyArgs,

    #[command(flatten)]
    events: EventsArgs,
}

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let interrupted = Arc::new(Notify::new());
    let notify = interrupted.clone();
    // First: a signal during the start is stored, and ends the proxy as soon as it serves.
    on_ending_signal(move || notify.notify_one()).map_err(CommandError::io)?;
    let policy = Arc::new(args.policy.load(streams)?);
    let (identity, warnings) = RunIdentity::from_environment(process_variable);
    for warning in warnings {
        streams.warn(warning);
    }
    args.policy.warn_if_unused(&policy, &identity, &args.server_name, streams);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(CommandError::io)?;
    // Before the recording starts, so that a port in use leaves no run in the ledger.
    let listener = runtime.block_on(args.listen.bind())?;
    let address = listener.local_addr().map_err(CommandError::io)?;
    if !address.ip().is_loopback() {
        streams.warn(format_args!(
            "every program that can reach {address} can call the tools of `{}` through the proxy; listen on 127.0.0.1 \
             to prevent it",
            args.server_name
        ));
    }
    // The proxy injects no secrets, so only keys of known formats are masked in what it records.
    let redactor = secrets::redactor(&[]).map_err(CommandError::usage)?;
    let recording = args.events.start(&identity, streams)?;
    let warnings = Warnings::start().map_err(CommandError::io)?;
    let mut meta = Map::new();
    meta.insert("server_name".to_owned(), args.server_name.clone().into());
    meta.insert("upstream".to_owned(), args.upstream.recorded().into());
    let run = join_run(&args.server_name, &policy, &identity, streams);
    let session = Session::start(SessionOptions {
        server_name: args.server_name.clone(),
        transport: Transport::McpHttp,
        identity,
        policy,
        redactor,
        sink: recording.sink(),
        warn: warnings.sender().into_function(),
        meta,
        secrets: Vec::new(),
        run,
    });
    let session = Arc::new(session.map_err(CommandError::io)?);
    let path = args.upstream.path();
    // The socket listens already: a script that waits for this line can connect at once.
    streams.print_line(format_args!("the proxy for {} listens on http://{address}{path}", args.server_name))?;
    let peers = PeerRules::new(address, args.hosts.clone(), args.origins.clone());
    let options = ProxyOptions {
        session: session.clone(),
        upstream: args.upstream.clone(),
        peers,
        allows_forms: args.allow_forms,
        limits: ClientLimits { connections: args.max_connections, silence: args.client_timeout },
    };
    let served = runtime.block_on(serve(listener, options, interrupted.notified()));
    // Requests that are still open are dropped, and their calls end.
    drop(runtime);
    warnings.finish();
    recording.finish(streams);
    served.map_err(CommandError::io)?;
    Ok(if session.termination().is_some() { Exit::Findings } else { Exit::Done })
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListenAddress(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("write a host and a port, such as `127.0.0.1:8788` or `localhost:8788`")]
pub(super) struct InvalidAddress;

impl FromStr for ListenAddress {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let (host, port) = text.rsplit_once(':').ok_or(InvalidAddress)?;
        // Without brackets, the port of an IPv6 address is ambiguous.
        let is_host = !host.is_empty() && !host.contains(['/', '@']) && (host.starts_with('[') || !host.contains(':'));
        if is_host && port.parse::<u16>().is_ok() { Ok(Self(text.to_owned())) } else { Err(InvalidAddress) }
    }
}

impl ListenAddress {
    /// Listens on the first address of the host that is available: loopback addresses come first, and IPv4 before IPv6.
    pub(super) async fn bind(&self) -> Result<TcpListener, CommandError> {
        let resolved = self.0.to_socket_addrs().map_err(|error| {
            CommandError::io(format!("cannot resolve the host of `{}`: {error}", self.0))
                .hint("pass an IP address of this machine, such as `--listen 127.0.0.1:8788`")
        })?;
        let mut addresses: Vec<SocketAddr> = resolved.collect();
        addresses.sort_by_key(|address| (!address.ip().is_loopback(), address.is_ipv6()));
        TcpListener::bind(&addresses[..]).await.map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::AddrNotAvailable => {
                    "pass an IP address of this machine, such as `--listen 127.0.0.1:8788`"
                }
                io::ErrorKind::PermissionDenied => "select a port above 1023",
                _ => "select a free port with `--listen 127.0.0.1:0`",
            };
            CommandError::io(format!("cannot listen on {}: {error}", self.0)).hint(hint)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_ports_are_addresses() {
        for text in ["127.0.0.1:0", "[::1]:8788", "localhost:8788", "0.0.0.0:65535", "my-host.lan:80"] {
            assert_eq!(text.parse(), Ok(ListenAddress(text.to_owned())));
        }
        for text in ["", "localhost", "8788", ":8788", "localhost:", "localhost:65536", "http://localhost:1", "::1:80"]
        {
            assert_eq!(text.parse::<ListenAddress>(), Err(InvalidAddress), "{text}");
        }
    }
}
