//! Queries: the list of sessions, pages of records, and the overview of a session.

use std::collections::BTreeMap;

use counterproof_ledger::line::sortable_time;
use counterproof_ledger::query::Fields;
use counterproof_ledger::store::{Query, StoreError};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::decode::Decoder;
use super::session_store::SessionStore;
use crate::event::{EventBody, SessionEvent};
use crate::milestone::Milestone;
use crate::session::{Coverage, Fork, Parent, SessionHead};
use crate::summary::{MilestoneRecord, SessionError};

/// A session in the list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionSummary {
    pub session_id: String,
    pub title: Option<String>,
    pub origin: String,
    pub workflow: Option<String>,
    pub status: String,
    pub started_at: String,
    pub ended_at: Option<String>,
    pub llm_calls: u64,
    pub tool_calls: u64,
    /// `None` if no call states its tokens.
    pub total_tokens: Option<u64>,
    /// The sum of what the source states; `None` if it states none.
    pub cost: Option<f64>,
    pub checkpoints: u64,
    pub parent: Option<Parent>,
    pub coverage: Coverage,
    #[serde(skip)]
    pub(crate) tokens: TokenSums,
    #[serde(skip)]
    pub(crate) last_event_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionPage {
    pub sessions: Vec<SessionSummary>,
    /// The cursor of the next page; `None` on the last one.
    pub next: Option<String>,
}

/// Which records of a session are returned: those that meet all conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Empty for all types.
    pub types: Vec<String>,
    /// The earliest time, inclusive.
    pub since: Option<Timestamp>,
    /// The end of the time, exclusive.
    pub until: Option<Timestamp>,
    pub tool: Option<String>,
}

/// Records in the order of their numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventPage {
    pub session_id: String,
    /// In the printed form of [`SessionEvent`](crate::event::SessionEvent).
    pub events: Vec<Value>,
    pub next: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionOverview {
    pub session_id: String,
    pub title: Option<String>,
    pub status: String,
    pub started_at: String,
    pub ended_at: Option<String>,
    /// Until the end, or until the last record of a session that has not ended.
    pub duration_seconds: Option<f64>,
    pub total_llm_calls: u64,
    pub total_tool_calls: u64,
    pub total_tokens: Option<u64>,
    pub tokens: TokenSums,
    pub cost: Option<f64>,
    pub tool_calls_by_tool: BTreeMap<String, u64>,
    pub files_changed: Vec<String>,
    pub commands: u64,
    pub checkpoints_available: u64,
    pub milestones: Vec<MilestoneRecord>,
    pub errors: Vec<SessionError>,
    pub coverage: Coverage,
    pub parent: Option<Parent>,
    /// The sessions that were forked from this one, the oldest first.
    pub forks: Vec<Fork>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TokenSums {
    pub prompt: Option<u64>,
    pub completion: Option<u64>,
    pub cached: Option<u64>,
}

/// A cursor that no page returned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the cursor `{0}` was not printed by this command")]
pub struct CursorError(pub(super) String);

/// Records that are read from the database at a time.
const CHUNK: u64 = 64;

const SUMMARY: &str = "SELECT session_id, title, origin, workflow, status, started_at, ended_at, llm_calls, tool_calls, \
                       total_tokens, cost_nanos, checkpoints, parent_session, parent_checkpoint, coverage, prompt_tokens, \
                       completion_tokens, cached_tokens, last_event_at FROM sessions";

impl SessionSummary {
    /// Returns the facts of the session without its sums. `None` if another program has written them.
    pub fn head(&self) -> Option<SessionHead> {
        fn of_word<T: serde::de::DeserializeOwned>(word: &str) -> Option<T> {
            serde_json::from_value(Value::from(word)).ok()
        }
        Some(SessionHead {
            session_id: self.session_id.clone(),
            title: self.title.clone(),
            origin: of_word(&self.origin)?,
            workflow: self.workflow.clone(),
            status: of_word(&self.status)?,
            started_at: self.started_at.parse().ok()?,
            ended_at: self.ended_at.as_ref().and_then(|time| time.parse().ok()),
            parent: self.parent.clone(),
            coverage: self.coverage,
        })
    }
}

impl SessionStore {
    /// Returns a page of sessions, the latest first.
    pub fn sessions(
        &mut self,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<Result<SessionPage, CursorError>, StoreError> {
        let mut query = Query::new(SUMMARY);
        if let Some(cursor) = cursor {
            let place = cursor.split_once('/').and_then(|(time, id)| Some((time.parse::<Timestamp>().ok()?, id)));
            let Some((time, id)) = place else { return Ok(Err(CursorError(cursor.to_owned()))) };
            let (time, id) = (query.bind(sortable_time(time)), query.bind(id));
            query.push(&format!(" WHERE started_at < {time} OR (started_at = {time} AND session_id < {id})"));
        }
        let place = query.bind(u64::from(limit) + 1);
        query.push(&format!(" ORDER BY started_at DESC, session_id DESC LIMIT {place}"));
        let mut sessions = self.summaries(&query)?;
        let has_more = sessions.len() > limit as usize;
        sessions.truncate(limit as usize);
        let next = sessions.last().filter(|_| has_more).map(|last| format!("{}/{}", last.started_at, last.session_id));
        Ok(Ok(SessionPage { sessions, next }))
    }

    pub fn find(&mut self, session_id: &str) -> Result<Option<SessionSummary>, StoreError> {
        let query = Query::new(format!("{SUMMARY} WHERE session_id = ?1")).with(session_id);
        Ok(self.summaries(&query)?.pop())
    }

    fn summaries(&mut self, query: &Query) -> Result<Vec<SessionSummary>, StoreError> {
        if !self.has_tables() {
            return Ok(Vec::new());
        }
        let rows = self.ledger().select(query)?;
        let mut summaries: Vec<_> = rows.into_iter().map(|row| summary(Fields::new(row))).collect();
        for summary in summaries.iter_mut().filter(|summary| summary.status == "running") {
            // The recorder states what it has seen at the end.
            summary.coverage = summary.coverage.max(self.seen(&summary.session_id)?);
        }
        Ok(summaries)
    }

    /// Returns a page of records of a session, which has `limit` records while there are more.
    pub fn timeline(
        &mut self,
        session_id: &str,
        filter: &EventFilter,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<Result<EventPage, CursorError>, StoreError> {
        let after = match cursor.map(str::parse::<u64>).transpose() {
            Ok(after) => after.unwrap_or(0),
            Err(_) => return Ok(Err(CursorError(cursor.unwrap_or_default().to_owned()))),
        };
        let mut events = Vec::new();
        let mut last = after;
        let mut has_more = false;
        self.for_each(session_id, filter, after, Some(limit), |seq, event| {
            match event {
                Some(event) => events.push(event),
                None => has_more = true,
            }
            last = if has_more { last } else { seq };
            Ok::<_, StoreError>(())
        })?;
        let next = has_more.then(|| last.to_string());
        Ok(Ok(EventPage { session_id: session_id.to_owned(), events, next }))
    }

    /// Calls a function with each record of a session in the order of the numbers, after a number. Memory does not grow with the
    /// number of records. With a limit, a further record is passed as `None`.
    pub fn for_each<E: From<StoreError>>(
        &mut self,
        session_id: &str,
        filter: &EventFilter,
        mut after: u64,
        limit: Option<u32>,
        mut each: impl FnMut(u64, Option<Value>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.has_tables() {
            return Ok(());
        }
        let mut left = limit.map(u64::from);
        let mut decoder = Decoder::new(self.ledger(), session_id);
        loop {
            // One more than the limit shows whether there are more.
            let wanted = left.map_or(CHUNK, |left| CHUNK.min(left + 1));
            let rows = decoder.store().select(&filter.query(session_id, after, wanted))?;
            let count = rows.len() as u64;
            for row in rows {
                let mut fields = Fields::new(row);
                let (seq, data) = (fields.count(), fields.required());
                if left == Some(0) {
                    return each(seq, None);
                }
                let event = decoder.decode(seq, &data)?;
                each(seq, Some(event))?;
                decoder.trim();
                left = left.map(|left| left - 1);
                after = seq;
            }
            if count < wanted {
                return Ok(());
            }
        }
    }

    /// Returns all records of a session, each history only once in a record.
    pub fn events(&mut self, session_id: &str) -> Result<Vec<SessionEvent>, StoreError> {
        let mut events = Vec::new();
        self.for_each(session_id, &EventFilter::default(), 0, None, |_, event| {
            // A record that another program has written may have another shape.
            let event = event.and_then(|event| serde_json::from_value::<SessionEvent>(event).ok());
            events.extend(event.map(|mut event| {
                if let EventBody::LlmCall(call) = &mut event.body {
                    call.request.remove_copies();
                }
                event
            }));
            Ok::<_, StoreError>(())
        })?;
        Ok(events)
    }

    /// Returns the state in which the transitions of a session end.
    pub fn last_state(&mut self, session_id: &str) -> Result<Option<String>, StoreError> {
        let query = Query::new(
            "SELECT seq FROM session_events WHERE session_id = ?1 AND type = 'state_transition' ORDER BY seq DESC LIMIT 1",
        );
        let Some(row) = self.ledger().select(&query.with(session_id))?.pop() else { return Ok(None) };
        let event = self.event(session_id, Fields::new(row).count())?;
        Ok(event.and_then(|event| event["to_state"].as_str().map(str::to_owned)))
    }

    /// Returns one record.
    pub fn event(&mut self, session_id: &str, seq: u64) -> Result<Option<Value>, StoreError> {
        let mut found = None;
        let before = seq.saturating_sub(1);
        self.for_each(session_id, &EventFilter::default(), before, Some(1), |number, event| {
            found = found.take().or(event.filter(|_| number == seq));
            Ok::<_, StoreError>(())
        })?;
        Ok(found)
    }

    pub fn overview(&mut self, session_id: &str) -> Result<Option<SessionOverview>, StoreError> {
        let Some(summary) = self.find(session_id)? else { return Ok(None) };
        let by_tool = Query::new(
            "SELECT name, count(*) FROM session_events WHERE session_id = ?1 AND type = 'tool_call' AND name IS NOT NULL \
             GROUP BY name",
        );
        let mut tool_calls_by_tool = BTreeMap::new();
        for row in self.ledger().select(&by_tool.with(session_id))? {
            let mut fields = Fields::new(row);
            tool_calls_by_tool.insert(fields.required(), fields.count());
        }
        let files = Query::new(
            "SELECT DISTINCT name FROM session_events WHERE session_id = ?1 AND type = 'file_operation' \
             AND name IS NOT NULL ORDER BY name",
        );
        let files = self.ledger().select(&files.with(session_id))?;
        let commands = Query::new("SELECT count(*) FROM session_events WHERE session_id = ?1 AND type = 'command'");
        let commands = self.ledger().select(&commands.with(session_id))?.pop();
        Ok(Some(SessionOverview {
            milestones: self.milestones(session_id)?,
            errors: self.errors(session_id)?,
            forks: self.forks(session_id)?,
            session_id: summary.session_id,
            title: summary.title,
            status: summary.status,
            duration_seconds: duration(
                &summary.started_at,
                summary.ended_at.as_ref().or(summary.last_event_at.as_ref()),
            ),
            started_at: summary.started_at,
            ended_at: summary.ended_at,
            total_llm_calls: summary.llm_calls,
            total_tool_calls: summary.tool_calls,
            total_tokens: summary.total_tokens,
            tokens: summary.tokens,
            cost: summary.cost,
            tool_calls_by_tool,
            files_changed: files.into_iter().filter_map(|row| Fields::new(row).text()).collect(),
            commands: commands.map_or(0, |row| Fields::new(row).count()),
            checkpoints_available: summary.checkpoints,
            coverage: summary.coverage,
            parent: summary.parent,
        }))
    }

    /// Returns the sessions that were forked from a session, the oldest first.
    pub fn forks(&mut self, session_id: &str) -> Result<Vec<Fork>, StoreError> {
        if !self.has_tables() {
            return Ok(Vec::new());
        }
        let query = Query::new(
            "SELECT session_id, parent_checkpoint, status FROM sessions WHERE parent_session = ?1 \
             ORDER BY started_at, session_id",
        );
        let rows = self.ledger().select(&query.with(session_id))?.into_iter().map(Fields::new);
        let fork = |mut fields: Fields| Fork {
            session_id: fields.required(),
            checkpoint_id: fields.text(),
            status: fields.required(),
        };
        Ok(rows.map(fork).collect())
    }

    fn milestones(&mut self, session_id: &str) -> Result<Vec<MilestoneRecord>, StoreError> {
        let query = Query::new(
            "SELECT seq, ts, milestone FROM session_events WHERE session_id = ?1 AND milestone IS NOT NULL ORDER BY seq",
        );
        let mut milestones = Vec::new();
        for row in self.ledger().select(&query.with(session_id))? {
            let mut fields = Fields::new(row);
            let (seq, at) = (fields.count(), parsed(&fields.required()));
            let of_record: Vec<Milestone> = serde_json::from_str(&fields.required()).unwrap_or_default();
            milestones.extend(of_record.into_iter().map(|it| MilestoneRecord::new(it, at, Some(seq))));
        }
        Ok(milestones)
    }

    fn errors(&mut self, session_id: &str) -> Result<Vec<SessionError>, StoreError> {
        let query = Query::new(
            "SELECT seq, ts, error FROM session_events WHERE session_id = ?1 AND error IS NOT NULL ORDER BY seq",
        );
        let record = |row| {
            let mut fields = Fields::new(row);
            let (seq, timestamp) = (Some(fields.count()), parsed(&fields.required()));
            SessionError { seq, timestamp, message: fields.required() }
        };
        Ok(self.ledger().select(&query.with(session_id))?.into_iter().map(record).collect())
    }
}

impl EventFilter {
    fn query(&self, session_id: &str, after: u64, limit: u64) -> Query {
        let mut query = Query::new("SELECT seq, data FROM session_events WHERE session_id = ?1 AND seq > ?2")
            .with(session_id)
            .with(after);
        if !self.types.is_empty() {
            let places: Vec<_> = self.types.iter().map(|kind| query.bind(kind.as_str())).collect();
            query.push(&format!(" AND type IN ({})", places.join(", ")));
        }
        let since = self.since.map(sortable_time);
        let until = self.until.map(sortable_time);
        let tool = self.tool.as_ref().map(|_| "tool_call".to_owned());
        let conditions = [("ts >=", &since), ("ts <", &until), ("name =", &self.tool), ("type =", &tool)];
        query.restrict(" AND", &conditions);
        let limit = query.bind(limit);
        query.push(&format!(" ORDER BY seq LIMIT {limit}"));
        query
    }
}

fn summary(mut fields: Fields) -> SessionSummary {
    SessionSummary {
        session_id: fields.required(),
        title: fields.text(),
        origin: fields.required(),
        workflow: fields.text(),
        status: fields.required(),
        started_at: time(fields.required()),
        ended_at: fields.text().map(time),
        llm_calls: fields.count(),
        tool_calls: fields.count(),
        total_tokens: unsigned(fields.integer()),
        #[expect(clippy::cast_precision_loss, reason = "an amount of money, not a count")]
        cost: fields.integer().map(|nanos| nanos as f64 / 1e9),
        checkpoints: fields.count(),
        parent: parent(&mut fields),
        coverage: serde_json::from_str(&fields.required()).unwrap_or_default(),
        tokens: TokenSums {
            prompt: unsigned(fields.integer()),
            completion: unsigned(fields.integer()),
            cached: unsigned(fields.integer()),
        },
        last_event_at: fields.text(),
    }
}

fn parent(fields: &mut Fields) -> Option<Parent> {
    let (session_id, checkpoint_id) = (fields.text(), fields.text());
    Some(Parent { session_id: session_id?, checkpoint_id })
}

fn unsigned(number: Option<i64>) -> Option<u64> {
    number.and_then(|number| u64::try_from(number).ok())
}

/// Reads a stored time. One that another program has written may be invalid.
fn parsed(stored: &str) -> Timestamp {
    stored.parse().unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Writes a stored time without the zeros that make it sortable.
fn time(stored: String) -> String {
    stored.parse::<Timestamp>().map_or(stored, |time| time.to_string())
}

fn duration(start: &str, end: Option<&String>) -> Option<f64> {
    let (start, end): (Timestamp, Timestamp) = (start.parse().ok()?, end?.parse().ok()?);
    Some(end.duration_since(start).as_secs_f64().max(0.0))
}
