//! Agents that are slow, close connections, or send what is not HTTP. Every case ends with its artifact.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use counterproof_tests::minimal_answer;
use fastrand::Rng;
use serde_json::Value;

use crate::attempt::{Attempt, Outcome, ensure};
use crate::prepared::{CASES, prepare};
use crate::process::finish;

/// What the server does with requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// It answers, and closes the kept connection 0 to 3 milliseconds later.
    Closes,
    /// It does anything.
    Hostile,
}

pub(crate) fn run(attempt: &mut Attempt) -> Outcome {
    prepare(&attempt.sandbox)?;
    let manner = if attempt.random.bool() { Manner::Closes } else { Manner::Hostile };
    let server = Server::start(manner, attempt.random.u64(..))?;
    let concurrency = attempt.random.u32(1..9).to_string();
    // A server that answers at once needs no retry, and no short time-out: a slow machine is no fault of it.
    let (retries, timeout) = if manner == Manner::Closes { ("0", "60s") } else { ("1", "1s") };
    let line = ["run", "--cases", "cases.json", "--side", "new", "--run-id", "served", "--base-url", &server.url];
    let limits =
        ["--timeout", timeout, "--retries", retries, "--concurrency", &concurrency, "--max-body-bytes", "100000"];
    let ended = finish(attempt.sandbox.command(line.into_iter().chain(limits)))?;
    ended.ended_properly()?;
    let mut answered = 0;
    for case in Value::as_array(&crate::prepared::cases(CASES)).into_iter().flatten() {
        let id = case["id"].as_str().unwrap_or_default();
        let artifact = attempt.sandbox.path(&format!("runs/new/served/{id}.json"));
        ensure!(artifact.exists(), "{id} has no artifact: {}", ended.stderr);
        let artifact: Value = serde_json::from_slice(&std::fs::read(artifact)?).unwrap_or_default();
        answered += usize::from(artifact["status"] == "ok");
    }
    ensure!(
        manner == Manner::Hostile || answered == CASES,
        "{answered} of {CASES} cases were answered: {}",
        ended.stderr
    );
    finish(attempt.sandbox.command(["validate", "runs/new/served"]))?.has_code(0)
}

/// A server on loopback. Its threads end with this value, or with their connections.
struct Server {
    url: String,
    address: std::net::SocketAddr,
    is_over: Arc<AtomicBool>,
}

impl Server {
    fn start(manner: Manner, seed: u64) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (is_over, connections) = (Arc::new(AtomicBool::new(false)), AtomicU64::new(0));
        let over = is_over.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let number = connections.fetch_add(1, Ordering::Relaxed);
                thread::spawn(move || serve(stream, manner, Rng::with_seed(seed.wrapping_add(number))));
            }
        });
        Ok(Self { url: format!("http://{address}"), address, is_over })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

/// Answers the requests of one connection. Errors end it, as they would for any server.
fn serve(mut stream: TcpStream, manner: Manner, mut random: Rng) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let _ = stream.set_nodelay(true);
    while read_request(&mut stream) {
        let goes_on = match manner {
            Manner::Closes => {
                let sent = stream.write_all(&answer(200));
                thread::sleep(Duration::from_micros(random.u64(..3000)));
                sent.is_ok() && random.u8(..4) == 0
            }
            Manner::Hostile => misbehave(&mut stream, &mut random),
        };
        if !goes_on {
            return;
        }
    }
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

fn answer(status: u16) -> Vec<u8> {
    let body = minimal_answer().to_string();
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// Does one of the things that servers should not do. Returns true if the connection may be used again.
fn misbehave(stream: &mut TcpStream, random: &mut Rng) -> bool {
    let whole = answer(200);
    match random.u8(..12) {
        0 => return false,
        1 => {
            let _ = stream.write_all(&whole[..random.usize(..whole.len())]);
            return false;
        }
        2 => {
            let garbage: Vec<u8> = (0..random.usize(1..5000)).map(|_| random.u8(..)).collect();
            let _ = stream.write_all(&garbage);
            return false;
        }
        3 => {
            // One byte at a time, slower than the time-out.
            for byte in whole {
                if stream.write_all(&[byte]).is_err() {
                    return false;
                }
                thread::sleep(Duration::from_millis(15));
            }
        }
        4 => {
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(random.usize(..200_000)));
            return false;
        }
        5 => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n{");
            return false;
        }
        6 => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551615\r\n\r\n{}");
            return false;
        }
        7 => {
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 5\r\n\r\n\x1f\x8b\x08zz");
        }
        8 => {
            // Larger than the limit of a body.
            let body = "[".repeat(200_000);
            let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        }
        9 => {
            let _ = stream.write_all(&answer([302, 429, 500, 503, 204][random.usize(..5)]));
        }
        10 => {
            let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n");
            let _ = stream.write_all(&whole);
        }
        _ => {
            let _ = stream.write_all(&whole);
        }
    }
    true
}
