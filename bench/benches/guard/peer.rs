//! A connection to the server, directly or through a program.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// A program between client and server.
pub(crate) struct Subject {
    pub(crate) name: String,
    /// The words of its command. Those of the server follow, unless the command has them already.
    command: Vec<String>,
}

impl Subject {
    /// Reads `NAME=COMMAND`. The words are separated by spaces.
    pub(crate) fn parse(argument: &str) -> Self {
        let (name, command) = argument.split_once('=').expect("NAME=COMMAND");
        Self { name: name.to_owned(), command: command.split_whitespace().map(str::to_owned).collect() }
    }

    /// Starts the server behind the program, and shakes hands.
    pub(crate) fn connect(&self) -> Peer {
        let mut words = self.command.clone();
        // A configuration file may name the server.
        if words.last().is_none_or(|word| word != "--configured") {
            words.push(std::env::current_exe().unwrap().into_os_string().into_string().unwrap());
            words.push("echo".to_owned());
        } else {
            words.pop();
        }
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let input = child.stdin.take().unwrap();
        let mut output = BufReader::with_capacity(1 << 16, child.stdout.take().unwrap());
        let mut peer = Peer { child, input: Some(input), received: None, other_lines: 0 };
        peer.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#);
        let mut line = String::new();
        while !line.contains("\"result\"") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "{} ends before it answers", self.name);
            peer.other_lines += 1;
        }
        peer.other_lines -= 1;
        peer.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        peer.received = Some(Received::Direct(output));
        peer
    }
}

/// A connection.
pub(crate) struct Peer {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    received: Option<Received>,
    /// Number of lines before the first answer.
    pub(crate) other_lines: usize,
}

enum Received {
    Direct(BufReader<std::process::ChildStdout>),
    /// Read by another thread, so that waiting is bounded.
    Lines(Receiver<String>),
}

impl Peer {
    /// Sends a line, given without its newline.
    pub(crate) fn send(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        // One write, as clients do.
        let _ = input.write_all(format!("{line}\n").as_bytes());
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Reads the next message.
    pub(crate) fn read(&mut self, line: &mut Vec<u8>) {
        let Some(Received::Direct(output)) = &mut self.received else { panic!("the lines are read by another thread") };
        loop {
            line.clear();
            assert!(output.read_until(b'\n', line).unwrap() > 0, "the connection ended");
            if is_message(line) {
                return;
            }
        }
    }

    /// Takes the input, for a thread that writes.
    pub(crate) fn take_input(&mut self) -> ChildStdin {
        self.input.take().unwrap()
    }

    pub(crate) fn give_input(&mut self, input: ChildStdin) {
        self.input = Some(input);
    }

    pub(crate) fn take_output(&mut self) -> BufReader<std::process::ChildStdout> {
        match self.received.take() {
            Some(Received::Direct(output)) => output,
            _ => panic!("the output is read by another thread"),
        }
    }

    /// Reads the next message, within a time.
    pub(crate) fn read_within(&mut self, time: Duration) -> Result<String, Silence> {
        if let Some(Received::Direct(_)) = &self.received {
            let Some(Received::Direct(mut output)) = self.received.take() else { unreachable!() };
            let (sender, receiver) = channel();
            thread::spawn(move || {
                let mut line = String::new();
                while output.read_line(&mut line).unwrap_or(0) > 0 {
                    if is_message(line.as_bytes()) && sender.send(line.clone()).is_err() {
                        return;
                    }
                    line.clear();
                }
            });
            self.received = Some(Received::Lines(receiver));
        }
        let Some(Received::Lines(lines)) = &self.received else { unreachable!() };
        lines.recv_timeout(time).map_err(|error| match error {
            RecvTimeoutError::Timeout => Silence::Hangs,
            RecvTimeoutError::Disconnected => Silence::Ended,
        })
    }
}

/// False for lines that a program logs between messages.
fn is_message(line: &[u8]) -> bool {
    matches!(line.first(), Some(b'{' | b'['))
}

/// Why no message came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Silence {
    Hangs,
    Ended,
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.input.take());
        for _ in 0..100 {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A call with `size` bytes of arguments.
pub(crate) fn call(id: usize, size: usize) -> String {
    let text = "x".repeat(size);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"read_file","arguments":{{"path":"{text}","line":{id}}}}}}}"#
    )
}
