//! What identifies an event.

use counterproof_artifact::Sha256Digest;

use super::error::LineError;
use super::texts::{is_id, name, parse_time};

/// The fields that identify an event, as its line has them.
pub(super) struct Head {
    pub(super) run_id: String,
    pub(super) shim_id: String,
    pub(super) seq: Option<u64>,
    pub(super) kind: String,
    pub(super) ts: String,
}

/// What identifies an event.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) run_id: String,
    /// Empty if the producer states none.
    pub(super) shim_id: String,
    /// The number within the source.
    pub(super) seq: Option<i64>,
    /// The digest of the line, if there is no number.
    pub(super) digest: Option<String>,
    /// The type of the event.
    pub(super) kind: String,
    /// The time, as a text whose order is that of the times.
    pub(super) ts: String,
}

impl Identity {
    pub(super) fn new(line: &str, head: Head) -> Result<Self, LineError> {
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
        let ts = parse_time(&ts).ok_or(LineError::Time { field: "ts", value: name(ts) })?;
        Ok(Self { run_id, shim_id, seq, digest, kind, ts })
    }

    /// Returns a text by which the events of a source are in order.
    pub(super) fn order(&self) -> String {
        match self.seq {
            Some(seq) => format!("{} {seq:020}", self.ts),
            None => format!("{} {}", self.ts, self.digest.as_deref().unwrap_or_default()),
        }
    }
}
