//! The kit of the tests of `guard proxy`: a server whose bytes a test decides, and a client that sees every byte.

use std::io::{BufRead, BufReader, Read as _, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::guard_kit::GuardFolder;

/// A bound against hanging.
pub(crate) const WITHIN: Duration = Duration::from_mins(1);

/// A request or a response: the first line, the headers in lower case, the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) start: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Message {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn status(&self) -> u16 {
        self.start.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Reads a head. Returns `None` at the end of the connection.
fn read_head(input: &mut impl BufRead) -> Option<Message> {
    let mut start = String::new();
    if input.read_line(&mut start).ok()? == 0 {
        return None;
    }
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Some(Message { start: start.trim_end().to_owned(), headers, body: Vec::new() })
}

/// Reads a piece of a body in chunks. Returns `None` at its end, and an error if it breaks off.
fn read_chunk(input: &mut impl BufRead) -> Option<Result<Vec<u8>, ()>> {
    let mut line = String::new();
    if input.read_line(&mut line).is_err() || line.is_empty() {
        return Some(Err(()));
    }
    let length = usize::from_str_radix(line.trim_end(), 16).unwrap();
    let mut chunk = vec![0; length + 2];
    if input.read_exact(&mut chunk).is_err() {
        return Some(Err(()));
    }
    chunk.truncate(length);
    (length > 0).then_some(Ok(chunk))
}

fn read_body(input: &mut impl BufRead, message: &mut Message) {
    if message.header("transfer-encoding").is_some() {
        while let Some(Ok(chunk)) = read_chunk(input) {
            message.body.extend(chunk);
        }
    } else if let Some(length) = message.header("content-length") {
        message.body = vec![0; length.parse().unwrap()];
        input.read_exact(&mut message.body).unwrap();
    }
}

type Handler = dyn Fn(&Message, &mut TcpStream) + Send + Sync;

/// A server that hands each request to a function, which writes the bytes of the response.
pub(crate) struct HttpServer {
    pub(crate) address: SocketAddr,
    received: Arc<Mutex<Vec<Message>>>,
}

impl HttpServer {
    pub(crate) fn start(handler: impl Fn(&Message, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let (handler, requests): (Arc<Handler>, _) = (Arc::new(handler), received.clone());
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let (mut connection, handler, requests) = (connection.unwrap(), handler.clone(), requests.clone());
                std::thread::spawn(move || {
                    let mut input = BufReader::new(connection.try_clone().unwrap());
                    while let Some(mut request) = read_head(&mut input) {
                        read_body(&mut input, &mut request);
                        requests.lock().unwrap().push(request.clone());
                        handler(&request, &mut connection);
                    }
                });
            }
        });
        Self { address, received }
    }

    /// A server that answers each request with JSON.
    pub(crate) fn of_json(answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        Self::start(move |request, connection| {
            let message = serde_json::from_slice(&request.body).unwrap_or_default();
            respond(
                connection,
                "200 OK",
                "content-type: application/json\r\n",
                answer(&message).to_string().as_bytes(),
            );
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The requests so far.
    pub(crate) fn received(&self) -> Vec<Message> {
        self.received.lock().unwrap().clone()
    }
}

/// Writes a response with its length. `headers` end with a line end each.
pub(crate) fn respond(connection: &mut TcpStream, status: &str, headers: &str, body: &[u8]) {
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len());
    // The client may have gone.
    let _ = connection.write_all(head.as_bytes()).and_then(|()| connection.write_all(body));
}

/// Starts a stream of events.
pub(crate) fn start_events(connection: &mut TcpStream, headers: &str) {
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{headers}transfer-encoding: chunked\r\n\r\n");
    connection.write_all(head.as_bytes()).unwrap();
}

/// Writes a piece of a body in chunks; an empty one ends it. Returns false if the client has gone.
pub(crate) fn write_chunk(connection: &mut TcpStream, bytes: &[u8]) -> bool {
    let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    connection.write_all(&chunk).is_ok()
}

/// A running proxy.
pub(crate) struct GuardProxy {
    pub(crate) process: Child,
    pub(crate) address: SocketAddr,
}

impl GuardProxy {
    #[track_caller]
    pub(crate) fn start(folder: &GuardFolder, upstream: &str) -> Self {
        Self::spawn(&mut folder.proxy_command(upstream))
    }

    /// Starts a proxy with further arguments.
    #[track_caller]
    pub(crate) fn start_with(folder: &GuardFolder, upstream: &str, arguments: &[&str]) -> Self {
        Self::spawn(folder.proxy_command(upstream).args(arguments).stderr(Stdio::piped()))
    }

    /// Starts a proxy whose standard error is read at its end.
    #[track_caller]
    pub(crate) fn start_with_stderr(folder: &GuardFolder, upstream: &str) -> Self {
        Self::start_with(folder, upstream, &[])
    }

    #[track_caller]
    fn spawn(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).unwrap_or_else(|| panic!("the proxy did not start: {line}"));
        Self { process, address: address.split('/').next().unwrap().trim().parse().unwrap() }
    }

    /// Connects to the proxy.
    pub(crate) fn connect(&self) -> Connection {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(WITHIN)).unwrap();
        Connection { input: BufReader::new(stream.try_clone().unwrap()), stream }
    }

    /// Posts a body of JSON, and reads the whole response.
    #[track_caller]
    pub(crate) fn post(&self, headers: &str, body: &str) -> Message {
        let mut connection = self.connect();
        connection.post(headers, body.as_bytes());
        connection.response()
    }

    /// Calls a tool, and returns the answer.
    #[track_caller]
    pub(crate) fn call(&self, id: u64, tool: &str, args: &Value) -> Value {
        self.post("", &call(id, tool, args)).json()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let process = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(process, signal).unwrap();
    }

    /// Stops the proxy, and returns its exit code.
    #[track_caller]
    pub(crate) fn stop(&mut self) -> Option<i32> {
        self.signal(rustix::process::Signal::TERM);
        self.wait()
    }

    /// Stops the proxy, and returns its exit code and its standard error.
    #[track_caller]
    pub(crate) fn stop_with_stderr(&mut self) -> (Option<i32>, String) {
        let code = self.stop();
        let mut text = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        (code, text)
    }

    /// Waits for the end of the proxy.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let end = Instant::now() + WITHIN;
        while Instant::now() < end {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the proxy does not end");
    }
}

impl Drop for GuardProxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The text of a tool call.
pub(crate) fn call(id: u64, tool: &str, args: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{args}}}}}"#)
}

/// A connection to the proxy.
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    input: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(crate) fn post(&mut self, headers: &str, body: &[u8]) {
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{headers}content-length: {}\r\n\r\n",
            body.len()
        );
        self.send(&[head.as_bytes(), body].concat());
    }

    pub(crate) fn head(&mut self) -> Message {
        read_head(&mut self.input).expect("a response")
    }

    /// Reads the next piece of a body in chunks. Returns `None` at its end, and an error if it breaks off.
    pub(crate) fn chunk(&mut self) -> Option<Result<Vec<u8>, ()>> {
        read_chunk(&mut self.input)
    }

    pub(crate) fn response(&mut self) -> Message {
        let mut message = self.head();
        read_body(&mut self.input, &mut message);
        message
    }

    /// True if the other side has closed the connection.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.input.fill_buf().map_or(true, <[u8]>::is_empty)
    }
}
