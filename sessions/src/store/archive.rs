//! A session as bytes, to be carried to another ledger: each text and each message once, as in the store.

use std::collections::BTreeSet;

use counterproof_ledger::store::StoreError;

use super::read::EventFilter;
use super::session_store::{Batch, HeadRow, SessionStore};
use super::stored::{Encoder, StoredEvents, redactor};
use crate::event::SessionEvent;

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the records of the session are not as this program writes them")]
    Format(#[from] serde_json::Error),
    #[error(transparent)]
    Redact(#[from] counterproof_redaction::RedactError),
    #[error("the ledger has no session `{0}`")]
    Unknown(String),
    #[error("the ledger already has the session `{0}`")]
    Exists(String),
}

impl SessionStore {
    /// Returns the records of a session up to a number, with their numbers.
    pub fn archive(&mut self, session_id: &str, until: u64) -> Result<Vec<u8>, ArchiveError> {
        let head = self.find(session_id)?.and_then(|summary| summary.head());
        let head = head.ok_or_else(|| ArchiveError::Unknown(session_id.to_owned()))?;
        let mut encoder = Encoder::new(redactor(&BTreeSet::new())?);
        let mut stored = StoredEvents::default();
        self.for_each(session_id, &EventFilter::default(), 0, None, |seq, event| -> Result<(), ArchiveError> {
            if let Some(event) = event.filter(|_| seq <= until) {
                // One by one: each model call has its whole history.
                let event: SessionEvent = serde_json::from_value(event)?;
                stored.append(encoder.encode(vec![event])?);
            }
            Ok(())
        })?;
        let row = HeadRow::new(&head, 0, |text| encoder.mask(text));
        Ok(serde_json::to_vec(&Batch { session_id: session_id.to_owned(), head: Some(row), stored })?)
    }

    /// Adds an archived session. Returns its id.
    pub fn add_archive(&mut self, bytes: &[u8]) -> Result<String, ArchiveError> {
        let batch: Batch = serde_json::from_slice(bytes)?;
        if self.find(&batch.session_id)?.is_some() {
            return Err(ArchiveError::Exists(batch.session_id));
        }
        self.append(&[&batch])?;
        Ok(batch.session_id)
    }
}
