//! A session as bytes, to be carried to another ledger: each text and each message once, as in the store.

use std::collections::BTreeSet;

use counterproof_ledger::store::StoreError;

use super::read::EventFilter;
use super::session_store::{Batch, HeadRow, SessionStore};
use super::stored::{Asset, Encoder, HistoryNode, StoredEvents, redactor};
use crate::event::SessionEvent;

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the records of the session are not as this program writes them")]
    Format(#[from] serde_json::Error),
    #[error("the records of the session were changed: they belong to another session, or a text has another digest")]
    Changed,
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
        let mut encoder = Encoder::new(redactor(head.origin, &BTreeSet::new())?);
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

    /// Adds an archived session.
    pub fn add_archive(&mut self, archive: &Archive) -> Result<(), ArchiveError> {
        if self.find(archive.session_id())?.is_some() {
            return Err(ArchiveError::Exists(archive.session_id().to_owned()));
        }
        Ok(self.append(&[&archive.0])?)
    }
}

/// A session from a file. Each text in it has its digest, so it can take the place of no other text.
#[derive(Debug)]
pub struct Archive(Batch);

impl Archive {
    pub fn parse(bytes: &[u8]) -> Result<Self, ArchiveError> {
        let batch: Batch = serde_json::from_slice(bytes)?;
        let is_of_session = batch.head.as_ref().is_some_and(|head| head.session_id == batch.session_id);
        let StoredEvents { assets, nodes, .. } = &batch.stored;
        let are_texts_right = assets.iter().all(Asset::is_right) && nodes.iter().all(HistoryNode::is_right);
        if is_of_session && are_texts_right { Ok(Self(batch)) } else { Err(ArchiveError::Changed) }
    }

    pub fn session_id(&self) -> &str {
        &self.0.session_id
    }

    pub fn has_checkpoint(&self, id: &str) -> bool {
        let mut events = self.0.stored.events.iter();
        events.any(|event| event.kind == "checkpoint" && event.name.as_deref() == Some(id))
    }
}
