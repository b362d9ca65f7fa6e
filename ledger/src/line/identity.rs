//! What identifies an event, and its texts as columns store them. A database limits what an index and a text can contain.

use std::borrow::Cow;

use counterproof_artifact::Sha256Digest;
use jiff::Timestamp;
use jiff::fmt::temporal::Pieces;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    #[error("not UTF-8: invalid byte at column {column}")]
    NotText { column: usize },
    #[error("{message} at column {column}")]
    NotAnEvent { message: String, column: usize },
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
    // SQLite could store the whole name. It is cut for both databases, so that they have the same names.
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
