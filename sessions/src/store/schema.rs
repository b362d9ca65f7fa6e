//! The tables of sessions, in the database of the ledger. docs/sessions.md describes them for people who query the database.
//!
//! One set of statements serves SQLite and PostgreSQL. The tables are created with the first session, so a ledger without
//! sessions does not have them.

use counterproof_ledger::store::Query;

/// Changes with the tables and the meaning of their columns.
pub(crate) const SCHEMA_VERSION: i64 = 1;

/// The records, in the order of their arrival. `event_id` is unique in all sessions: a model call that two files of a forked
/// session repeat belongs to the first one.
const EVENTS: &str = "CREATE TABLE IF NOT EXISTS session_events (\
    session_id TEXT NOT NULL, seq BIGINT NOT NULL, event_id TEXT NOT NULL, type TEXT NOT NULL, ts TEXT NOT NULL, \
    name TEXT, call_key TEXT, guard_call TEXT, error TEXT, milestone TEXT, prompt_tokens BIGINT, completion_tokens BIGINT, \
    total_tokens BIGINT, cached_tokens BIGINT, cost_nanos BIGINT, data TEXT NOT NULL, PRIMARY KEY (session_id, seq))";

/// `head_seq` and the sums are of the records up to it: they change in the transaction that adds a record.
const SESSIONS: &str = "CREATE TABLE IF NOT EXISTS sessions (\
    session_id TEXT NOT NULL PRIMARY KEY, version BIGINT NOT NULL, title TEXT, origin TEXT NOT NULL, workflow TEXT, \
    status TEXT NOT NULL, started_at TEXT NOT NULL, ended_at TEXT, parent_session TEXT, parent_checkpoint TEXT, \
    coverage TEXT NOT NULL, head_seq BIGINT NOT NULL DEFAULT 0, last_event_at TEXT, llm_calls BIGINT NOT NULL DEFAULT 0, \
    tool_calls BIGINT NOT NULL DEFAULT 0, checkpoints BIGINT NOT NULL DEFAULT 0, prompt_tokens BIGINT, \
    completion_tokens BIGINT, total_tokens BIGINT, cached_tokens BIGINT, cost_nanos BIGINT)";

/// JSON texts by the digest of their bytes.
const ASSETS: &str = "CREATE TABLE IF NOT EXISTS session_assets (digest TEXT NOT NULL PRIMARY KEY, text TEXT NOT NULL)";

/// Which sessions use an asset. An asset without a user is deleted.
const USES: &str = "CREATE TABLE IF NOT EXISTS session_asset_uses (\
    digest TEXT NOT NULL, session_id TEXT NOT NULL, PRIMARY KEY (digest, session_id))";

/// Message histories as linked lists: each node adds one message to the list of its parent, so a history of n turns needs n
/// nodes, and a request names the last one.
const HISTORY: &str = "CREATE TABLE IF NOT EXISTS session_history (\
    session_id TEXT NOT NULL, node TEXT NOT NULL, parent TEXT, message TEXT NOT NULL, PRIMARY KEY (session_id, node))";

const VERSION: &str = "CREATE TABLE IF NOT EXISTS session_schema (version BIGINT NOT NULL)";

const INDEXES: [&str; 10] = [
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_session_events_id ON session_events (event_id)",
    "CREATE INDEX IF NOT EXISTS idx_session_events_type ON session_events (session_id, type, seq, name)",
    "CREATE INDEX IF NOT EXISTS idx_session_events_milestone ON session_events (session_id, seq) WHERE milestone IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS idx_session_events_error ON session_events (session_id, seq) WHERE error IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS idx_session_events_name ON session_events (session_id, name, seq)",
    "CREATE INDEX IF NOT EXISTS idx_session_events_checkpoint ON session_events (name) WHERE type = 'checkpoint'",
    "CREATE INDEX IF NOT EXISTS idx_session_events_call ON session_events (session_id, call_key)",
    "CREATE INDEX IF NOT EXISTS idx_session_events_guard ON session_events (session_id, guard_call) \
     WHERE guard_call IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS idx_session_asset_uses ON session_asset_uses (session_id)",
    "CREATE INDEX IF NOT EXISTS idx_sessions_started ON sessions (started_at, session_id)",
];

/// Returns the statements that create the tables where they do not exist.
pub(crate) fn create() -> Vec<Query> {
    let tables = [EVENTS, SESSIONS, ASSETS, USES, HISTORY, VERSION];
    let version = Query::new(
        "INSERT INTO session_schema (version) SELECT CAST(?1 AS BIGINT) WHERE NOT EXISTS (SELECT 1 FROM session_schema)",
    )
    .with(SCHEMA_VERSION);
    tables.into_iter().chain(INDEXES).map(Query::new).chain([version]).collect()
}
