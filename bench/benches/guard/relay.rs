//! A relay that only copies lines: the least that any program between client and server costs.

use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::process::{Command, Stdio};
use std::thread;

/// Relays between standard input and output and a command.
pub(crate) fn run(command: &[String]) {
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let (to_child, from_child) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    thread::spawn(move || copy(BufReader::new(stdin()), to_child));
    copy(BufReader::new(from_child), stdout());
    let _ = child.wait();
}

fn copy(mut from: impl BufRead, mut to: impl Write) {
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).unwrap_or(0) > 0 && to.write_all(&line).and_then(|()| to.flush()).is_ok() {
        line.clear();
    }
}
