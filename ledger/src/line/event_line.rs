//! A line that is an event: what identifies it, and its texts as columns store them.

use std::borrow::Cow;

use counterproof_artifact::Sha256Digest;
use jiff::Timestamp;
use jiff::fmt::temporal::Pieces;

use super::rows::{CallRows, call_rows, source_row};
use super::rows::{Fields, IdentityFields};
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
        // A call whose id cannot be a key has no row.
        // The event itself stays: only its call has no key.
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

    /// Returns the time of the event, as a text that sorts by time.
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

    /// Returns the rows of the call and of the policy that the event is about.
    pub(crate) fn call_rows(&self) -> CallRows<'_> {
        call_rows(&self.identity, &self.fields)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    #[error("not UTF-8: invalid byte at column {column}")]
    NotText {
        /// The column, counted from 1.
        column: usize,
    },
    #[error("{message} at column {column}")]
    NotAnEvent {
        message: String,
        /// The column, counted from 1.
        column: usize,
    },
    #[error("field `{field}`: `{value}` is not an RFC 3339 time")]
    Time { field: &'static str, value: String },
    #[error("field `{field}`: the time `{value}` is out of range; the latest one is {}", jiff::Timestamp::MAX)]
    TimeRange { field: &'static str, value: String },
    #[error("field `{field}`: it must have 1 to {MAX_ID_BYTES} bytes and no NUL character")]
    Id { field: &'static str },
}

pub(super) struct Head<'a> {
    pub(super) run_id: Cow<'a, str>,
    pub(super) shim_id: Cow<'a, str>,
    pub(super) seq: Option<u64>,
    pub(super) kind: Cow<'a, str>,
    pub(super) ts: Cow<'a, str>,
}

#[derive(Debug)]
pub(super) struct Identity<'a> {
    pub(super) run_id: Cow<'a, str>,
    /// Empty if the producer states none.
    pub(super) shim_id: Cow<'a, str>,
    pub(super) seq: Option<i64>,
    /// The digest of the line, if there is no number.
    pub(super) digest: Option<String>,
    pub(super) kind: Cow<'a, str>,
    /// The time, as a text that sorts by time.
    pub(super) ts: String,
}

impl<'a> Identity<'a> {
    pub(super) fn new(line: &str, head: Head<'a>) -> Result<Self, LineError> {
        let Head { run_id, shim_id, seq, kind, ts } = head;
        let ids = [("run_id", &run_id, false), ("source.shim_id", &shim_id, true), ("type", &kind, false)];
        for (field, id, may_be_empty) in ids {
            if !(is_id(id) || may_be_empty && id.is_empty()) {
                return Err(LineError::Id { field });
            }
        }
        // A number identifies an event only within its source. Databases have signed numbers.
        let seq = seq.filter(|_| !shim_id.is_empty()).and_then(|seq| i64::try_from(seq).ok());
        let digest = seq.is_none().then(|| Sha256Digest::from_bytes(line.as_bytes()).to_string());
        let ts = parse_time(&ts).ok_or_else(|| {
            let (field, value) = ("ts", name(&ts).into_owned());
            if is_time(&ts) { LineError::TimeRange { field, value } } else { LineError::Time { field, value } }
        })?;
        Ok(Self { run_id, shim_id, seq, digest, kind, ts })
    }

    /// Returns what decides the order of the events of a source.
    pub(super) fn order(&self) -> (&str, Option<i64>, Option<&str>) {
        (&self.ts, self.seq, self.digest.as_deref())
    }

    pub(super) fn order_text(&self) -> String {
        match self.seq {
            Some(seq) => format!("{} {seq:020}", self.ts),
            // Before all numbers, as in `order`.
            None => format!("{} !{}", self.ts, self.digest.as_deref().unwrap_or_default()),
        }
    }
}

/// Longest id of a run, a shim or a call in bytes.
pub(super) const MAX_ID_BYTES: usize = 256;

/// Longest name or code in bytes. PostgreSQL indexes at most 2,704 bytes, and an index has up to three columns.
const MAX_NAME_BYTES: usize = 512;

pub(crate) fn is_id(text: &str) -> bool {
    (1..=MAX_ID_BYTES).contains(&text.len()) && !text.contains('\0')
}

/// Cuts a name that is too long, and replaces characters that a database cannot store.
pub(super) fn name(text: &str) -> Cow<'_, str> {
    // Also in SQLite, so that both databases have the same names.
    if text.len() > MAX_NAME_BYTES {
        let end = text.floor_char_boundary(MAX_NAME_BYTES);
        return Cow::Owned(format!("{}…", storable(&text[..end])));
    }
    storable(text)
}

/// Replaces NUL characters, which PostgreSQL cannot store in a text.
pub(super) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// Returns a time as the ledger stores it: a text that sorts by time.
pub fn sortable_time(time: Timestamp) -> String {
    // Nine digits always, so that the texts sort by time.
    format!("{time:.9}")
}

pub(super) fn parse_time(text: &str) -> Option<String> {
    text.parse::<Timestamp>().ok().map(sortable_time)
}

/// Returns true if a text has the form of a time, which may be out of range.
pub(super) fn is_time(text: &str) -> bool {
    Pieces::parse(text).is_ok_and(|pieces| pieces.time().is_some() && pieces.offset().is_some())
}
