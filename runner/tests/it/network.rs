//! Connections that fail, or break before a response.

use std::net::TcpListener;

use counterproof_runner::ResolveRule;

use crate::kit::{Agent, Finished, Reaction, answer, cases, ok, plain_http_for_tls, run_once, run_with};

fn run_at(url: &str) -> Finished {
    run_with(url, &cases(["c1"]), |settings| settings.retry.retries = 1)
}

#[test]
fn a_refused_connection_is_retried() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let run = run_at(&format!("http://{address}"));
    run.failure("network_error", "connection_refused");
    assert_eq!(run.case()["attempts"].as_array().unwrap().len(), 2);
    assert!(!run.summary.reached);
    let text = run.case().to_string();
    assert!(!text.contains("os error"), "the same words on every system: {text}");
}

#[test]
fn a_name_that_does_not_resolve_is_a_dns_failure() {
    let run = run_at("http://no-such-agent.invalid");
    run.failure("network_error", "dns");
    assert!(!run.summary.reached);
}

#[test]
fn a_connection_closed_or_reset_before_a_response_counts_as_reached() {
    let run = run_once(&Agent::sending(Vec::new()));
    run.failure("network_error", "connection_closed");
    assert!(run.summary.reached);
    run_once(&Agent::new([Reaction::Reset(Vec::new())])).failure("network_error", "connection_reset");
    run_once(&Agent::sending(b"HTTP/1.1 200 OK\r\ncontent-le".to_vec())).failure("network_error", "connection_closed");
}

#[test]
fn a_response_that_is_not_http_is_malformed() {
    run_once(&Agent::sending(b"SSH-2.0-OpenSSH_9.6\r\n".to_vec())).failure("network_error", "malformed_response");
    let many = "x-many: 1\r\n".repeat(10_000);
    let head = format!("HTTP/1.1 200 OK\r\n{many}\r\n{{}}");
    run_once(&Agent::sending(head)).failure("network_error", "head_too_large");
}

#[test]
fn plain_http_on_a_tls_port_is_a_tls_failure() {
    let run = run_at(&plain_http_for_tls());
    run.failure("network_error", "tls");
}

#[test]
fn a_resolve_rule_redirects_requests_without_changing_the_recorded_url() {
    for url in ["http://agent.example", "http://agent.example:4321/api/"] {
        let agent = Agent::sending(ok(&answer()));
        let run = run_with(url, &cases(["c1"]), |settings| {
            settings.resolve.push(ResolveRule::new("agent.example", agent.address));
        });
        assert_eq!(run.case()["status"], "ok");
        assert_eq!(run.json("run.json")["base_url"], url.trim_end_matches('/'));
        let head = agent.requests().remove(0).head.to_ascii_lowercase();
        let host = url.trim_start_matches("http://").split('/').next().unwrap();
        assert!(head.contains(&format!("host: {host}\r\n")), "{head}");
    }
}
