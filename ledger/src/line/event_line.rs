//! A line that is an event.

use std::borrow::Cow;

use super::identity::{Head, Identity, LineError, is_id};
use super::rows::{CallRows, Fields, IdentityFields, call_rows, source_row};
use crate::tables::Row;

#[derive(Debug)]
pub struct EventLine<'a> {
    line: &'a str,
    identity: Identity<'a>,
    fields: Fields<'a>,
    has_all_rows: bool,
}

impl<'a> EventLine<'a> {
    /// Reads a line without its newline.
    pub fn parse(line: &'a [u8]) -> Result<Self, LineError> {
        let line = std::str::from_utf8(line)
            .map_err(|error| LineError::NotText { column: error.valid_up_to() + 1 })?
            .trim_end_matches('\r');
        match serde_json::from_str::<Fields<'a>>(line) {
            Ok(fields) => Self::with_fields(line, fields),
            // Not all fields are as expected. Those that identify the event may be.
            Err(_) => Self::without_fields(line),
        }
    }

    fn with_fields(line: &'a str, mut fields: Fields<'a>) -> Result<Self, LineError> {
        let shim_id = fields.source.as_mut().and_then(|source| source.shim_id.take());
        let head = Head {
            run_id: std::mem::take(&mut fields.run_id).0,
            shim_id: shim_id.unwrap_or_default().0,
            seq: fields.seq,
            kind: std::mem::take(&mut fields.kind).0,
            ts: std::mem::take(&mut fields.ts).0,
        };
        let identity = Identity::new(line, head)?;
        // A call whose id cannot be a key has no row. The event itself is stored.
        let call = fields.call.take();
        let has_call = call.is_some();
        fields.call = call.filter(|call| is_id(&call.call_id.0));
        let has_all_rows = fields.call.is_some() == has_call;
        Ok(Self { line, identity, fields, has_all_rows })
    }

    fn without_fields(line: &'a str) -> Result<Self, LineError> {
        let fields: IdentityFields = serde_json::from_str(line).map_err(|error| {
            let text = error.to_string();
            // A line is one line. The column says it all.
            let (message, _) = text.split_once(" at line ").unwrap_or((&text, ""));
            LineError::NotAnEvent { message: message.to_owned(), column: error.column() }
        })?;
        // Read without types: whatever shape the other fields have, the event can be identified.
        let shim_id = fields.source["shim_id"].as_str().unwrap_or_default().to_owned();
        let IdentityFields { kind, ts, run_id, seq, .. } = fields;
        let [run_id, shim_id, kind, ts] = [run_id, shim_id, kind, ts].map(Cow::Owned);
        let identity = Identity::new(line, Head { run_id, shim_id, seq: seq.as_u64(), kind, ts })?;
        Ok(Self { line, identity, fields: Fields::default(), has_all_rows: false })
    }

    pub fn line(&self) -> &str {
        self.line
    }

    pub fn run_id(&self) -> &str {
        &self.identity.run_id
    }

    /// Returns the id of the shim; empty if the producer states none.
    pub fn shim_id(&self) -> &str {
        &self.identity.shim_id
    }

    pub fn kind(&self) -> &str {
        &self.identity.kind
    }

    /// Returns false if only the line and its source are stored, because other fields have an unexpected shape.
    pub fn has_all_rows(&self) -> bool {
        self.has_all_rows
    }

    pub(crate) fn ts(&self) -> &str {
        &self.identity.ts
    }

    pub(crate) fn seq(&self) -> Option<i64> {
        self.identity.seq
    }

    /// Returns the digest of the line, for events without a number.
    pub(crate) fn digest(&self) -> Option<&str> {
        self.identity.digest.as_deref()
    }

    /// Returns what decides the order of the events of a source.
    pub(crate) fn order(&self) -> (&str, Option<i64>, Option<&str>) {
        self.identity.order()
    }

    /// Returns true if the event states more about its source than the others do.
    pub(crate) fn is_start_or_end(&self) -> bool {
        matches!(self.kind(), "run_start" | "run_end")
    }

    /// Returns true if another event of the source states the same agent and process.
    pub(crate) fn has_identity_of(&self, other: &EventLine<'_>) -> bool {
        self.fields.identity() == other.fields.identity()
    }

    pub(crate) fn source_row(&self) -> Row<'_> {
        source_row(&self.identity, &self.fields)
    }

    pub(crate) fn call_rows(&self) -> CallRows<'_> {
        call_rows(&self.identity, &self.fields)
    }
}
