//! Proxies between the runner and its agent: failures name the proxy, and its credentials are in no file.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use counterproof_tests::{Finished, Sandbox, files_below};

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
