//! A scripted agent on loopback, and runs against it.

#![allow(dead_code, reason = "each test binary uses a part of the kit")]

use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Side;
use counterproof_cases::CaseSpec;
use counterproof_runner::{Environment, EventKind, Reporter, RetryOn, RunEvent, Settings, Summary, run};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The reaction of an agent to one request.
#[derive(Clone)]
pub(crate) enum Reaction {
    /// Sends these bytes, then closes.
    Send(Vec<u8>),
    /// Sends these bytes, then neither sends nor closes.
    Stall(Vec<u8>),
    /// Sends these bytes, then resets the connection.
    Reset(Vec<u8>),
    /// Sends the first bytes at once and the second bytes one by one, with this delay between two.
    Drip(Vec<u8>, Vec<u8>, Duration),
    /// Sends the first bytes, then repeats the second until this many bytes are sent or the client disconnects.
    Flood(Vec<u8>, Vec<u8>, u64),
}

/// A request as the agent received it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// An agent that plays its reactions in order, and repeats the last one.
pub(crate) struct Agent {
    pub(crate) address: SocketAddr,
    requests: Receiver<Request>,
}

impl Agent {
    pub(crate) fn new(reactions: impl Into<Vec<Reaction>>) -> Self {
        let reactions = Arc::new(reactions.into());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let (sender, requests) = channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let mut count = 0;
                while let Ok((stream, _)) = listener.accept().await {
                    let reaction = reactions[count.min(reactions.len() - 1)].clone();
                    count += 1;
                    tokio::spawn(serve(stream, reaction, sender.clone()));
                }
            });
        });
        Self { address, requests }
    }

    /// An agent that always sends the same bytes.
    pub(crate) fn sending(response: impl Into<Vec<u8>>) -> Self {
        Self::new([Reaction::Send(response.into())])
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.try_iter().collect()
    }
}

async fn serve(mut stream: TcpStream, reaction: Reaction, requests: std::sync::mpsc::Sender<Request>) {
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    let head_end = loop {
        if let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        match stream.read(&mut buffer).await {
            Ok(read) if read > 0 => received.extend_from_slice(&buffer[..read]),
            _ => return,
        }
    };
    let head = String::from_utf8_lossy(&received[..head_end]).into_owned();
    let length: usize = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok())
        .unwrap_or(0);
    while received.len() < head_end + length {
        match stream.read(&mut buffer).await {
            Ok(read) if read > 0 => received.extend_from_slice(&buffer[..read]),
            _ => return,
        }
    }
    let body = match &received[head_end..] {
        [] => Value::Null,
        body => serde_json::from_slice(body).unwrap_or_else(|_| String::from_utf8_lossy(body).into()),
    };
    let _ = requests.send(Request { head, body });
    match reaction {
        Reaction::Send(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        Reaction::Stall(bytes) => {
            let _ = stream.write_all(&bytes).await;
            tokio::time::sleep(Duration::from_mins(1)).await;
        }
        Reaction::Reset(bytes) => {
            let _ = stream.write_all(&bytes).await;
            // Gives the client time to read the sent bytes: a reset discards unread bytes.
            tokio::time::sleep(Duration::from_millis(100)).await;
            let _ = stream.set_zero_linger();
        }
        Reaction::Drip(head, bytes, pause) => {
            let _ = stream.set_nodelay(true);
            let _ = stream.write_all(&head).await;
            for byte in bytes {
                if stream.write_all(&[byte]).await.is_err() {
                    return;
                }
                tokio::time::sleep(pause).await;
            }
        }
        Reaction::Flood(head, piece, total) => {
            let (mut sent, mut next) = (0, head.as_slice());
            while sent < total && stream.write_all(next).await.is_ok() {
                sent += next.len() as u64;
                next = &piece;
            }
            let _ = stream.shutdown().await;
        }
    }
}

/// Returns a complete response. It announces that the connection closes: a client that tried to reuse the connection
/// would fail occasionally.
pub(crate) fn response(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n", body.len())
            .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

pub(crate) fn ok(body: &Value) -> Vec<u8> {
    response("200 OK", "content-type: application/json\r\n", body.to_string().as_bytes())
}

/// Returns a minimal answer.
pub(crate) fn answer() -> Value {
    json!({"proposed_actions": [], "events": [], "final_output": {"content_type": "text", "content": "done"}})
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    encoded(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default()), bytes, |encoder| {
        encoder.finish().unwrap()
    })
}

pub(crate) fn zlib(bytes: &[u8]) -> Vec<u8> {
    encoded(flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default()), bytes, |encoder| {
        encoder.finish().unwrap()
    })
}

pub(crate) fn deflate(bytes: &[u8]) -> Vec<u8> {
    encoded(flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default()), bytes, |encoder| {
        encoder.finish().unwrap()
    })
}

/// Returns text that compresses to about half of its size, so that half of the encoded bytes decode to about half of it.
pub(crate) fn noise() -> String {
    (0..40_000_u64).fold(String::new(), |text, n| text + &format!("{:x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

fn encoded<E: std::io::Write>(mut encoder: E, bytes: &[u8], finish: impl FnOnce(E) -> Vec<u8>) -> Vec<u8> {
    encoder.write_all(bytes).unwrap();
    finish(encoder)
}

/// Collects the kinds of all events.
#[derive(Default)]
pub(crate) struct Events(pub(crate) Vec<EventKind>);

impl Reporter for Events {
    fn report(&mut self, event: &RunEvent) {
        self.0.push(event.kind.clone());
    }
}

/// A finished run and its folder.
pub(crate) struct Finished {
    pub(crate) summary: Summary,
    pub(crate) events: Vec<EventKind>,
    _folder: TempDir,
}

/// Runs cases with very short waits between attempts, and with the settings changed by `change`.
pub(crate) fn run_with(url: &str, cases: &[CaseSpec], change: impl FnOnce(&mut Settings)) -> Finished {
    run_in(url, cases, Environment::from_system(), change)
}

pub(crate) fn run_in(
    url: &str,
    cases: &[CaseSpec],
    environment: Environment,
    change: impl FnOnce(&mut Settings),
) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    let root = Utf8Path::from_path(folder.path()).unwrap();
    let mut settings = Settings::new(
        "r1".parse().unwrap(),
        Side::New,
        url.parse().unwrap(),
        root.join("cases.json"),
        root.join("runs"),
    );
    settings.retry.base = Duration::from_millis(1);
    settings.retry.retry_after_cap = Duration::from_millis(20);
    settings.timeout = Duration::from_secs(10);
    // In the order of the cases, and with retries of every transient failure, unless a test is about these.
    settings.concurrency = NonZeroUsize::MIN.into();
    settings.retry.on = every_transient_failure();
    settings.supervisor = Some(supervisor());
    change(&mut settings);
    let mut events = Events::default();
    let summary = run(&settings, cases, environment, &mut events).unwrap();
    Finished { summary, events: events.0, _folder: folder }
}

/// Returns the example `supervisor`, which `cargo test` builds. A test binary cannot supervise, because libtest provides its
/// `main`.
pub(crate) fn supervisor() -> std::path::PathBuf {
    // Tests are in `<target>/<profile>/deps/`, examples in `<target>/<profile>/examples/`.
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    profile.join("examples").join(format!("supervisor{}", std::env::consts::EXE_SUFFIX))
}

/// Runs one case against an agent, without retries.
pub(crate) fn run_once(agent: &Agent) -> Finished {
    run_with(&agent.url(), &cases(["c1"]), |settings| settings.retry.retries = 0)
}

pub(crate) fn cases<const N: usize>(ids: [&str; N]) -> Vec<CaseSpec> {
    ids.into_iter().map(case).collect()
}

pub(crate) fn case(id: &str) -> CaseSpec {
    case_of(&json!({"id": id, "input": {"user": "Where is my money?", "context": {"order": 7}}}))
}

/// Reads a case as a cases file has it.
pub(crate) fn case_of(case: &Value) -> CaseSpec {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(folder.path()).unwrap().join("cases.json");
    let cases = json!([case]);
    let bytes = cases.to_string();
    counterproof_store::write::write(&path, bytes.as_bytes(), counterproof_store::write::Durability::Cached).unwrap();
    counterproof_cases::load(&path).unwrap().cases.remove(0)
}

impl Finished {
    pub(crate) fn path(&self, href: &str) -> Utf8PathBuf {
        self.summary.folder.join(href)
    }

    pub(crate) fn json(&self, href: &str) -> Value {
        serde_json::from_slice(&self.bytes(href)).unwrap()
    }

    pub(crate) fn bytes(&self, href: &str) -> Vec<u8> {
        std::fs::read(self.path(href)).unwrap_or_else(|error| panic!("{href}: {error}"))
    }

    pub(crate) fn case(&self) -> Value {
        self.json("c1.json")
    }

    /// Checks the failure of case `c1` and its saved body, and returns the failure.
    #[track_caller]
    pub(crate) fn failure(&self, class: &str, name: &str) -> Value {
        let case = self.case();
        let failure = &case["runner_failure"];
        assert_eq!((&failure["class"], &failure["error_name"]), (&json!(class), &json!(name)), "{case:#}");
        assert_eq!(case["status"], "runner_error");
        let attempts = case["attempts"].as_array().unwrap();
        let last = attempts.last().unwrap();
        assert_eq!(failure["attempt"], attempts.len());
        assert_eq!((&last["error_class"], &last["error_name"]), (&json!(class), &json!(name)));
        self.check_body(failure);
        failure.clone()
    }

    /// Checks that a body and its metadata are saved if there is a snippet, and that neither is saved otherwise.
    #[track_caller]
    fn check_body(&self, failure: &Value) {
        if failure["body_snippet"].is_null() {
            assert_eq!(failure["full_body_saved_to"], Value::Null);
            assert_eq!(failure["full_body_meta_saved_to"], Value::Null);
            return;
        }
        let href = failure["full_body_saved_to"].as_str().unwrap();
        let (digest, size) = digest(&self.path(href));
        let meta = self.json(failure["full_body_meta_saved_to"].as_str().unwrap());
        assert_eq!(meta["schema_version"], "failure-meta.v1");
        assert_eq!(meta["bytes_written"], size);
        assert_eq!(meta["sha256"], digest);
        let manifest = self.json("assets/manifest.json");
        let listed = |item: &Value| item["href"] == href && item["case_id"] == "c1" && item["side"] == "new";
        assert!(manifest["items"].as_array().unwrap().iter().any(listed), "{manifest:#}");
    }

    pub(crate) fn meta(&self) -> Value {
        self.json(self.case()["runner_failure"]["full_body_meta_saved_to"].as_str().unwrap())
    }

    /// Returns every file below the run folder with its relative path, sorted.
    pub(crate) fn files(&self) -> Vec<(String, Vec<u8>)> {
        let mut files = Vec::new();
        collect(self.summary.folder.as_std_path(), "", &mut files);
        files.sort();
        files
    }
}

/// Returns the digest and the size of a file, which may be too large for memory.
fn digest(path: &Utf8Path) -> (String, u64) {
    let mut hasher = counterproof_artifact::canonical::Sha256Hasher::default();
    let mut file = std::fs::File::open(path).unwrap();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = std::io::Read::read(&mut file, &mut buffer).unwrap();
        if read == 0 {
            let (digest, size) = hasher.finish();
            return (digest.to_string(), size);
        }
        hasher.update(&buffer[..read]);
    }
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &format!("{name}/"), files);
        } else {
            files.push((name, std::fs::read(entry.path()).unwrap()));
        }
    }
}

/// Returns the HTTPS URL of a server that answers in plain HTTP.
pub(crate) fn plain_http_for_tls() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            use std::io::Write;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    });
    url
}

/// The failures that may not occur again.
fn every_transient_failure() -> Vec<RetryOn> {
    ["timeout", "network_error", "http_408", "http_429", "http_5xx"].map(|name| name.parse().unwrap()).into()
}
