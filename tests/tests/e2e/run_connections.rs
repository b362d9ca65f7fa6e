//! How `counterproof run` reaches agents: directly, through proxies, over TLS, and the hints if it does not reach them.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use counterproof_tests::{Agent, Finished, Reply, Sandbox, files_below, minimal_answer};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, Stream};
use serde_json::json;

/// Runs two cases, and returns the hints.
fn hints(agent: &Agent) -> String {
    let cases = json!([{"id": "c0", "input": {"user": "go"}}, {"id": "c1", "input": {"user": "go"}}]);
    let sandbox = Sandbox::new().with_file("cases.json", &cases.to_string());
    let url = agent.base_url();
    let line = ["run", "--cases", "cases.json", "--side", "new", "--run-id", "r1", "--base-url", &url];
    let finished = sandbox.run(line);
    assert_eq!(finished.code, Some(1), "{finished}");
    let hints = finished.stderr.lines().filter(|line| line.starts_with("hint: "));
    hints.collect::<Vec<_>>().join("\n").replace(&url, "[url]")
}

#[test]
fn the_first_violation_is_quoted_if_every_answer_violates_the_contract() {
    let agent = Agent::start(|_case_id| {
        let mut answer = minimal_answer();
        answer["events"] = json!([{"type": "tool_call", "ts": 1, "tool": "lookup"}]);
        Reply::json(&answer)
    });
    insta::assert_snapshot!(hints(&agent), @"hint: every case failed as `contract_violated`; the first violation of c0 at /events/0: the field `args` is missing; see `runner_failure.violations` in runs/new/r1/c0.json");
}

#[test]
fn an_agent_that_answers_every_case_with_404_may_have_another_path() {
    let agent = Agent::start(|_case_id| Reply::text(404, "text/plain", "not found"));
    insta::assert_snapshot!(hints(&agent), @"hint: every case failed with status 404; check that the path of `--base-url` is correct");
}

#[test]
fn there_is_no_hint_if_the_failures_differ() {
    let agent = Agent::start(|case_id| match case_id {
        "c0" => Reply::text(404, "text/plain", "not found"),
        _ => Reply::json(&json!({"answer": "done"})),
    });
    assert_eq!(hints(&agent), "");
    let forbidden = Agent::start(|case_id| Reply::text(if case_id == "c0" { 404 } else { 403 }, "text/plain", "no"));
    assert_eq!(hints(&forbidden), "");
}

const PASSWORD: &str = "p4ss-w0rd";
const BASIC: &str = "dXNlcjpwNHNzLXcwcmQ=";

/// Runs one case against a remote agent through a proxy on this machine.
fn run_through(proxy: &str, base_url: &str) -> (Sandbox, Finished) {
    let proxy = format!("http://user:{PASSWORD}@{proxy}");
    let sandbox = Sandbox::new().with_file("cases.json", r#"[{"id": "c1", "input": {"user": "go"}}]"#);
    let sandbox = sandbox.with_variable("HTTP_PROXY", &proxy).with_variable("HTTPS_PROXY", &proxy);
    let fixed =
        ["run", "--cases", "cases.json", "--side", "new", "--run-id", "r", "--retries", "0", "--timeout", "10s"];
    let finished = sandbox.run(fixed.iter().chain(&["--base-url", base_url]));
    for (path, bytes) in files_below(&sandbox.path("runs")) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(PASSWORD) && !text.contains(BASIC), "{path}: {text}");
    }
    let printed = finished.to_string();
    assert!(!printed.contains(PASSWORD) && !printed.contains(BASIC), "{printed}");
    (sandbox, finished)
}

/// Starts a proxy that answers each request with a status, and with the request as the body.
fn echoing(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut buffer = [0; 16 * 1024];
            let read = stream.read(&mut buffer).unwrap_or(0);
            let body = format!("{}\npassword: {PASSWORD}", String::from_utf8_lossy(&buffer[..read]));
            let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    address
}

fn nowhere() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[test]
fn a_dead_proxy_is_reported_as_the_proxy() {
    for base_url in ["http://agent.example", "https://agent.example"] {
        let (sandbox, finished) = run_through(&nowhere(), base_url);
        assert_eq!(finished.code, Some(3), "{finished}");
        let message = format!("cannot reach the agent at {base_url}: nothing listens at the proxy's address");
        assert!(finished.stderr.contains(&message), "{finished}");
        assert!(finished.stderr.contains("hint: check the proxy that `HTTP_PROXY`"), "{finished}");
        assert_eq!(sandbox.json("runs/new/r/c1.json")["runner_failure"]["error_name"], "proxy_failed");
    }
}

#[test]
fn credentials_that_a_proxy_echoes_are_redacted() {
    let (sandbox, _) = run_through(&echoing("407 Proxy Authentication Required"), "http://agent.example");
    let failure = sandbox.json("runs/new/r/c1.json")["runner_failure"].clone();
    assert_eq!(failure["error_message"], "the proxy answered with status 407: it requires credentials");
    let snippet = failure["body_snippet"].as_str().unwrap().to_ascii_lowercase();
    assert!(snippet.contains("proxy-authorization: basic [redacted]"), "the proxy got and echoed them: {snippet}");
    assert!(snippet.contains("password: [redacted]"), "{snippet}");
}

#[test]
fn a_proxy_that_refuses_to_connect_is_reported() {
    for (status, message) in [
        ("407 Proxy Authentication Required", "the proxy requires credentials"),
        ("502 Bad Gateway", "the proxy refused to connect to the agent"),
    ] {
        let (sandbox, finished) = run_through(&echoing(status), "https://agent.example");
        assert_eq!(finished.code, Some(3), "{finished}");
        let failure = sandbox.json("runs/new/r/c1.json")["runner_failure"].clone();
        assert_eq!(failure["error_message"], message, "{failure:#}");
    }
}

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
