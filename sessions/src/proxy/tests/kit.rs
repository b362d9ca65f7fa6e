//! A proxy in a thread, a store in memory, and a client of HTTP that changes nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use counterproof_tests::{Gate, ModelServer};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::oneshot;

use super::super::recorder::{RecordError, Records, Secret};
use super::super::{ListeningProxy, ProxyCounts, ProxyOptions, SubstitutedKey};
use crate::event::{EventBody, LlmCall, SessionEvent};

type OnRecord = dyn Fn(&[SessionEvent]) -> Result<(), RecordError> + Send + Sync;

#[derive(Default)]
pub(super) struct MemoryRecords {
    pub(super) events: Mutex<Vec<SessionEvent>>,
    pub(super) secrets: Mutex<Vec<String>>,
    pub(super) warnings: Mutex<Vec<String>>,
    pub(super) on_record: Option<Box<OnRecord>>,
    /// Requests that may leave; `None` is any number.
    pub(super) allowed: Option<AtomicU64>,
}

impl Records for MemoryRecords {
    fn record(&self, events: Vec<SessionEvent>) -> Result<(), RecordError> {
        if let Some(on_record) = &self.on_record {
            on_record(&events)?;
        }
        self.events.lock().unwrap().extend(events);
        Ok(())
    }

    fn may_send(&self) -> bool {
        let take = |left: u64| left.checked_sub(1);
        self.allowed.as_ref().is_none_or(|left| left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok())
    }

    fn saw_secret(&self, secret: &Secret) {
        self.secrets.lock().unwrap().push(secret.expose().to_owned());
    }

    fn warn(&self, message: &str) {
        self.warnings.lock().unwrap().push(message.to_owned());
    }
}

pub(super) struct RunningProxy {
    pub(super) openai: String,
    pub(super) anthropic: String,
    pub(super) records: Arc<MemoryRecords>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<ProxyCounts>,
}

impl RunningProxy {
    pub(super) fn start(server: &ModelServer) -> Self {
        Self::with(&server.origin(), false, None)
    }

    /// Runs a function before each record.
    pub(super) fn recording(
        server: &ModelServer,
        is_required: bool,
        on_record: impl Fn(&[SessionEvent]) -> Result<(), RecordError> + Send + Sync + 'static,
    ) -> Self {
        Self::with(&server.origin(), is_required, Some(Box::new(on_record)))
    }

    pub(super) fn with(origin: &str, requires_records: bool, on_record: Option<Box<OnRecord>>) -> Self {
        let records = MemoryRecords { on_record, ..MemoryRecords::default() };
        Self::of(origin, requires_records, records, None)
    }

    pub(super) fn of(
        origin: &str,
        requires_records: bool,
        records: MemoryRecords,
        key: Option<SubstitutedKey>,
    ) -> Self {
        let records = Arc::new(records);
        let options = ProxyOptions {
            session_id: "s".to_owned(),
            records: records.clone(),
            requires_records,
            openai: format!("{origin}/v1").parse().unwrap(),
            anthropic: origin.parse().unwrap(),
            key,
            now: Timestamp::now,
        };
        let (stop, stopped) = oneshot::channel();
        let (urls, received) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async move {
                let proxy = ListeningProxy::bind(options).await.unwrap();
                urls.send((proxy.openai_base_url(), proxy.anthropic_base_url())).unwrap();
                proxy.serve(async { _ = stopped.await }).await
            })
        });
        let (openai, anthropic) = received.recv().unwrap();
        Self { openai, anthropic, records, stop, thread }
    }

    /// Stops the proxy, which ends the open records.
    pub(super) fn finish(self) -> (Arc<MemoryRecords>, ProxyCounts) {
        self.stop.send(()).unwrap();
        let counts = self.thread.join().unwrap();
        (self.records, counts)
    }
}

impl MemoryRecords {
    pub(super) fn calls(&self) -> Vec<(SessionEvent, LlmCall)> {
        let events = self.events.lock().unwrap();
        let calls = events.iter().filter_map(|event| match &event.body {
            EventBody::LlmCall(call) => Some((event.clone(), call.clone())),
            _ => None,
        });
        calls.collect()
    }

    pub(super) fn error_kinds(&self) -> Vec<Option<String>> {
        self.calls().into_iter().map(|(event, _)| event.error.map(|error| error.kind)).collect()
    }
}

/// An answer as a client reads it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClientAnswer {
    pub(super) status: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// False if the connection ended within the body.
    pub(super) is_whole: bool,
}

impl ClientAnswer {
    pub(super) fn code(&self) -> u16 {
        self.status.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The headers of the answer, without those of the connection.
    pub(super) fn end_to_end(&self) -> Vec<(String, String)> {
        let of_connection = ["connection", "transfer-encoding"];
        self.headers.iter().filter(|(name, _)| !of_connection.contains(&name.as_str())).cloned().collect()
    }
}

pub(super) struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    /// Connects to the host of a URL.
    pub(super) fn connect(url: &str) -> Self {
        let host = url.strip_prefix("http://").unwrap().split('/').next().unwrap();
        Self { reader: BufReader::new(TcpStream::connect(host).unwrap()) }
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    pub(super) fn post(&mut self, path: &str, headers: &str, body: &[u8]) {
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}Content-Length: {length}\r\n\r\n");
        self.send(&[head.as_bytes(), body].concat());
    }

    /// Reads from the body until a text has come.
    pub(super) fn read_until(&mut self, text: &str) -> String {
        let mut read = Vec::new();
        while memchr::memmem::find(&read, text.as_bytes()).is_none() {
            let piece = self.reader.fill_buf().unwrap().to_vec();
            assert!(!piece.is_empty(), "the connection ended before {text}: {}", String::from_utf8_lossy(&read));
            self.reader.consume(piece.len());
            read.extend(piece);
        }
        String::from_utf8_lossy(&read).into_owned()
    }

    /// Reads what has come by now.
    pub(super) fn available(&mut self) -> String {
        let mut read = self.reader.buffer().to_vec();
        self.reader.consume(read.len());
        self.reader.get_mut().set_nonblocking(true).unwrap();
        let blocked = self.reader.get_mut().read_to_end(&mut read).unwrap_err();
        self.reader.get_mut().set_nonblocking(false).unwrap();
        assert_eq!(blocked.kind(), std::io::ErrorKind::WouldBlock);
        String::from_utf8_lossy(&read).into_owned()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(super) fn answer(&mut self, is_head: bool) -> ClientAnswer {
        let (status, mut headers) = (self.line(), Vec::new());
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let mut answer = ClientAnswer { status, headers, body: Vec::new(), is_whole: true };
        if is_head || matches!(answer.code(), 100 | 204 | 304) {
            return answer;
        }
        if answer.header("transfer-encoding").is_some() {
            loop {
                let line = self.line();
                let Ok(size) = usize::from_str_radix(&line, 16) else {
                    answer.is_whole = false;
                    break;
                };
                answer.is_whole = self.take(size, &mut answer.body);
                self.line();
                if size == 0 || !answer.is_whole {
                    break;
                }
            }
        } else if let Some(length) = answer.header("content-length") {
            let length = length.parse().unwrap();
            answer.is_whole = self.take(length, &mut answer.body);
        } else {
            self.reader.read_to_end(&mut answer.body).unwrap();
        }
        answer
    }

    fn take(&mut self, size: usize, body: &mut Vec<u8>) -> bool {
        let read = self.reader.by_ref().take(size as u64).read_to_end(body);
        read.is_ok_and(|read| read == size)
    }
}

/// Sends one request on a connection of its own.
pub(super) fn post(base_url: &str, path: &str, body: &Value) -> ClientAnswer {
    let mut client = Client::connect(base_url);
    let headers = "Authorization: Bearer sk-test-1\r\nX-Api-Key: sk-test-2\r\nContent-Type: application/json\r\n";
    client.post(path, headers, body.to_string().as_bytes());
    client.answer(false)
}

/// Returns a function that opens the first gate, and then waits for the second.
pub(super) fn waits(gates: &[Gate; 2]) -> impl Fn(&[SessionEvent]) -> Result<(), RecordError> + use<> {
    let [started, gate] = gates.clone();
    move |_| {
        started.open();
        gate.wait();
        Ok(())
    }
}
