//! Parses a file of events: `schemas/safe-run-event.v1.schema.json`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::error::{ErrorAtLine, LineError};
use super::event::{EXIT_PREFIX, Origin, ParsedEvent, START_PREFIX};
use super::json_fields::{Argument, EventFields, RawFields, optional, required};
use crate::record::{EVENT_SCHEMA, ledger_text, quote_bytes};

/// Parses every event of the file.
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

/// Decodes the text of an event into the form that the ledger has.
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
/// [`assemble`](super::assemble::assemble).
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

/// Checks that the exit code agrees with the one in the text, and with the signal.
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
