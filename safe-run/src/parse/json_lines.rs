//! A file of events: `schemas/safe-run-event.v1.schema.json`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::parsed_record::{At, EXIT, EndDetails, START, Source, Told, Wrong};
use crate::record::EVENT_SCHEMA;
use crate::record::quote_bytes;
use crate::record::text_of;

/// The fields as they stand there: each is read on its own, so that one that cannot be used is told by its name.
#[derive(Deserialize)]
struct Wire {
    schema_version: Option<Value>,
    seq: Option<Value>,
    stream: Option<Value>,
    at_us: Option<Value>,
    text: Option<Value>,
    encoding: Option<Value>,
    line_end: Option<Value>,
    started_at: Option<Value>,
    args: Option<Value>,
    exit_code: Option<Value>,
    signal: Option<Value>,
    aborted_by: Option<Value>,
    left_behind: Option<Value>,
}

/// A word of the command.
#[derive(Deserialize)]
#[serde(untagged)]
enum Word {
    Text(String),
    Bytes { base64: String },
}

impl Word {
    fn into_bytes(self) -> Result<Vec<u8>, Wrong> {
        match self {
            Word::Text(text) => Ok(text.into_bytes()),
            Word::Bytes { base64 } => STANDARD.decode(base64).map_err(|_| Wrong::Base64),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum LineEndWord {
    Crlf,
    None,
}

/// What an event is, by its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Start,
    Exit(i32),
    Other,
}

/// A field that may be absent.
fn field<T: DeserializeOwned>(name: &'static str, value: Option<Value>) -> Result<Option<T>, Wrong> {
    let read = value.map(serde_json::from_value).transpose();
    read.map_err(|error| Wrong::Field { field: name, why: error.to_string() })
}

/// A field that every event has.
fn required<T: DeserializeOwned>(name: &'static str, value: Option<Value>) -> Result<T, Wrong> {
    field(name, value)?.ok_or(Wrong::Missing { of: "event", field: name })
}

/// Every event of the file.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Told>, At> {
    let lines = bytes.strip_suffix(b"\n").unwrap_or(bytes).split(|byte| *byte == b'\n');
    (1..).zip(lines).map(|(line, text)| event(line, text).map_err(|wrong| (line, wrong))).collect()
}

fn event(line: usize, text: &[u8]) -> Result<Told, Wrong> {
    let wire: Wire = serde_json::from_slice(text).map_err(|error| Wrong::Json(error.to_string()))?;
    let version: String = required("schema_version", wire.schema_version)?;
    let (seq, stream): (u64, String) = (required("seq", wire.seq)?, required("stream", wire.stream)?);
    let source = Source::of(&stream).filter(|_| version == EVENT_SCHEMA).ok_or(Wrong::NoEvent)?;
    let text: String = required("text", wire.text)?;
    let text = match field::<String>("encoding", wire.encoding)?.as_deref() {
        Some("base64") => text_of(&STANDARD.decode(&text).map_err(|_| Wrong::Base64)?),
        Some(_) => return Err(Wrong::NoEvent),
        None if source == Source::Meta => text,
        None => text_of(text.as_bytes()),
    };
    field::<LineEndWord>("line_end", wire.line_end)?;
    let at = Some(Duration::from_micros(required("at_us", wire.at_us)?));
    let started_at = field("started_at", wire.started_at)?;
    let args = field::<Vec<Word>>("args", wire.args)?.filter(|args| !args.is_empty());
    let exit_code = field::<i32>("exit_code", wire.exit_code)?;
    let end = EndDetails {
        signal: field("signal", wire.signal)?,
        aborted_by: field("aborted_by", wire.aborted_by)?,
        left_behind: field("left_behind", wire.left_behind)?,
    };
    let role = role(seq, source, &text);
    let is_at_start = [("started_at", started_at.is_some()), ("args", args.is_some())];
    let is_at_exit = [
        ("exit_code", exit_code.is_some()),
        ("signal", end.signal.is_some()),
        ("aborted_by", end.aborted_by.is_some()),
        ("left_behind", end.left_behind.is_some()),
    ];
    let misplaced = |fields: &[(&'static str, bool)]| {
        fields.iter().find(|(_, is_there)| *is_there).map_or(Ok(()), |(field, _)| Err(Wrong::Misplaced(field)))
    };
    let missing = |of: &'static str, fields: &[(&'static str, bool)]| {
        let absent = fields.iter().find(|(_, is_there)| !is_there);
        absent.map_or(Ok(()), |(field, _)| Err(Wrong::Missing { of, field }))
    };
    if role == Role::Start {
        missing("start of the command", &is_at_start)?;
    } else {
        misplaced(&is_at_start)?;
    }
    match role {
        Role::Start => command_fits(args.unwrap_or_default(), &text)?,
        Role::Exit(code) => {
            missing("exit of the command", &is_at_exit[..1])?;
            exit_fits(code, exit_code, end.signal)?;
        }
        Role::Other => {}
    }
    if !matches!(role, Role::Exit(_)) {
        misplaced(&is_at_exit)?;
    }
    Ok(Told { line, seq, source, text, started_at, at, end })
}

fn role(seq: u64, source: Source, text: &str) -> Role {
    let code = text.strip_prefix(EXIT).filter(|_| source == Source::Meta).and_then(|code| code.parse().ok());
    match code {
        _ if seq == 1 => Role::Start,
        Some(code) => Role::Exit(code),
        None => Role::Other,
    }
}

/// The words and the text are one command. A text that is no start is told by whoever puts the events together.
fn command_fits(args: Vec<Word>, text: &str) -> Result<(), Wrong> {
    let words = args.into_iter().map(Word::into_bytes).collect::<Result<Vec<_>, _>>()?;
    let line = text.strip_prefix(START).and_then(|line| line.strip_suffix('"'));
    match line {
        Some(line) if line != quote_bytes(words.iter().map(Vec::as_slice)) => Err(Wrong::Contradiction("args", "text")),
        _ => Ok(()),
    }
}

/// The code stands in the text and beside it, and a signal makes one code alone.
fn exit_fits(code: i32, exit_code: Option<i32>, signal: Option<i32>) -> Result<(), Wrong> {
    if exit_code != Some(code) {
        return Err(Wrong::Contradiction("exit_code", "text"));
    }
    match signal {
        Some(signal) if signal < 1 || signal.checked_add(128) != Some(code) => {
            Err(Wrong::Contradiction("signal", "exit_code"))
        }
        _ => Ok(()),
    }
}
