//! The fields of one JSON line, and which event each of them belongs to.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::LineError;
use super::event::EndDetails;

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

/// Decodes an optional field.
pub(super) fn optional<T: DeserializeOwned>(name: &'static str, value: Option<Value>) -> Result<Option<T>, LineError> {
    let decoded = value.map(serde_json::from_value).transpose();
    decoded.map_err(|error| LineError::InvalidField { field: name, reason: error.to_string() })
}

/// Decodes a field that every event has.
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

    /// Fails if a field of the start is missing.
    pub(super) fn require_start_fields(&self) -> Result<(), LineError> {
        let missing = self.start_fields().into_iter().find(|(_, is_present)| !is_present);
        missing.map_or(Ok(()), |(field, _)| Err(LineError::MissingField { event: "start of the command", field }))
    }

    /// Fails if the exit code is missing; the other fields of the exit are optional.
    pub(super) fn require_exit_code(&self) -> Result<i32, LineError> {
        self.exit_code.ok_or(LineError::MissingField { event: "exit of the command", field: "exit_code" })
    }

    /// Fails if a field of the start is present.
    pub(super) fn forbid_start_fields(&self) -> Result<(), LineError> {
        forbid(&self.start_fields())
    }

    /// Fails if a field of the exit is present.
    pub(super) fn forbid_exit_fields(&self) -> Result<(), LineError> {
        forbid(&self.exit_fields())
    }
}

fn forbid(fields: &[(&'static str, bool)]) -> Result<(), LineError> {
    let present = fields.iter().find(|(_, is_present)| *is_present);
    present.map_or(Ok(()), |(field, _)| Err(LineError::MisplacedField(field)))
}
