//! An agent that talks to an MCP server over standard input and output.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long a test waits for anything that should come at once. Only a failing test waits that long.
const LIMIT: Duration = Duration::from_mins(1);

/// A client of an MCP server, which may be behind a shim.
#[derive(Debug)]
pub struct McpClient {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    stderr: Receiver<String>,
    next_id: u64,
}

impl McpClient {
    /// Starts the server, or the shim in front of it.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            let mut line = Vec::new();
            while stdout.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        let (sender, stderr_text) = mpsc::channel();
        let mut stderr = child.stderr.take().unwrap();
        thread::spawn(move || {
            let mut text = Vec::new();
            let _ = std::io::Read::read_to_end(&mut stderr, &mut text);
            let _ = sender.send(String::from_utf8_lossy(&text).into_owned());
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, stderr: stderr_text, next_id: 0 }
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().expect("the input is open");
        stdin.write_all(bytes.as_ref()).unwrap();
        stdin.flush().unwrap();
    }

    /// Receives the next line with its newline; `None` at the end of the output.
    pub fn receive_line(&self) -> Option<Vec<u8>> {
        match self.lines.recv_timeout(LIMIT) {
            Ok(line) => Some(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("no line within {LIMIT:?}"),
        }
    }

    /// Receives the next message.
    pub fn receive(&self) -> Value {
        let line = self.receive_line().expect("a message");
        serde_json::from_slice(&line).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&line)))
    }

    /// Sends a request and receives the next message, which answers it.
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send_request(method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Sends a request. Returns its id.
    pub fn send_request(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        self.send(format!("{message}\n"));
        self.next_id
    }

    /// Calls a tool and receives the answer.
    pub fn call(&mut self, tool: &str, args: &Value) -> Value {
        self.request("tools/call", &json!({"name": tool, "arguments": args}))
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Closes the input and waits for the end. Returns the status and the text of standard error.
    pub fn close(mut self) -> (ExitStatus, String) {
        self.stdin = None;
        self.wait()
    }

    /// Closes the input, as a client does that ends.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Waits for the end. Returns the status and the text of standard error.
    pub fn wait(&mut self) -> (ExitStatus, String) {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status, self.stderr.recv_timeout(LIMIT).expect("the end of standard error"));
            }
            assert!(started.elapsed() < LIMIT, "the process is still running");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills the process itself with SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        // A test that failed must leave nothing behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
