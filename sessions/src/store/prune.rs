//! Deletes old sessions, and states how much space the sessions take.

use counterproof_ledger::query::Fields;
use counterproof_ledger::store::{Query, StoreError};
use serde::Serialize;

use super::session_store::SessionStore;

/// Sizes in bytes of what the tables of sessions have, without indexes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct StoreUsage {
    pub sessions: u64,
    pub events: u64,
    pub event_bytes: u64,
    pub assets: u64,
    pub asset_bytes: u64,
}

impl SessionStore {
    /// Returns the sessions whose last record is before a time, as
    /// [`sortable_time`](counterproof_ledger::line::sortable_time) writes it, the oldest first. Sessions that run are not
    /// returned.
    pub fn prunable(&mut self, before: &str) -> Result<Vec<String>, StoreError> {
        if !self.has_tables() {
            return Ok(Vec::new());
        }
        let query = Query::new(
            "SELECT session_id FROM sessions WHERE coalesce(last_event_at, started_at) < ?1 AND status <> 'running' \
             ORDER BY started_at",
        );
        let rows = self.ledger().select(&query.with(before))?;
        Ok(rows.into_iter().filter_map(|row| Fields::new(row).text()).collect())
    }

    /// Deletes sessions with their records, and the texts that only they use.
    pub fn prune(&mut self, sessions: &[String]) -> Result<(), StoreError> {
        for session in sessions {
            // One transaction: a recorder adds an asset and its use in one as well, so no asset in use is deleted. The row of
            // the session goes last, so that an interrupted deletion is continued.
            let unused = Query::new(
                "DELETE FROM session_assets WHERE digest IN (SELECT digest FROM session_asset_uses WHERE session_id = ?1) \
                 AND NOT EXISTS (SELECT 1 FROM session_asset_uses AS u WHERE u.digest = session_assets.digest \
                 AND u.session_id <> ?1)",
            );
            let of_session = ["session_asset_uses", "session_history", "session_events", "sessions"];
            let deletions = of_session
                .map(|table| Query::new(format!("DELETE FROM {table} WHERE session_id = ?1")).with(session.as_str()));
            let statements: Vec<Query> = [unused.with(session.as_str())].into_iter().chain(deletions).collect();
            self.ledger().change(&statements)?;
        }
        Ok(())
    }

    /// True if a process records a session, or was killed while it did.
    pub fn has_running(&mut self) -> Result<bool, StoreError> {
        Ok(!self.running()?.is_empty())
    }

    pub fn usage(&mut self) -> Result<StoreUsage, StoreError> {
        if !self.has_tables() {
            return Ok(StoreUsage::default());
        }
        let mut counts = |text: &str| {
            let row = self.ledger().select(&Query::new(text))?.pop();
            Ok::<_, StoreError>(row.map_or((0, 0), |row| {
                let mut fields = Fields::new(row);
                (fields.count(), fields.count())
            }))
        };
        let (sessions, _) = counts("SELECT count(*), 0 FROM sessions")?;
        let (events, event_bytes) =
            counts("SELECT count(*), CAST(coalesce(sum(octet_length(data)), 0) AS BIGINT) FROM session_events")?;
        let (assets, asset_bytes) =
            counts("SELECT count(*), CAST(coalesce(sum(octet_length(text)), 0) AS BIGINT) FROM session_assets")?;
        Ok(StoreUsage { sessions, events, event_bytes, assets, asset_bytes })
    }
}
