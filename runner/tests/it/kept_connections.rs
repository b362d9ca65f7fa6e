//! Servers that close a kept connection while the next request is on its way.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use counterproof_cases::CaseSpec;

use crate::kit::{Agent, answer, case, run_once, run_with};

/// A server that keeps connections open. `react` gets the number of the connection and of the request on it, from 0, and writes a
/// response. It returns false to close the connection.
fn serve(react: impl Fn(usize, usize, &mut TcpStream) -> bool + Send + Sync + 'static) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (react, requests) = (Arc::new(react), Arc::new(AtomicUsize::new(0)));
    let count = requests.clone();
    thread::spawn(move || {
        for (connection, stream) in listener.incoming().flatten().enumerate() {
            let (react, count) = (react.clone(), count.clone());
            thread::spawn(move || {
                let mut stream = stream;
                for request in 0.. {
                    if !read_request(&mut stream) {
                        return;
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                    if !react(connection, request, &mut stream) {
                        return;
                    }
                }
            });
        }
    });
    (url, requests)
}

/// Reads a request to its end. Returns false if the connection ends before.
fn read_request(stream: &mut TcpStream) -> bool {
    let (mut received, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut buffer) {
            Ok(read @ 1..) => received.extend_from_slice(&buffer[..read]),
            _ => return false,
        }
        let text = String::from_utf8_lossy(&received).to_ascii_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return true;
        }
    }
}

fn respond(stream: &mut TcpStream, status: &str) {
    let body = answer().to_string();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
    let _ = stream.write_all((head + &body).as_bytes());
}

fn numbered(count: usize) -> Vec<CaseSpec> {
    let template = case("c1");
    let with_id = |number| CaseSpec { id: format!("c{number}").parse().unwrap(), ..template.clone() };
    (1..=count).map(with_id).collect()
}

#[test]
fn a_server_that_closes_kept_connections_after_its_answer_fails_no_case() {
    for concurrency in [1, 8] {
        let closed = Arc::new(AtomicUsize::new(0));
        let (url, _) = serve(move |_, _, stream| {
            let _ = stream.set_nodelay(true);
            respond(stream, "200 OK");
            // 0 to 2 milliseconds, in steps that do not repeat with the period of the cases.
            let micros = closed.fetch_add(1, Ordering::Relaxed) * 137 % 2001;
            thread::sleep(Duration::from_micros(micros as u64));
            false
        });
        let cases = numbered(500);
        let start = Instant::now();
        let run = run_with(&url, &cases, |settings| {
            settings.retry.retries = 0;
            settings.concurrency = NonZeroUsize::new(concurrency).unwrap().into();
        });
        let counts = run.summary.counts;
        let failed = (1..=500).map(|number| run.json(&format!("c{number}.json"))).find(|case| case["status"] != "ok");
        assert_eq!((counts.answered, counts.attempts), (500, 500), "{counts:?}: {failed:#?}");
        println!("concurrency {concurrency}: 500 cases in {:?}", start.elapsed());
    }
}

#[test]
fn a_request_on_a_fresh_connection_is_sent_once() {
    let agent = Agent::sending(Vec::new());
    run_once(&agent).failure("network_error", "connection_closed");
    assert_eq!(agent.requests().len(), 1);
}

#[test]
fn a_request_that_breaks_on_a_kept_and_on_a_fresh_connection_was_one_attempt() {
    let (url, requests) = serve(|connection, request, stream| {
        if (connection, request) == (0, 0) {
            respond(stream, "200 OK");
        }
        (connection, request) == (0, 0)
    });
    let run = run_with(&url, &numbered(2), |settings| settings.retry.retries = 0);
    let case = run.json("c2.json");
    assert_eq!(case["runner_failure"]["error_name"], "connection_closed", "{case:#}");
    assert_eq!(case["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(requests.load(Ordering::Relaxed), 3, "once for c1, twice for c2");
}

#[test]
fn a_retry_uses_a_fresh_connection() {
    let (url, _) = serve(|_, request, stream| {
        // As from a server that has used up what it granted to a connection.
        respond(stream, if request == 0 { "200 OK" } else { "503 Service Unavailable" });
        true
    });
    let run = run_with(&url, &numbered(2), |settings| settings.retry.retries = 1);
    assert_eq!((run.summary.counts.answered, run.summary.counts.attempts), (2, 3));
}

#[test]
fn a_response_that_breaks_off_on_a_kept_connection_is_not_requested_again() {
    let (url, requests) = serve(|connection, request, stream| {
        if (connection, request) == (0, 0) {
            respond(stream, "200 OK");
            return true;
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{\"half\": 1");
        false
    });
    let run = run_with(&url, &numbered(2), |settings| settings.retry.retries = 0);
    assert_eq!(run.json("c2.json")["runner_failure"]["error_name"], "body_incomplete");
    assert_eq!(requests.load(Ordering::Relaxed), 2);
}
