//! A model server on loopback that sends exactly the bytes of a script, in exactly its pieces.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use serde_json::Value;

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRequest {
    pub method: String,
    /// Path and query.
    pub target: String,
    /// In their order, and with their names as they were written.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl ModelRequest {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// Something that a script waits for.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn open(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    pub fn wait(&self) {
        let is_open = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.0.1.wait_while(is_open, |is_open| !*is_open).unwrap_or_else(PoisonError::into_inner));
    }
}

#[derive(Debug, Clone)]
pub enum Step {
    /// A piece of the body, which is a chunk and a write of its own.
    Send(Vec<u8>),
    Wait(Gate),
    /// Closes the connection without the end of the body.
    Cut,
    /// Waits until the client closes the connection, opens the gate, and ends.
    UntilClosed(Gate),
}

/// What the server sends.
#[derive(Debug, Clone)]
pub struct ModelAnswer {
    status: u16,
    headers: Vec<(String, String)>,
    framing: Framing,
    steps: VecDeque<Step>,
    /// Before the head of the answer.
    first: Option<Gate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length,
    Chunked,
    /// The end of the connection is the end of the body.
    Close,
}

impl ModelAnswer {
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("Content-Type".to_owned(), content_type.to_owned())];
        let steps = VecDeque::from([Step::Send(body.into())]);
        Self { status, headers, framing: Framing::Length, steps, first: None }
    }

    pub fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    /// A stream of events, in pieces of `size` bytes.
    pub fn events(text: &str, size: usize) -> Self {
        let answer = Self::new(200, "text/event-stream; charset=utf-8", "");
        answer.chunked(text.as_bytes().chunks(size).map(|piece| Step::Send(piece.to_vec())))
    }

    /// Replaces the body.
    #[must_use]
    pub fn chunked(mut self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.steps = steps.into_iter().collect();
        self.framing = Framing::Chunked;
        self
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Ends the connection with the answer, whose length is not stated.
    #[must_use]
    pub fn closing(mut self) -> Self {
        self.framing = Framing::Close;
        self
    }

    /// Sends nothing before the gate is open.
    #[must_use]
    pub fn after(mut self, gate: &Gate) -> Self {
        self.first = Some(gate.clone());
        self
    }

    /// Ends after a part of the body.
    #[must_use]
    pub fn cut_after(mut self, pieces: usize) -> Self {
        self.steps.truncate(pieces);
        self.steps.push_back(Step::Cut);
        self
    }

    /// The body of a whole answer.
    pub fn body(&self) -> Vec<u8> {
        let pieces =
            self.steps.iter().filter_map(|step| if let Step::Send(piece) = step { Some(&**piece) } else { None });
        pieces.collect::<Vec<_>>().concat()
    }

    /// Returns false if the connection has ended.
    fn send(&self, stream: &mut TcpStream, has_body: bool) -> std::io::Result<bool> {
        if let Some(gate) = &self.first {
            gate.wait();
        }
        let mut head = format!("HTTP/1.1 {} Scripted\r\n", self.status);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &match self.framing {
            Framing::Length => format!("Content-Length: {}\r\n\r\n", self.body().len()),
            Framing::Chunked => "Transfer-Encoding: chunked\r\n\r\n".to_owned(),
            Framing::Close => "Connection: close\r\n\r\n".to_owned(),
        };
        stream.write_all(head.as_bytes())?;
        if !has_body {
            return Ok(self.framing != Framing::Close);
        }
        for step in &self.steps {
            match step {
                Step::Send(piece) if self.framing == Framing::Chunked => {
                    let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
                    stream.write_all(if piece.is_empty() { b"" } else { &chunk })?;
                }
                Step::Send(piece) => stream.write_all(piece)?,
                Step::Wait(gate) => gate.wait(),
                Step::Cut => return Ok(false),
                Step::UntilClosed(gate) => {
                    let _ = stream.read(&mut [0]);
                    gate.open();
                    return Ok(false);
                }
            }
        }
        if self.framing == Framing::Chunked {
            stream.write_all(b"0\r\n\r\n")?;
        }
        Ok(self.framing != Framing::Close)
    }
}

/// A running server, which lives as long as the process of the test.
pub struct ModelServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
}

type Decide = dyn Fn(usize, &ModelRequest) -> ModelAnswer + Send + Sync;

impl ModelServer {
    /// Starts a server that answers each request with the result of `decide`, which gets its number from 0.
    pub fn start(decide: impl Fn(usize, &ModelRequest) -> ModelAnswer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::<Mutex<Vec<ModelRequest>>>::default();
        let (decide, log): (Arc<Decide>, _) = (Arc::new(decide), requests.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (decide, log) = (decide.clone(), log.clone());
                // A connection that breaks is a client that has gone.
                thread::spawn(move || serve(stream, &*decide, &log));
            }
        });
        Self { address, requests }
    }

    /// Returns the origin of the server, without a path.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn serve(stream: TcpStream, decide: &Decide, log: &Mutex<Vec<ModelRequest>>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader)? {
        let number = {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.push(request.clone());
            log.len() - 1
        };
        if !decide(number, &request).send(&mut writer, request.method != "HEAD")? {
            break;
        }
    }
    writer.shutdown(Shutdown::Both)
}

/// Returns none if the client has closed the connection.
fn read_request(reader: &mut impl BufRead) -> std::io::Result<Option<ModelRequest>> {
    let line = read_line(reader)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (Some(method), Some(target)) = (words.next().filter(|it| !it.is_empty()), words.next()) else {
        return Ok(None);
    };
    let mut headers = Vec::new();
    loop {
        let line = read_line(reader)?;
        let Some((name, value)) = line.split_once(": ") else { break };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let mut request = ModelRequest { method, target, headers, body: Vec::new() };
    if request.header("transfer-encoding").is_some() {
        loop {
            let size = usize::from_str_radix(&read_line(reader)?, 16).unwrap_or(0);
            let start = request.body.len();
            request.body.resize(start + size, 0);
            reader.read_exact(&mut request.body[start..])?;
            read_line(reader)?;
            if size == 0 {
                break;
            }
        }
    } else {
        let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        request.body.resize(length, 0);
        reader.read_exact(&mut request.body)?;
    }
    Ok(Some(request))
}

fn read_line(reader: &mut impl BufRead) -> std::io::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
