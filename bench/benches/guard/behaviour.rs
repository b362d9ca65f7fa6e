//! What a program between client and server does with messages that it may mishandle.

use std::io::Write as _;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::peer::{Peer, Silence, Subject, call};

/// A program that does not answer in this time hangs.
const WITHIN: Duration = Duration::from_secs(10);

type Probe = fn(&Subject) -> String;

const PROBES: [(&str, Probe); 10] = [
    ("output before the first answer", |subject| match subject.connect().other_lines {
        0 => "none".to_owned(),
        lines => format!("{lines} lines that are not messages"),
    }),
    ("notification", |subject| {
        arrives(subject, r#"{"jsonrpc":"2.0","method":"notifications/example","params":{"a":1}}"#)
    }),
    ("unusual spelling of a call", |subject| {
        arrives(
            subject,
            r#"{ "method":"tools/call","jsonrpc":"2.0" ,"id":5,"params":{"arguments":{"b":1.0,"a":"\u0061"},"name":"x"}}"#,
        )
    }),
    ("unknown method", |subject| {
        answer(subject, r#"{"jsonrpc":"2.0","id":1,"method":"example/unknown","params":{"a":1}}"#)
    }),
    ("string id", |subject| {
        answer(subject, r#"{"jsonrpc":"2.0","id":"ü-1","method":"tools/call","params":{"name":"x"}}"#)
    }),
    ("id above 2^53", |subject| {
        answer(subject, r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"x"}}"#)
    }),
    ("batch", |subject| {
        let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}]"#;
        answer(subject, batch)
    }),
    ("line that is no message", |subject| arrives(subject, "not a message")),
    ("call with 4 MiB", large),
    ("crash of the server", crash),
];

/// Prints a table of the behaviour of all subjects.
pub(crate) fn compare(subjects: &[Subject]) {
    for (name, probe) in PROBES {
        println!("{name}");
        for subject in subjects {
            println!("  {:<26}{}", subject.name, probe(subject));
        }
    }
}

/// Sends a message, and reports whether the same bytes arrive at the server.
fn arrives(subject: &Subject, message: &str) -> String {
    let mut peer = subject.connect();
    peer.send(message);
    let lines = match seen(&mut peer) {
        Ok(lines) => lines,
        Err(silence) => return format!("{silence:?} afterwards"),
    };
    let wanted: Option<Value> = serde_json::from_str(message).ok();
    if lines.iter().any(|line| line == message) {
        "arrives unchanged".to_owned()
    } else if lines.iter().any(|line| serde_json::from_str(line).ok() == wanted && wanted.is_some()) {
        "arrives with other bytes".to_owned()
    } else {
        "does not arrive".to_owned()
    }
}

/// The lines that have arrived at the server.
fn seen(peer: &mut Peer) -> Result<Vec<String>, Silence> {
    peer.send(&json!({"jsonrpc": "2.0", "id": "seen", "method": "tools/call", "params": {"name": "seen"}}).to_string());
    loop {
        let line = peer.read_within(WITHIN)?;
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        if message["id"] == "seen" {
            let text = message["result"]["content"][0]["text"].as_str().unwrap_or("[]");
            return Ok(serde_json::from_str(text).unwrap_or_default());
        }
    }
}

/// Sends a request, and reports whether the answer is that of a direct connection.
fn answer(subject: &Subject, message: &str) -> String {
    let direct = Subject::parse("direct=");
    let [expected, found] = [&direct, subject].map(|subject| {
        let mut peer = subject.connect();
        peer.send(message);
        peer.read_within(WITHIN)
    });
    match found {
        Err(silence) => format!("{silence:?}"),
        Ok(found) if Ok(&found) == expected.as_ref() => "answered as directly".to_owned(),
        Ok(found) => format!("answered otherwise: {}", found.trim_end().chars().take(90).collect::<String>()),
    }
}

fn large(subject: &Subject) -> String {
    let mut peer = subject.connect();
    let mut input = peer.take_input();
    thread::spawn(move || {
        let _ = input.write_all((call(1, 4 << 20) + "\n").as_bytes());
        thread::sleep(2 * WITHIN);
    });
    match peer.read_within(WITHIN) {
        Ok(line) if line.len() > 4 << 20 => "passes".to_owned(),
        Ok(line) => format!("answered otherwise: {}", line.trim_end().chars().take(90).collect::<String>()),
        Err(silence) => format!("{silence:?}"),
    }
}

/// The server ends during a call.
fn crash(subject: &Subject) -> String {
    let mut peer = subject.connect();
    peer.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exit"}}"#);
    let first = match peer.read_within(WITHIN) {
        Err(Silence::Hangs) => return "hangs".to_owned(),
        Err(Silence::Ended) => "no answer".to_owned(),
        Ok(line) => format!("answers {}", line.trim_end().chars().take(90).collect::<String>()),
    };
    let end = match peer.read_within(WITHIN) {
        Err(Silence::Ended) => match peer.child.wait() {
            Ok(status) => format!("ends with {status}"),
            Err(error) => error.to_string(),
        },
        Err(Silence::Hangs) => "stays up without a server".to_owned(),
        Ok(line) => format!("then {line}"),
    };
    format!("{first}, {end}")
}
