//! The targets of requests: a scripted agent, or an address without a usable server.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection};
use tokio::net::TcpSocket;

use crate::kit::{Agent, Reaction, plain_http_for_tls};

/// A target of requests.
pub(super) enum RequestTarget {
    /// An agent that reacts to every request in the same way.
    Agent(Reaction),
    /// An agent that accepts TLS connections and then sends nothing.
    SilentTls,
    /// An agent that answers TLS connections in plain HTTP.
    PlainHttpForTls,
    /// An agent with a self-signed certificate.
    UntrustedTls,
    /// An address that neither accepts nor refuses connections.
    FullQueue,
    /// An address without a listener.
    NoListener,
    /// A name that does not resolve.
    NoSuchName,
}

/// A started target. Stops when dropped.
pub(super) struct StartedTarget {
    pub(super) url: String,
    _held: Box<dyn std::any::Any>,
}

impl RequestTarget {
    pub(super) fn start(&self) -> StartedTarget {
        let started = |url: String, held: Box<dyn std::any::Any>| StartedTarget { url, _held: held };
        match self {
            RequestTarget::Agent(reaction) => {
                let agent = Agent::new([reaction.clone()]);
                started(agent.url(), Box::new(agent))
            }
            RequestTarget::SilentTls => {
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                started(format!("https://{}", listener.local_addr().unwrap()), Box::new(listener))
            }
            RequestTarget::PlainHttpForTls => started(plain_http_for_tls(), Box::new(())),
            RequestTarget::UntrustedTls => started(untrusted_tls(), Box::new(())),
            RequestTarget::FullQueue => {
                let (listener, waiting) = full_queue();
                started(format!("http://{}", listener.local_addr().unwrap()), Box::new((listener, waiting)))
            }
            RequestTarget::NoListener => {
                let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
                started(format!("http://{address}"), Box::new(()))
            }
            RequestTarget::NoSuchName => started("http://no-such-agent.invalid".to_owned(), Box::new(())),
        }
    }
}

/// Starts a TLS server with a self-signed certificate for this address, valid until 2126. The key protects
/// nothing and is public.
fn untrusted_tls() -> String {
    let certificate = include_bytes!("untrusted/certificate.der").as_slice().into();
    let key = PrivateKeyDer::Pkcs8(include_bytes!("untrusted/key.der").as_slice().into());
    let provider = rustls::crypto::ring::default_provider().into();
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut session = ServerConnection::new(config.clone()).unwrap();
            // The client aborts the handshake, which is an error on this side.
            let _ = session.complete_io(&mut stream);
        }
    });
    url
}

/// Returns a listener with a full connection queue: the system drops further connections.
fn full_queue() -> (TcpListener, Vec<TcpStream>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        socket.listen(1).unwrap().into_std().unwrap()
    });
    let address = listener.local_addr().unwrap();
    let timeout = std::time::Duration::from_millis(100);
    let mut waiting = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, timeout) {
        waiting.push(stream);
        assert!(waiting.len() < 64, "the queue never fills");
    }
    (listener, waiting)
}
