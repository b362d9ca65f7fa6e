//! A line that is an event.

use super::error::LineError;
use super::fields::{Fields, IdentityFields};
use super::identity::{Head, Identity};
use super::rows::EventRows;

/// A line that is an event, with what the ledger reads from it.
#[derive(Debug)]
pub struct EventLine<'a> {
    line: &'a str,
    identity: Identity,
    rows: EventRows,
    has_all_rows: bool,
}

impl<'a> EventLine<'a> {
    /// Reads a line without its newline.
    pub fn parse(line: &'a [u8]) -> Result<Self, LineError> {
        let line = std::str::from_utf8(line)
            .map_err(|error| LineError::NotText { column: error.valid_up_to() + 1 })?
            .trim_end_matches('\r');
        match serde_json::from_str::<Fields>(line) {
            Ok(fields) => Self::with_rows(line, fields),
            // Not all fields are as expected. Those that identify the event may be.
            Err(_) => Self::without_rows(line),
        }
    }

    fn with_rows(line: &'a str, mut fields: Fields) -> Result<Self, LineError> {
        let head = Head {
            run_id: std::mem::take(&mut fields.run_id),
            shim_id: fields.source.as_mut().and_then(|source| source.shim_id.take()).unwrap_or_default(),
            seq: fields.seq,
            kind: std::mem::take(&mut fields.kind),
            ts: std::mem::take(&mut fields.ts),
        };
        let identity = Identity::new(line, head)?;
        let (rows, has_all_rows) = EventRows::new(&identity, fields);
        Ok(Self { line, identity, rows, has_all_rows })
    }

    fn without_rows(line: &'a str) -> Result<Self, LineError> {
        let fields: IdentityFields = serde_json::from_str(line).map_err(|error| {
            let text = error.to_string();
            let (message, _) = text.split_once(" at line ").unwrap_or((&text, ""));
            LineError::NotAnEvent { message: message.to_owned(), column: error.column() }
        })?;
        let shim_id = fields.source["shim_id"].as_str().unwrap_or_default().to_owned();
        let IdentityFields { kind, ts, run_id, seq, .. } = fields;
        let identity = Identity::new(line, Head { run_id, shim_id, seq: seq.as_u64(), kind, ts })?;
        let (rows, _) = EventRows::new(&identity, Fields::default());
        Ok(Self { line, identity, rows, has_all_rows: false })
    }

    /// Returns the line.
    pub fn line(&self) -> &str {
        self.line
    }

    /// Returns the id of the run.
    pub fn run_id(&self) -> &str {
        &self.identity.run_id
    }

    /// Returns the id of the shim; empty if the producer states none.
    pub fn shim_id(&self) -> &str {
        &self.identity.shim_id
    }

    /// Returns the type of the event.
    pub fn kind(&self) -> &str {
        &self.identity.kind
    }

    /// Returns false if only the line and its source are stored, because other fields have an unexpected shape.
    pub fn has_all_rows(&self) -> bool {
        self.has_all_rows
    }

    /// Returns the time of the event, as a text whose order is that of the times.
    pub(crate) fn ts(&self) -> &str {
        &self.identity.ts
    }

    /// Returns the number within the source.
    pub(crate) fn seq(&self) -> Option<i64> {
        self.identity.seq
    }

    /// Returns the digest of the line, for events that no number identifies.
    pub(crate) fn digest(&self) -> Option<&str> {
        self.identity.digest.as_deref()
    }

    /// Returns the rows that follow from the event.
    pub(crate) fn into_rows(self) -> EventRows {
        self.rows
    }
}
