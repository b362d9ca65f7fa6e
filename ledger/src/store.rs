//! The store of events: one interface for all databases, and the rows that follow from a batch.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::WriteError;
use serde::{Deserialize, Serialize};

use crate::line::EventLine;
use crate::location::PostgresUrl;
use crate::tables::{HINTS, MergedRows, POLICY_VERSIONS, PREVIEWS, RUN_SOURCES, RUNS, TOOL_CALLS};

pub use crate::tables::{Cell, Row};

/// A database of events.
///
/// A store has one connection, and its calls are not concurrent. Several processes can have a store of the same database each.
pub trait EventStore: Send {
    /// Returns true if the ledger can be read and not be written, because its files are protected.
    fn is_read_only(&self) -> bool;

    /// Adds events in one transaction, and makes them durable. Events that the store has are skipped.
    fn append(&mut self, events: &[EventLine<'_>]) -> Result<AppendResult, StoreError>;

    /// Records that the process of a source has ended without `run_end`.
    fn mark_lost(&mut self, source: &SourceId) -> Result<(), StoreError>;

    fn select(&mut self, query: &Query) -> Result<Vec<Row<'static>>, StoreError>;

    /// Runs statements that change rows in one transaction. Returns the number of rows that changed.
    fn change(&mut self, statements: &[Query]) -> Result<u64, StoreError>;

    /// Returns true if the ledger has a table, which other crates may add.
    fn has_table(&mut self, name: &str) -> Result<bool, StoreError>;

    /// Returns the space of deleted rows to the system.
    fn compact(&mut self) -> Result<(), StoreError>;

    fn diagnose(&mut self) -> Result<Vec<Check>, StoreError>;

    fn close(self: Box<Self>) -> Result<(), StoreError>;
}

/// A process that emitted events of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct SourceId {
    pub run_id: String,
    pub shim_id: String,
}

/// A fact about a database that matters for its safety.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub found: String,
    /// What to do about it. `None` if all is well.
    pub remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AppendResult {
    pub added: u64,
    /// Number of events that the store had already.
    pub repeated: u64,
}

/// A statement with its values. `?1` in its text stands for the first value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    text: String,
    values: Vec<Cell<'static>>,
}

impl Query {
    /// Creates a statement. A literal in its text has no `?`.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), values: Vec::new() }
    }

    /// Adds a value.
    #[must_use]
    pub fn with<'a>(mut self, value: impl Into<Cell<'a>>) -> Self {
        self.values.push(value.into().into_owned());
        self
    }

    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds a value, and returns its placeholder.
    pub fn bind<'a>(&mut self, value: impl Into<Cell<'a>>) -> String {
        self.values.push(value.into().into_owned());
        format!("?{}", self.values.len())
    }

    /// Adds a condition for each value that is given, the first one after `word`. Returns the word before the next condition.
    pub fn restrict(&mut self, mut word: &'static str, conditions: &[(&str, &Option<String>)]) -> &'static str {
        for (condition, value) in conditions {
            if let Some(value) = value {
                // Bound, and never part of the text: a value comes from the command line or from an event.
                let place = self.bind(value.as_str());
                self.push(&format!("{word} {condition} {place}"));
                word = " AND";
            }
        }
        word
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn values(&self) -> &[Cell<'static>] {
        &self.values
    }
}

/// The rows of a batch: one for each key, which costs less than one statement for each event.
#[derive(Debug)]
pub(crate) struct BatchRows<'a> {
    pub(crate) tables: [MergedRows<'a>; 5],
    pub(crate) runs: Vec<&'a str>,
}

/// The events of a source in a batch that say something about its row. The other events do not change it.
struct SourceEvents<'a> {
    first: &'a EventLine<'a>,
    newest: &'a EventLine<'a>,
    last: &'a EventLine<'a>,
    starts_and_ends: Vec<&'a EventLine<'a>>,
    /// Events whose identity differs from the event before. All events of a process state the same one.
    identities: Vec<&'a EventLine<'a>>,
}

impl<'a> BatchRows<'a> {
    pub(crate) fn new(events: &[&'a EventLine<'a>]) -> Self {
        let (mut calls, mut previews, mut hints, mut policies) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for event in events {
            let rows = event.call_rows();
            calls.extend(rows.call);
            previews.extend(rows.preview);
            hints.extend(rows.hint);
            policies.extend(rows.policy);
        }
        // Of each source only the events that can change its row: a batch has up to 1,000 events of one process.
        let sources = source_events(events);
        let mut runs: Vec<&str> = sources.keys().map(|(run_id, _)| *run_id).collect();
        // The sources are sorted by their runs.
        runs.dedup();
        let tables = [
            MergedRows::new(&RUN_SOURCES, sources.into_values().flat_map(SourceEvents::rows).collect()),
            MergedRows::new(&TOOL_CALLS, calls),
            MergedRows::new(&PREVIEWS, previews),
            MergedRows::new(&HINTS, hints),
            MergedRows::new(&POLICY_VERSIONS, policies),
        ];
        Self { tables, runs }
    }
}

fn source_events<'a>(events: &[&'a EventLine<'a>]) -> BTreeMap<(&'a str, &'a str), SourceEvents<'a>> {
    let mut sources = BTreeMap::new();
    for event in events {
        let source = sources.entry((event.run_id(), event.shim_id())).or_insert_with(|| SourceEvents {
            first: event,
            newest: event,
            last: event,
            starts_and_ends: Vec::new(),
            identities: vec![event],
        });
        // All events of a process state the same identity, except for other producers.
        if source.identities.last().is_none_or(|last| !event.has_identity_of(last)) {
            source.identities.push(event);
        }
        if event.order() < source.first.order() {
            source.first = event;
        }
        if event.ts() > source.newest.ts() {
            source.newest = event;
        }
        if event.seq() > source.last.seq() {
            source.last = event;
        }
        if event.is_start_or_end() {
            source.starts_and_ends.push(event);
        }
    }
    sources
}

impl<'a> SourceEvents<'a> {
    fn rows(self) -> impl Iterator<Item = Row<'a>> {
        let events = [self.first, self.newest, self.last].into_iter().chain(self.starts_and_ends);
        events.chain(self.identities).map(EventLine::source_row)
    }
}

/// The status of a run whose process was killed.
pub(crate) const LOST_STATUS: &str = "FAILED";

/// How the guard writes an identity that no one has stated.
const UNKNOWN: &str = "unknown";

/// Computes the row of a run from the rows of its sources. A run without sources has no row.
///
/// The run has ended when all sources have ended, and its status is their worst one. A source whose process was killed counts as failed
/// and leaves the end of the run open. The earliest source which states an identity gives it to the run.
pub(crate) fn run_row<'a>(sources: &'a [Row<'_>]) -> Option<Row<'a>> {
    let mut by_start: Vec<&Row<'_>> = sources.iter().collect();
    // By the first event, and not by the order of arrival: spools of ended processes arrive late.
    by_start.sort_by_key(|source| source.get(&RUN_SOURCES, "first_event"));
    let run_id = by_start.first()?.get(&RUN_SOURCES, "run_id").borrow();
    let known = |name: &'static str| {
        sources.iter().map(move |source| source.get(&RUN_SOURCES, name)).filter(|it| **it != Cell::Null)
    };
    let is_closed = |source: &Row<'_>| has_ended(source) || is_lost(source);
    let closed = sources.iter().all(is_closed);
    let worst = sources.iter().map(status).max_by_key(|status| (severity(status), *status));
    // A run whose process was killed has no known end.
    let ended_at = known("ended_at").max().filter(|_| sources.iter().all(has_ended));
    let of_first = |name: &'static str| {
        let stated = by_start.iter().map(|source| source.get(&RUN_SOURCES, name)).filter(|it| **it != Cell::Null);
        // A shim without variables states `unknown`, which must not hide what another one states.
        let known = stated.clone().find(|it| it.as_text() != Some(UNKNOWN));
        known.or(stated.clone().next()).map(Cell::borrow).into()
    };
    Some(Row::new(
        &RUNS,
        [
            run_id,
            of_first("agent_id"),
            of_first("client"),
            of_first("env"),
            of_first("principal"),
            of_first("workload_json"),
            started_at(sources),
            known("last_event_at").max().map(Cell::borrow).into(),
            ended_at.map(Cell::borrow).into(),
            worst.filter(|_| closed).into(),
            of_first("metadata_json"),
        ],
    ))
}

/// Returns the earliest start. Where no start was recorded, it is the time of the first event.
fn started_at<'a>(sources: &'a [Row<'_>]) -> Cell<'a> {
    let start = |source: &'a Row<'_>| match source.get(&RUN_SOURCES, "started_at") {
        Cell::Null => {
            let first = source.get(&RUN_SOURCES, "first_event").as_text()?;
            first.split(' ').next().map(Cell::from)
        }
        stated => Some(stated.borrow()),
    };
    sources.iter().filter_map(start).min().into()
}

fn has_ended(source: &Row<'_>) -> bool {
    *source.get(&RUN_SOURCES, "ended_at") != Cell::Null
}

fn is_lost(source: &Row<'_>) -> bool {
    source.get(&RUN_SOURCES, "is_lost").as_integer() == Some(1)
}

fn status<'a>(source: &'a Row<'_>) -> &'a str {
    let stated = source.get(&RUN_SOURCES, "status").as_text();
    // Only the last event states the status that counts.
    if has_ended(source) { stated.unwrap_or_default() } else { LOST_STATUS }
}

/// Returns a number that is higher for a worse status.
fn severity(status: &str) -> u8 {
    match status {
        "SUCCEEDED" => 0,
        "CANCELLED" => 2,
        "TERMINATED" => 3,
        "FAILED" => 4,
        // A status of a later version.
        _ => 1,
    }
}

/// A store that cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("there is no ledger at `{location}`")]
    Missing { location: String },
    #[error("`{location}` is not a ledger: {reason}")]
    NotALedger { location: String, reason: String },
    #[error("the ledger `{location}` has schema version {found}; this program supports versions up to {known}")]
    Newer { location: String, found: i64, known: i64 },
    #[error("the ledger `{location}` was removed or replaced")]
    Replaced { location: String },
    #[error(transparent)]
    Create(#[from] WriteError),
    /// The URL of a PostgreSQL database is invalid, or has a parameter that is not supported.
    #[error("cannot use the URL `{location}`: {reason}")]
    Url { location: String, reason: String },
    #[error("cannot connect to `{location}`: the certificates of the system cannot be read: {reason}")]
    Tls { location: String, reason: String },
    #[error("failed to use the ledger `{location}`")]
    Postgres { location: String, source: postgres::Error },
    #[error("failed to use the ledger `{path}`")]
    Sqlite { path: Utf8PathBuf, source: rusqlite::Error },
}

impl StoreError {
    pub(crate) fn postgres(url: &PostgresUrl) -> impl Fn(postgres::Error) -> Self + use<> {
        let location = url.to_string();
        move |source| StoreError::Postgres { location: location.clone(), source }
    }

    pub(crate) fn sqlite(path: &Utf8Path) -> impl Fn(rusqlite::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| StoreError::Sqlite { path: path.clone(), source }
    }
}
