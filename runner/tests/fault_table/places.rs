//! Where a request ends up: a scripted agent, or an address where there is none.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection};
use tokio::net::TcpSocket;

use crate::kit::{Agent, Reaction, plain_http_for_tls};

/// A place to send requests to.
pub(super) enum Place {
    /// An agent that reacts so to every request.
    Agent(Reaction),
    /// An agent that accepts a connection and then never says a word, asked over TLS.
    SilentTls,
    /// An agent that answers in plain HTTP, asked over TLS.
    PlainHttpForTls,
    /// An agent whose certificate nobody has signed but itself.
    UntrustedTls,
    /// An address that takes no connection and refuses none.
    FullQueue,
    /// An address where nobody listens.
    Nobody,
    /// A name that does not resolve.
    NoSuchName,
}

/// A place as it stands; gone when dropped.
pub(super) struct Standing {
    pub(super) url: String,
    _held: Box<dyn std::any::Any>,
}

impl Place {
    pub(super) fn stand(&self) -> Standing {
        let standing = |url: String, held: Box<dyn std::any::Any>| Standing { url, _held: held };
        match self {
            Place::Agent(reaction) => {
                let agent = Agent::new([reaction.clone()]);
                standing(agent.url(), Box::new(agent))
            }
            Place::SilentTls => {
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                standing(format!("https://{}", listener.local_addr().unwrap()), Box::new(listener))
            }
            Place::PlainHttpForTls => standing(plain_http_for_tls(), Box::new(())),
            Place::UntrustedTls => standing(untrusted_tls(), Box::new(())),
            Place::FullQueue => {
                let (listener, waiting) = full_queue();
                standing(format!("http://{}", listener.local_addr().unwrap()), Box::new((listener, waiting)))
            }
            Place::Nobody => {
                let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
                standing(format!("http://{address}"), Box::new(()))
            }
            Place::NoSuchName => standing("http://no-such-agent.invalid".to_owned(), Box::new(())),
        }
    }
}

/// A server of TLS with a certificate for this address that it has signed itself, and that is good until 2126. The key guards
/// nothing.
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
            // The client breaks the handshake off, which is an error on this side.
            let _ = session.complete_io(&mut stream);
        }
    });
    url
}

/// A listener whose queue of connections is full: the system drops what else comes.
fn full_queue() -> (TcpListener, Vec<TcpStream>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        socket.listen(1).unwrap().into_std().unwrap()
    });
    let address = listener.local_addr().unwrap();
    let patience = std::time::Duration::from_millis(100);
    let mut waiting = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, patience) {
        waiting.push(stream);
        assert!(waiting.len() < 64, "the queue never fills");
    }
    (listener, waiting)
}
