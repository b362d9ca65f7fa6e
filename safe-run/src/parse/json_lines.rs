//! Parses a file of events: `schemas/safe-run-event.v1.schema.json`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{ErrorAtLine, LineError};
use super::record_file::{EXIT_PREFIX, EndDetails, Origin, ParsedEvent, START_PREFIX};
use crate::record::{EVENT_SCHEMA, ledger_text, quote_bytes};

pub(super) fn parse(bytes: &[u8]) -> Result<Vec<ParsedEvent>, ErrorAtLine> {
    let lines = bytes.strip_suffix(b"\n").unwrap_or(bytes).split(|byte| *byte == b'\n');
    (1..).zip(lines).map(|(line, json)| parse_event(line, json).map_err(|error| (line, error))).collect()
}

fn parse_event(line: usize, json: &[u8]) -> Result<ParsedEvent, LineError> {
    let mut raw: RawFields = serde_json::from_slice(json).map_err(|error| LineError::Json(error.to_string()))?;
    let version: String = required("schema_version", raw.schema_version.take())?;
    let seq: u64 = required("seq", raw.seq.take())?;
    let stream: String = required("stream", raw.stream.take())?;
    let origin = Origin::parse(&stream).filter(|_| version == EVENT_SCHEMA).ok_or(LineError::NotAnEvent)?;
    let text = parse_text(&mut raw, origin)?;
    let mut fields = EventFields::decode(raw)?;
    check_fields(Role::new(seq, origin, &text), &text, &mut fields)?;
    let EventFields { started_at, at, end, .. } = fields;
    Ok(ParsedEvent { line, seq, origin, text, started_at, at: Some(at), end })
}

fn parse_text(raw: &mut RawFields, origin: Origin) -> Result<String, LineError> {
    let text: String = required("text", raw.text.take())?;
    match optional::<String>("encoding", raw.encoding.take())?.as_deref() {
        Some("base64") => Ok(ledger_text(&STANDARD.decode(&text).map_err(|_| LineError::Base64)?)),
        Some(_) => Err(LineError::NotAnEvent),
        // META text is written by safe-run and never encoded in the ledger.
        None if origin == Origin::Meta => Ok(text),
        None => Ok(ledger_text(text.as_bytes())),
    }
}

/// The role of an event in the record. It decides which fields the event must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Start,
    /// The exit, with the code in its text.
    Exit(i32),
    Other,
}

impl Role {
    fn new(seq: u64, origin: Origin, text: &str) -> Self {
        let code = text.strip_prefix(EXIT_PREFIX).filter(|_| origin == Origin::Meta).and_then(|code| code.parse().ok());
        match code {
            // The first event is checked as the start whatever its text is, so that its errors name the missing fields.
            _ if seq == 1 => Role::Start,
            Some(code) => Role::Exit(code),
            None => Role::Other,
        }
    }
}

/// Checks that the event has the fields of its role, that it has no others, and that they agree with its text.
fn check_fields(role: Role, text: &str, fields: &mut EventFields) -> Result<(), LineError> {
    match role {
        Role::Start => {
            fields.require_start_fields()?;
            check_command(fields.args.take().unwrap_or_default(), text)?;
            fields.forbid_exit_fields()
        }
        Role::Exit(code) => {
            fields.forbid_start_fields()?;
            check_exit(code, fields.require_exit_code()?, fields.end.signal)
        }
        Role::Other => {
            fields.forbid_start_fields()?;
            fields.forbid_exit_fields()
        }
    }
}

/// Checks that the arguments and the text are the same command. A text that is not a start event is reported by
/// [`assemble`](super::record_file::assemble).
fn check_command(args: Vec<Argument>, text: &str) -> Result<(), LineError> {
    let words = args.into_iter().map(Argument::into_bytes).collect::<Result<Vec<_>, _>>()?;
    let line = text.strip_prefix(START_PREFIX).and_then(|line| line.strip_suffix('"'));
    match line {
        Some(line) if line != quote_bytes(words.iter().map(Vec::as_slice)) => {
            Err(LineError::Contradiction("args", "text"))
        }
        _ => Ok(()),
    }
}

fn check_exit(code: i32, exit_code: i32, signal: Option<i32>) -> Result<(), LineError> {
    if exit_code != code {
        return Err(LineError::Contradiction("exit_code", "text"));
    }
    match signal {
        Some(signal) if signal < 1 || signal.checked_add(128) != Some(code) => {
            Err(LineError::Contradiction("signal", "exit_code"))
        }
        _ => Ok(()),
    }
}

/// The fields as raw JSON. Each field is decoded separately, so that an error names the field.
#[derive(Deserialize)]
pub(super) struct RawFields {
    pub(super) schema_version: Option<Value>,
    pub(super) seq: Option<Value>,
    pub(super) stream: Option<Value>,
    pub(super) at_us: Option<Value>,
    pub(super) text: Option<Value>,
    pub(super) encoding: Option<Value>,
    line_end: Option<Value>,
    started_at: Option<Value>,
    args: Option<Value>,
    exit_code: Option<Value>,
    signal: Option<Value>,
    aborted_by: Option<Value>,
    left_behind: Option<Value>,
}

/// The fields that belong to the start or to the exit, and the time of the event.
pub(super) struct EventFields {
    pub(super) at: Duration,
    pub(super) started_at: Option<Timestamp>,
    pub(super) args: Option<Vec<Argument>>,
    pub(super) exit_code: Option<i32>,
    pub(super) end: EndDetails,
}

/// One argument of the command.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Argument {
    Text(String),
    Bytes { base64: String },
}

impl Argument {
    pub(super) fn into_bytes(self) -> Result<Vec<u8>, LineError> {
        match self {
            Argument::Text(text) => Ok(text.into_bytes()),
            Argument::Bytes { base64 } => STANDARD.decode(base64).map_err(|_| LineError::Base64),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum LineEndName {
    Crlf,
    None,
}

pub(super) fn optional<T: DeserializeOwned>(name: &'static str, value: Option<Value>) -> Result<Option<T>, LineError> {
    let decoded = value.map(serde_json::from_value).transpose();
    decoded.map_err(|error| LineError::InvalidField { field: name, reason: error.to_string() })
}

pub(super) fn required<T: DeserializeOwned>(name: &'static str, value: Option<Value>) -> Result<T, LineError> {
    optional(name, value)?.ok_or(LineError::MissingField { event: "event", field: name })
}

impl EventFields {
    pub(super) fn decode(raw: RawFields) -> Result<Self, LineError> {
        // The line end is not part of a parsed record, but an invalid one makes the line invalid.
        optional::<LineEndName>("line_end", raw.line_end)?;
        Ok(Self {
            at: Duration::from_micros(required("at_us", raw.at_us)?),
            started_at: optional("started_at", raw.started_at)?,
            args: optional::<Vec<Argument>>("args", raw.args)?.filter(|args| !args.is_empty()),
            exit_code: optional("exit_code", raw.exit_code)?,
            end: EndDetails {
                signal: optional("signal", raw.signal)?,
                aborted_by: optional("aborted_by", raw.aborted_by)?,
                left_behind: optional("left_behind", raw.left_behind)?,
            },
        })
    }

    fn start_fields(&self) -> [(&'static str, bool); 2] {
        [("started_at", self.started_at.is_some()), ("args", self.args.is_some())]
    }

    fn exit_fields(&self) -> [(&'static str, bool); 4] {
        [
            ("exit_code", self.exit_code.is_some()),
            ("signal", self.end.signal.is_some()),
            ("aborted_by", self.end.aborted_by.is_some()),
            ("left_behind", self.end.left_behind.is_some()),
        ]
    }

    pub(super) fn require_start_fields(&self) -> Result<(), LineError> {
        let missing = self.start_fields().into_iter().find(|(_, is_present)| !is_present);
        missing.map_or(Ok(()), |(field, _)| Err(LineError::MissingField { event: "start of the command", field }))
    }

    /// Fails if the exit code is missing; the other fields of the exit are optional.
    pub(super) fn require_exit_code(&self) -> Result<i32, LineError> {
        self.exit_code.ok_or(LineError::MissingField { event: "exit of the command", field: "exit_code" })
    }

    pub(super) fn forbid_start_fields(&self) -> Result<(), LineError> {
        forbid(&self.start_fields())
    }

    pub(super) fn forbid_exit_fields(&self) -> Result<(), LineError> {
        forbid(&self.exit_fields())
    }
}

fn forbid(fields: &[(&'static str, bool)]) -> Result<(), LineError> {
    let present = fields.iter().find(|(_, is_present)| *is_present);
    present.map_or(Ok(()), |(field, _)| Err(LineError::MisplacedField(field)))
}
