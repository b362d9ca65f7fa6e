//! What identifies an event.

use std::borrow::Cow;

use counterproof_artifact::Sha256Digest;

use super::error::LineError;
use super::texts::{is_id, is_time, name, parse_time};

/// The fields that identify an event, as its line has them.
pub(super) struct Head<'a> {
    pub(super) run_id: Cow<'a, str>,
    pub(super) shim_id: Cow<'a, str>,
    pub(super) seq: Option<u64>,
    pub(super) kind: Cow<'a, str>,
    pub(super) ts: Cow<'a, str>,
}

/// What identifies an event.
#[derive(Debug)]
pub(super) struct Identity<'a> {
    pub(super) run_id: Cow<'a, str>,
    /// Empty if the producer states none.
    pub(super) shim_id: Cow<'a, str>,
    /// The number within the source.
    pub(super) seq: Option<i64>,
    /// The digest of the line, if there is no number.
    pub(super) digest: Option<String>,
    /// The type of the event.
    pub(super) kind: Cow<'a, str>,
    /// The time, as a text whose order is that of the times.
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

    /// Returns the order as a text, which has the same order.
    pub(super) fn order_text(&self) -> String {
        match self.seq {
            Some(seq) => format!("{} {seq:020}", self.ts),
            // Before all numbers, as in `order`.
            None => format!("{} !{}", self.ts, self.digest.as_deref().unwrap_or_default()),
        }
    }
}
