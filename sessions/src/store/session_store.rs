//! Writes sessions: each batch of records is one transaction.

use std::collections::BTreeSet;

use counterproof_ledger::line::sortable_time;
use counterproof_ledger::query::Fields;
use counterproof_ledger::store::{EventStore, Query, StoreError};
use counterproof_redaction::Redactor;
use serde::{Deserialize, Serialize};

use super::decode::Decoder;
use super::schema;
use super::stored::{Asset, Encoder, HistoryNode, StoredEvent, StoredEvents, redactor};
use crate::event::SessionEvent;
use crate::session::{Coverage, Origin, SessionHead, SessionStatus, Share};

/// The sessions of a ledger.
pub struct SessionStore {
    store: Box<dyn EventStore>,
    /// False if no session was ever stored, and the tables do not exist.
    has_tables: bool,
}

/// A session as a row. A row with a smaller version does not replace it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeadRow {
    version: u64,
    pub(super) session_id: String,
    title: Option<String>,
    origin: String,
    workflow: Option<String>,
    status: String,
    started_at: String,
    ended_at: Option<String>,
    parent_session: Option<String>,
    parent_checkpoint: Option<String>,
    coverage: String,
}

/// What a recorder adds to a session at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Batch {
    pub(crate) session_id: String,
    pub(crate) head: Option<HeadRow>,
    pub(crate) stored: StoredEvents,
}

impl HeadRow {
    pub(crate) fn new(head: &SessionHead, version: u64, mask: impl Fn(&str) -> String) -> Self {
        let storable = |text: &String| mask(text).replace('\0', "\u{fffd}");
        Self {
            version,
            session_id: head.session_id.clone(),
            title: head.title.as_ref().map(storable),
            origin: head.origin.word().to_owned(),
            workflow: head.workflow.as_ref().map(storable),
            status: head.status.word().to_owned(),
            started_at: sortable_time(head.started_at),
            ended_at: head.ended_at.map(sortable_time),
            parent_session: head.parent.as_ref().map(|parent| parent.session_id.clone()),
            parent_checkpoint: head.parent.as_ref().and_then(|parent| parent.checkpoint_id.clone()),
            coverage: serde_json::to_string(&head.coverage).unwrap_or_default(),
        }
    }
}

impl HeadRow {
    /// Extends the session by what another part of it states.
    fn include(&mut self, other: &Self) {
        self.started_at = std::mem::take(&mut self.started_at).min(other.started_at.clone());
        self.ended_at = self.ended_at.take().max(other.ended_at.clone());
        self.title = self.title.take().or_else(|| other.title.clone());
        let of = |row: &Self| serde_json::from_str::<Coverage>(&row.coverage).unwrap_or_default();
        self.coverage = serde_json::to_string(&of(self).max(of(other))).unwrap_or_default();
    }
}

/// Statements of an import in one transaction.
const AT_ONCE: usize = 2000;

impl SessionStore {
    /// Uses an open ledger.
    pub fn new(mut store: Box<dyn EventStore>) -> Result<Self, StoreError> {
        let has_tables = store.has_table("session_schema")?;
        if has_tables {
            let row = store.select(&Query::new("SELECT version FROM session_schema"))?.pop();
            let found = row.and_then(|row| Fields::new(row).integer()).unwrap_or_default();
            // A newer program may store what this one would overwrite.
            if found > schema::SCHEMA_VERSION {
                let (location, known) = ("session tables".to_owned(), schema::SCHEMA_VERSION);
                return Err(StoreError::Newer { location, found, known });
            }
        }
        Ok(Self { store, has_tables })
    }

    /// The ledger.
    pub fn ledger(&mut self) -> &mut dyn EventStore {
        self.store.as_mut()
    }

    pub fn close(self) -> Result<(), StoreError> {
        self.store.close()
    }

    pub(super) const fn has_tables(&self) -> bool {
        self.has_tables
    }

    pub(super) fn create_tables(&mut self) -> Result<(), StoreError> {
        if !self.has_tables {
            self.store.change(&schema::create())?;
            self.has_tables = true;
        }
        Ok(())
    }

    /// Adds batches in one transaction. Records that the store has are skipped.
    pub(crate) fn append(&mut self, batches: &[&Batch]) -> Result<(), StoreError> {
        self.create_tables()?;
        let mut statements = Vec::new();
        for Batch { session_id, head, stored } in batches {
            statements.extend(head.iter().map(upsert_head));
            statements.extend(contents(session_id, stored));
            statements.extend(stored.events.iter().map(|event| insert_event(session_id, event)));
            if !stored.events.is_empty() {
                statements.push(add_sums(session_id));
            }
        }
        self.store.change(&statements).map(drop)
    }

    /// Adds a session that another program recorded. Records that the store has are replaced if their content differs: the file
    /// may have grown. Returns the number of new records.
    pub fn import(
        &mut self,
        head: &SessionHead,
        events: impl IntoIterator<Item = SessionEvent>,
        redactor: Redactor,
    ) -> Result<u64, AddError> {
        self.create_tables()?;
        let before = self.head_seq(&head.session_id)?;
        let mut encoder = Encoder::new(redactor);
        let mut row = HeadRow::new(head, 0, |text| encoder.mask(text));
        if let Some(known) = self.find(&head.session_id)?.and_then(|known| known.head()) {
            // A session in several files, such as a conversation of several traces.
            row.include(&HeadRow::new(&known, 0, str::to_owned));
        }
        let mut statements = vec![upsert_head(&row)];
        for event in events {
            // One by one: each model call has its whole history.
            let stored = encoder.encode(vec![event])?;
            statements.extend(contents(&head.session_id, &stored));
            for event in &stored.events {
                statements.push(insert_event(&head.session_id, event));
                statements.push(replace_event(&head.session_id, event));
            }
            if statements.len() >= AT_ONCE {
                self.store.change(&statements)?;
                statements.clear();
            }
        }
        // The sums are computed from all records, because some may have been replaced.
        statements.push(clear_sums(&head.session_id));
        statements.push(add_sums(&head.session_id));
        self.store.change(&statements)?;
        Ok(self.head_seq(&head.session_id)?.saturating_sub(before))
    }

    fn head_seq(&mut self, session_id: &str) -> Result<u64, StoreError> {
        // From the records: an import that was interrupted may have added some without their sums.
        let query =
            Query::new("SELECT coalesce(max(seq), 0) FROM session_events WHERE session_id = ?1").with(session_id);
        Ok(self.store.select(&query)?.pop().map_or(0, |row| Fields::new(row).count()))
    }

    /// Returns the calls of a session that are known only from what the model was sent, and that have given arguments.
    pub(crate) fn calls_with_arguments(
        &mut self,
        session_id: &str,
        args_hash: &str,
    ) -> Result<Vec<SessionEvent>, StoreError> {
        let query = Query::new(
            "SELECT seq, data FROM session_events WHERE session_id = ?1 AND call_key = ?2 AND guard_call IS NULL ORDER BY seq",
        );
        let rows = self.store.select(&query.with(session_id).with(args_hash))?;
        let mut decoder = Decoder::new(self.store.as_mut(), session_id);
        let mut events = Vec::new();
        for row in rows {
            let mut fields = Fields::new(row);
            let (seq, data) = (fields.count(), fields.required());
            events.extend(serde_json::from_value::<SessionEvent>(decoder.decode(seq, &data)?).ok());
        }
        Ok(events)
    }

    /// Adds a call that the guard has recorded, or replaces the record with its id.
    pub(crate) fn put_guard_call(
        &mut self,
        session_id: &str,
        call_id: &str,
        event: SessionEvent,
    ) -> Result<(), StoreError> {
        let Ok(stored) = Redactor::of_values([])
            .map(Encoder::new)
            .map_err(drop)
            .and_then(|mut encoder| encoder.encode(vec![event]).map_err(drop))
        else {
            return Ok(());
        };
        let mut statements: Vec<Query> = contents(session_id, &stored).collect();
        for event in &stored.events {
            statements.push(insert_event(session_id, event));
            statements.push(replace_event(session_id, event));
            let mark = "UPDATE session_events SET guard_call = ?3 WHERE session_id = ?1 AND event_id = ?2";
            statements.push(Query::new(mark).with(session_id).with(event.event_id.as_str()).with(call_id));
        }
        statements.push(add_sums(session_id));
        self.store.change(&statements).map(drop)
    }

    /// Adds records to a session that has no recorder. Keys of known formats are masked.
    pub(crate) fn add(&mut self, session_id: &str, events: Vec<SessionEvent>) -> Result<(), StoreError> {
        let Some(stored) = encode(events) else { return Ok(()) };
        self.append(&[&Batch { session_id: session_id.to_owned(), head: None, stored }])
    }

    /// Returns the sessions that have not ended, with the versions of their rows.
    pub(crate) fn running(&mut self) -> Result<Vec<(String, u64)>, StoreError> {
        if !self.has_tables {
            return Ok(Vec::new());
        }
        let query = Query::new("SELECT session_id, version FROM sessions WHERE status = 'running'");
        let rows = self.store.select(&query)?.into_iter().map(Fields::new);
        Ok(rows.map(|mut fields| (fields.required(), fields.count())).collect())
    }

    /// Returns the version of the row of a session; `None` if there is no such session.
    pub(crate) fn version(&mut self, session_id: &str) -> Result<Option<u64>, StoreError> {
        if !self.has_tables {
            return Ok(None);
        }
        let query = Query::new("SELECT version FROM sessions WHERE session_id = ?1").with(session_id);
        Ok(self.store.select(&query)?.pop().map(|row| Fields::new(row).count()))
    }

    /// Returns the sessions that have ended.
    pub(crate) fn ended(&mut self) -> Result<Vec<String>, StoreError> {
        self.ids("SELECT session_id FROM sessions WHERE status <> 'running'")
    }

    /// Returns the sessions that have ended, and of which the guard has recorded calls that are no records of them.
    pub(crate) fn with_new_guard_calls(&mut self) -> Result<Vec<String>, StoreError> {
        if !self.store.has_table("tool_calls")? {
            return Ok(Vec::new());
        }
        self.ids(
            "SELECT s.session_id FROM sessions AS s WHERE s.status <> 'running' AND EXISTS (SELECT 1 FROM tool_calls AS t \
             WHERE t.run_id = s.session_id AND t.status IS NOT NULL AND NOT EXISTS (SELECT 1 FROM session_events AS e \
             WHERE e.session_id = t.run_id AND e.guard_call = t.call_id))",
        )
    }

    fn ids(&mut self, text: &str) -> Result<Vec<String>, StoreError> {
        if !self.has_tables {
            return Ok(Vec::new());
        }
        let rows = self.store.select(&Query::new(text))?;
        Ok(rows.into_iter().filter_map(|row| Fields::new(row).text()).collect())
    }

    /// Returns which kinds of records a session has.
    pub(super) fn seen(&mut self, session_id: &str) -> Result<Coverage, StoreError> {
        let query = Query::new("SELECT DISTINCT type FROM session_events WHERE session_id = ?1").with(session_id);
        let rows = self.store.select(&query)?;
        let kinds: Vec<String> = rows.into_iter().map(|row| Fields::new(row).required()).collect();
        let share = |kind: &str| if kinds.iter().any(|it| it == kind) { Share::Partial } else { Share::None };
        Ok(Coverage {
            llm_calls: share("llm_call"),
            tool_calls: share("tool_call"),
            files: share("file_operation"),
            commands: share("command"),
        })
    }

    /// Marks a session whose recorder was killed, unless its row has changed since it had a version.
    pub(crate) fn set_interrupted(&mut self, session_id: &str, version: u64) -> Result<(), StoreError> {
        let seen = self.find(session_id)?.map(|session| session.coverage).unwrap_or_default();
        let coverage = serde_json::to_string(&seen.interrupted()).unwrap_or_default();
        // Its recorder may have stored the end meanwhile, and another one may go on with it.
        let query = Query::new(
            "UPDATE sessions SET status = ?2, version = version + 1, coverage = ?3 WHERE session_id = ?1 AND status = ?4 \
             AND version = ?5",
        );
        let (status, running) = (SessionStatus::Interrupted.word(), SessionStatus::Running.word());
        let query = query.with(session_id).with(status).with(coverage).with(running).with(version);
        self.store.change(&[query]).map(drop)
    }
}

/// Records that cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("failed to serialise a record")]
    Serialise(#[from] serde_json::Error),
}

/// Returns the stored form of records; `None` if they cannot be serialised, which no record of ours causes.
fn encode(events: Vec<SessionEvent>) -> Option<StoredEvents> {
    let redactor = redactor(Origin::Record, &BTreeSet::new()).ok()?;
    Encoder::new(redactor).encode(events).ok()
}

fn upsert_head(head: &HeadRow) -> Query {
    let text = "INSERT INTO sessions (session_id, version, title, origin, workflow, status, started_at, ended_at, \
                parent_session, parent_checkpoint, coverage) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) \
                ON CONFLICT (session_id) DO UPDATE SET version = excluded.version, title = excluded.title, \
                workflow = excluded.workflow, status = excluded.status, started_at = excluded.started_at, \
                ended_at = excluded.ended_at, \
                coverage = excluded.coverage WHERE excluded.version >= sessions.version";
    Query::new(text)
        .with(head.session_id.as_str())
        .with(head.version)
        .with(head.title.as_deref())
        .with(head.origin.as_str())
        .with(head.workflow.as_deref())
        .with(head.status.as_str())
        .with(head.started_at.as_str())
        .with(head.ended_at.as_deref())
        .with(head.parent_session.as_deref())
        .with(head.parent_checkpoint.as_deref())
        .with(head.coverage.as_str())
}

/// Returns the statements that add assets and histories.
fn contents<'a>(session_id: &'a str, new: &'a StoredEvents) -> impl Iterator<Item = Query> + 'a {
    let asset = |Asset { digest, text }: &Asset| {
        Query::new("INSERT INTO session_assets (digest, text) VALUES (?1, ?2) ON CONFLICT DO NOTHING")
            .with(digest.as_str())
            .with(text.as_str())
    };
    let used = move |Asset { digest, .. }: &Asset| {
        Query::new("INSERT INTO session_asset_uses (digest, session_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING")
            .with(digest.as_str())
            .with(session_id)
    };
    let node = move |HistoryNode { node, parent, message }: &HistoryNode| {
        let text = "INSERT INTO session_history (session_id, node, parent, message) VALUES (?1, ?2, ?3, ?4) \
                    ON CONFLICT DO NOTHING";
        Query::new(text).with(session_id).with(node.as_str()).with(parent.as_deref()).with(message.as_str())
    };
    let assets = new.assets.iter().flat_map(move |it| [asset(it), used(it)]);
    assets.chain(new.nodes.iter().map(node))
}

const COLUMNS: &str = "event_id, type, ts, name, call_key, error, milestone, prompt_tokens, completion_tokens, \
                       total_tokens, cached_tokens, cost_nanos, data";

/// Adds the values of a record after the id of its session, which is the first value.
fn with_values(query: Query, session_id: &str, event: &StoredEvent) -> Query {
    query
        .with(session_id)
        .with(event.event_id.as_str())
        .with(event.kind.as_str())
        .with(event.ts.as_str())
        .with(event.name.as_deref())
        .with(event.call_key.as_deref())
        .with(event.error.as_deref())
        .with(event.milestone.as_deref())
        .with(event.prompt_tokens)
        .with(event.completion_tokens)
        .with(event.total_tokens)
        .with(event.cached_tokens)
        .with(event.cost_nanos)
        .with(event.data.as_str())
}

/// The number of a record follows the last one of its session, in the same statement.
fn insert_event(session_id: &str, event: &StoredEvent) -> Query {
    let integers = (9..=13).map(|number| format!("CAST(?{number} AS BIGINT)")).collect::<Vec<_>>().join(", ");
    let text = format!(
        "INSERT INTO session_events (session_id, seq, {COLUMNS}) SELECT ?1, (SELECT coalesce(max(seq), 0) + 1 \
         FROM session_events WHERE session_id = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, {integers}, ?14 \
         WHERE NOT EXISTS (SELECT 1 FROM session_events WHERE event_id = ?2)"
    );
    with_values(Query::new(text), session_id, event)
}

pub(super) fn replace_event(session_id: &str, event: &StoredEvent) -> Query {
    let text = "UPDATE session_events SET type = ?3, ts = ?4, name = ?5, call_key = ?6, error = ?7, milestone = ?8, \
                prompt_tokens = ?9, completion_tokens = ?10, total_tokens = ?11, cached_tokens = ?12, cost_nanos = ?13, \
                data = ?14 WHERE event_id = ?2 AND session_id = ?1 AND data <> ?14";
    with_values(Query::new(text), session_id, event)
}

/// Adds what the records after the head add to the sums, and moves the head.
fn add_sums(session_id: &str) -> Query {
    let new = "FROM session_events AS e WHERE e.session_id = sessions.session_id AND e.seq > sessions.head_seq";
    let count = |name: &str, kind: &str| format!("{name} = {name} + (SELECT count(*) {new} AND e.type = '{kind}')");
    // A sum is unknown until a value is known.
    let sum = |name: &str| {
        let added = format!("(SELECT CAST(sum(e.{name}) AS BIGINT) {new})");
        format!("{name} = coalesce({name} + {added}, {name}, {added})")
    };
    let sums =
        ["prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "cost_nanos"].map(sum).join(", ");
    Query::new(format!(
        "UPDATE sessions SET {}, {}, {}, {sums}, last_event_at = coalesce((SELECT max(e.ts) {new}), last_event_at), \
         head_seq = coalesce((SELECT max(e.seq) {new}), head_seq) WHERE session_id = ?1",
        count("llm_calls", "llm_call"),
        count("tool_calls", "tool_call"),
        count("checkpoints", "checkpoint"),
    ))
    .with(session_id)
}

pub(super) fn clear_sums(session_id: &str) -> Query {
    Query::new(
        "UPDATE sessions SET head_seq = 0, llm_calls = 0, tool_calls = 0, checkpoints = 0, prompt_tokens = NULL, \
         completion_tokens = NULL, total_tokens = NULL, cached_tokens = NULL, cost_nanos = NULL, last_event_at = NULL \
         WHERE session_id = ?1",
    )
    .with(session_id)
}
