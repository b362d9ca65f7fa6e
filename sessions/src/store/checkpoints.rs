//! Queries of checkpoints. The list reads neither histories nor the state of tools.

use counterproof_ledger::query::Fields;
use counterproof_ledger::store::{Query, StoreError};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::decode::Decoder;
use super::read::CursorError;
use super::session_store::SessionStore;
use crate::event::SessionEvent;

/// A checkpoint in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckpointSummary {
    pub checkpoint_id: String,
    pub seq: u64,
    pub timestamp: Timestamp,
    pub current_step: String,
    pub resumable: bool,
    /// Why the session cannot continue from here.
    pub reason: Option<String>,
}

/// Checkpoints in the order of their numbers, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckpointPage {
    pub session_id: String,
    pub checkpoints: Vec<CheckpointSummary>,
    /// The cursor of the next page; `None` on the last one.
    pub next: Option<String>,
}

impl SessionStore {
    /// Returns a page of checkpoints of a session, which has `limit` checkpoints while there are more.
    pub fn checkpoints(
        &mut self,
        session_id: &str,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<Result<CheckpointPage, CursorError>, StoreError> {
        let after = match cursor.map(str::parse::<u64>).transpose() {
            Ok(after) => after.unwrap_or(0),
            Err(_) => return Ok(Err(CursorError(cursor.unwrap_or_default().to_owned()))),
        };
        let mut page = CheckpointPage { session_id: session_id.to_owned(), checkpoints: Vec::new(), next: None };
        if !self.has_tables() {
            return Ok(Ok(page));
        }
        let query = Query::new(
            "SELECT seq, data FROM session_events WHERE session_id = ?1 AND type = 'checkpoint' AND seq > ?2 \
             ORDER BY seq LIMIT ?3",
        );
        let query = query.with(session_id).with(after).with(u64::from(limit) + 1);
        let mut rows = self.ledger().select(&query)?;
        let has_more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let mut decoder = Decoder::new(self.ledger(), session_id);
        for row in rows {
            let mut fields = Fields::new(row);
            let (seq, data) = (fields.count(), fields.required());
            page.next = has_more.then(|| seq.to_string());
            // A record that another program has written may have another shape.
            page.checkpoints.extend(summary(&mut decoder, seq, &data)?);
        }
        Ok(Ok(page))
    }

    /// Returns a checkpoint of any session with its whole history, and the id of its session.
    pub fn checkpoint(&mut self, checkpoint_id: &str) -> Result<Option<(String, SessionEvent)>, StoreError> {
        let query = Query::new(
            "SELECT session_id, seq, data FROM session_events WHERE type = 'checkpoint' AND name = ?1 \
             ORDER BY ts, session_id LIMIT 1",
        );
        self.one_checkpoint(&query.with(checkpoint_id))
    }

    /// Returns the checkpoint of a session with the largest number, with its whole history.
    pub fn newest_checkpoint(&mut self, session_id: &str) -> Result<Option<SessionEvent>, StoreError> {
        let query = Query::new(
            "SELECT session_id, seq, data FROM session_events WHERE session_id = ?1 AND type = 'checkpoint' \
             ORDER BY seq DESC LIMIT 1",
        );
        Ok(self.one_checkpoint(&query.with(session_id))?.map(|(_, event)| event))
    }

    fn one_checkpoint(&mut self, query: &Query) -> Result<Option<(String, SessionEvent)>, StoreError> {
        if !self.has_tables() {
            return Ok(None);
        }
        let Some(row) = self.ledger().select(query)?.pop() else { return Ok(None) };
        let mut fields = Fields::new(row);
        let (session_id, seq, data) = (fields.required(), fields.count(), fields.required());
        let event = Decoder::new(self.ledger(), &session_id).decode(seq, &data)?;
        Ok(serde_json::from_value(event).ok().map(|event| (session_id, event)))
    }
}

fn summary(decoder: &mut Decoder<'_>, seq: u64, data: &str) -> Result<Option<CheckpointSummary>, StoreError> {
    let mut event: Value = serde_json::from_str(data).unwrap_or_default();
    // Only these may be texts that are stored elsewhere.
    let parts = ["/state/current_step", "/reason"].map(|path| event.pointer_mut(path).map(Value::take));
    let parts = decoder.decode_value(json!(parts))?;
    decoder.trim();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Ok((|| {
        Some(CheckpointSummary {
            checkpoint_id: text(&event["checkpoint_id"])?,
            seq,
            timestamp: event["timestamp"].as_str()?.parse().ok()?,
            current_step: text(&parts[0])?,
            resumable: event["resumable"].as_bool()?,
            reason: text(&parts[1]),
        })
    })())
}
