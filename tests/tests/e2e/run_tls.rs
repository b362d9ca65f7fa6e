//! TLS: which certificates are trusted, and errors in plain words.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use counterproof_tests::{Finished, Sandbox, minimal_answer};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, Stream};

/// The certificate of an authority that signed `certificate.der`, valid until 2126. The keys protect nothing and are public.
const AUTHORITY: &str = include_str!("tls/authority.pem");

/// Starts an agent that answers each case over TLS, with a certificate for 127.0.0.1. Returns its port.
fn agent() -> u16 {
    let certificate = include_bytes!("tls/certificate.der").as_slice().into();
    let key = PrivateKeyDer::Pkcs8(include_bytes!("tls/key.der").as_slice().into());
    let provider = rustls::crypto::ring::default_provider().into();
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let mut session = ServerConnection::new(config.clone()).unwrap();
            let mut stream = Stream::new(&mut session, &mut socket);
            // The client aborts the handshake if it does not trust the certificate.
            if matches!(stream.read(&mut [0; 16 * 1024]), Ok(1..)) {
                let body = minimal_answer().to_string();
                let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
                let _ = stream.write_all((head + &body).as_bytes());
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        }
    });
    port
}

fn sandbox() -> Sandbox {
    let cases = r#"[{"id": "c1", "input": {"user": "go"}}]"#;
    Sandbox::new().with_file("cases.json", cases).with_file("authority.pem", AUTHORITY)
}

fn run(sandbox: &Sandbox, base_url: &str, more: &[&str]) -> Finished {
    let fixed = ["run", "--cases", "cases.json", "--side", "new", "--run-id", "r", "--retries", "0"];
    sandbox.run(fixed.iter().chain(&["--base-url", base_url]).chain(more))
}

fn at(port: u16) -> String {
    format!("https://127.0.0.1:{port}")
}

#[test]
fn an_untrusted_certificate_is_explained_with_a_hint() {
    let (sandbox, url) = (sandbox(), at(agent()));
    let finished = run(&sandbox, &url, &[]);
    assert_eq!(finished.code, Some(3), "{finished}");
    let expected = format!(
        "error: cannot reach the agent at {url}: the agent's certificate is signed by an unknown authority\n\
         hint: for a certificate of your own authority, pass `--ca-file FILE`; for an agent without TLS, use `http://` in the \
         base URL\n"
    );
    assert!(finished.stderr.contains(&expected), "{finished}");
}

#[test]
fn the_authority_of_the_ca_file_is_trusted() {
    let (sandbox, url) = (sandbox(), at(agent()));
    let finished = run(&sandbox, &url, &["--ca-file", "authority.pem"]);
    assert_eq!(finished.code, Some(0), "{finished}");
    let replayed = sandbox.run(["replay", "runs/new/r/c1.json", "--ca-file", "authority.pem"]);
    assert_eq!((replayed.code, &*replayed.stdout), (Some(0), "the answers are equivalent\n"), "{replayed}");
}

#[test]
fn a_certificate_for_another_host_is_explained() {
    let port = agent();
    let address = format!("agent.example:127.0.0.1:{port}");
    let finished = run(&sandbox(), "https://agent.example", &["--ca-file", "authority.pem", "--resolve", &address]);
    assert!(finished.stderr.contains("the agent's certificate is for another host name\n"), "{finished}");
}

#[test]
fn a_ca_file_without_certificates_is_refused() {
    let sandbox = sandbox();
    let missing = run(&sandbox, "https://127.0.0.1:9", &["--ca-file", "missing.pem"]);
    assert_eq!(missing.code, Some(3), "{missing}");
    assert!(missing.stderr.contains("failed to read `missing.pem`"), "{missing}");
    let wrong = run(&sandbox, "https://127.0.0.1:9", &["--ca-file", "cases.json"]);
    assert_eq!(wrong.code, Some(2), "{wrong}");
    assert!(wrong.stderr.contains("`cases.json` has no usable certificates: no `BEGIN CERTIFICATE` in it"), "{wrong}");
    assert!(!sandbox.path("runs").exists());
}

#[test]
#[cfg(target_os = "linux")]
fn ssl_cert_file_is_used_and_an_unreadable_one_is_an_error() {
    let trusting = sandbox().with_variable("SSL_CERT_FILE", "authority.pem");
    let finished = run(&trusting, &at(agent()), &[]);
    assert_eq!(finished.code, Some(0), "{finished}");

    let wrong = sandbox().with_variable("SSL_CERT_FILE", "missing.pem");
    let finished = run(&wrong, "https://127.0.0.1:9", &[]);
    assert_eq!(finished.code, Some(3), "{finished}");
    let expected = "failed to read `missing.pem`, which `SSL_CERT_FILE` names: ";
    assert!(finished.stderr.contains(expected) && finished.stderr.contains("hint: correct or unset"), "{finished}");

    let empty = sandbox().with_variable("SSL_CERT_FILE", "cases.json");
    assert_eq!(run(&empty, "https://127.0.0.1:9", &[]).code, Some(2));
}
