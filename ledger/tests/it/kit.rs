//! Events, recorders and temporary ledgers.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Sha256Digest;
use counterproof_ledger::event::{
    Action, AgentClient, ArgsPreview, CallEnd, CallId, CallRef, CallStart, CallStatus, DecisionRecord, EventBody,
    EventSource, Explanation, Mode, PolicyRef, ResultPreview, RunEnd, RunStart, RunStatus, RunSummary, Severity,
    Transport, WorkingEnvironment,
};
use counterproof_ledger::location::{LedgerLocation, StateFolder};
use counterproof_ledger::recorder::{BacklogLimits, EventOrigin, Recorder, RecorderOptions};
use counterproof_ledger::store::SourceId;
use jiff::Timestamp;
use rusqlite::Connection;

/// A time limit against hanging.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

/// A folder with a ledger.
pub(crate) struct Kit {
    folder: Utf8PathBuf,
    /// Removes the folder at the end.
    _temporary: Option<tempfile::TempDir>,
}

impl Kit {
    pub(crate) fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        Self { folder: temporary.path().to_owned().try_into().unwrap(), _temporary: Some(temporary) }
    }

    /// Uses a folder that exists.
    pub(crate) fn at(folder: &Utf8Path) -> Self {
        Self { folder: folder.to_owned(), _temporary: None }
    }

    pub(crate) fn path(&self, name: &str) -> Utf8PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn ledger(&self) -> Utf8PathBuf {
        self.path("state/ledger.db")
    }

    pub(crate) fn options(&self, run_id: &str, shim_id: &str) -> RecorderOptions {
        RecorderOptions {
            ledger: Some(LedgerLocation::SqliteFile(self.ledger())),
            state: StateFolder::new(self.path("state")),
            events_file: None,
            origin: origin(run_id, shim_id),
            limits: BacklogLimits::default(),
        }
    }

    pub(crate) fn recorder(&self, run_id: &str, shim_id: &str) -> Recorder {
        Recorder::start(self.options(run_id, shim_id)).unwrap()
    }

    /// Runs a query that returns one number.
    pub(crate) fn number(&self, query: &str) -> i64 {
        Connection::open(self.ledger()).unwrap().query_row(query, [], |row| row.get(0)).unwrap()
    }

    /// Runs a query that returns texts, one for each row.
    pub(crate) fn texts(&self, query: &str) -> Vec<String> {
        let connection = Connection::open(self.ledger()).unwrap();
        let mut statement = connection.prepare(query).unwrap();
        let texts = statement.query_map([], |row| row.get::<_, Option<String>>(0)).unwrap();
        texts.map(|text| text.unwrap().unwrap_or_else(|| "NULL".to_owned())).collect()
    }

    /// Returns the names of the files in the spool folder.
    pub(crate) fn spool_files(&self) -> Vec<String> {
        let Ok(entries) = self.path("state/ledger.db.spool").read_dir_utf8() else { return Vec::new() };
        entries.map(|entry| entry.unwrap().file_name().to_owned()).collect()
    }
}

pub(crate) fn source(run_id: &str, shim_id: &str) -> SourceId {
    SourceId { run_id: run_id.to_owned(), shim_id: shim_id.to_owned() }
}

pub(crate) fn origin(run_id: &str, shim_id: &str) -> EventOrigin {
    EventOrigin {
        run_id: run_id.to_owned(),
        agent_id: "agent".to_owned(),
        client: AgentClient::Codex,
        env: WorkingEnvironment::Ci,
        principal: None,
        workload: None,
        source: EventSource { host_id: "host".to_owned(), proc_id: "1".to_owned(), shim_id: shim_id.to_owned() },
    }
}

pub(crate) fn policy() -> PolicyRef {
    PolicyRef {
        policy_id: "p".to_owned(),
        policy_version: "1".to_owned(),
        policy_hash: Sha256Digest::from_bytes(b"p").to_string(),
    }
}

pub(crate) fn run_start() -> EventBody {
    let run = RunStart { started_at: Timestamp::now(), mode: Mode::Guardrails, policy: policy(), meta: None };
    EventBody::RunStart { run }
}

pub(crate) fn run_end(status: RunStatus) -> EventBody {
    let run = RunEnd { ended_at: Timestamp::now(), status, summary: RunSummary::default(), exit: None };
    EventBody::RunEnd { run }
}

/// The events of a call that was decided with an action.
pub(crate) fn call(action: Action, seq: u64) -> [EventBody; 3] {
    let call = CallRef {
        call_id: CallId::new_random(),
        server_name: "git".to_owned(),
        tool_name: format!("tool-{}", seq % 5),
        args_hash: Sha256Digest::from_bytes(&seq.to_le_bytes()),
    };
    let is_allowed = action == Action::Allow;
    let start = CallStart {
        call: call.clone(),
        transport: Transport::McpStdio,
        bytes_in: 100 + seq,
        preview: ArgsPreview { truncated: false, args_preview: Some(format!("{{\"number\":{seq}}}")) },
        seq,
        tags: Vec::new(),
        timeout_ms: None,
        args_stream_hash: None,
    };
    let decision = DecisionRecord {
        action,
        rule_id: (!is_allowed).then(|| "rule".to_owned()),
        severity: Severity::Info,
        explain: Explanation { summary: "because".to_owned(), reason_code: "POLICY".to_owned() },
        policy: policy(),
        backoff_ms: None,
        hint: None,
        terminate: None,
        observed: None,
    };
    let end = CallEnd {
        call: call.clone(),
        status: if is_allowed { CallStatus::Ok } else { CallStatus::Error },
        latency_ms: 5,
        bytes_out: 50,
        preview: ResultPreview { truncated: false, result_preview: Some("done".to_owned()) },
        error: None,
        result_stream_hash: None,
    };
    [
        EventBody::ToolCallStart { call: start },
        EventBody::ToolCallDecision { call, decision },
        EventBody::ToolCallEnd(end),
    ]
}

/// Records a call.
pub(crate) fn record_call(recorder: &Recorder, action: Action, seq: u64) {
    for body in call(action, seq) {
        recorder.record(body).unwrap();
    }
}
