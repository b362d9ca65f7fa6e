//! Imports files in tests.

use std::sync::LazyLock;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_redaction::Redactor;
use counterproof_sessions::event::{EventBody, SessionEvent, StateTransition, ToolCall};
use counterproof_sessions::import::{Format, ImportOptions, ImportReport, ImportedSession, import};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Imported {
    pub(crate) sessions: Vec<ImportedSession>,
    pub(crate) report: ImportReport,
}

impl Imported {
    pub(crate) fn session(&self, id: &str) -> &ImportedSession {
        let ids: Vec<_> = self.sessions.iter().map(|session| &session.head.session_id).collect();
        self.sessions
            .iter()
            .find(|session| session.head.session_id == id)
            .unwrap_or_else(|| panic!("{id} is not in {ids:?}"))
    }

    pub(crate) fn only(&self) -> &ImportedSession {
        assert_eq!(self.sessions.len(), 1);
        &self.sessions[0]
    }
}

pub(crate) fn import_all(paths: &[Utf8PathBuf], format: Option<Format>) -> Imported {
    let options = ImportOptions { format, since: None, redactor: redactor() };
    let mut sessions = Vec::new();
    let mut receive = |session| {
        sessions.push(session);
        Ok(())
    };
    let report = import(paths, &options, &mut receive, &mut |_| {}).unwrap();
    let read: u64 = report.read.values().sum();
    let outcomes: u64 = [&report.mapped, &report.left_out, &report.opaque].into_iter().flat_map(|it| it.values()).sum();
    assert_eq!(read, outcomes, "each line has one outcome");
    Imported { sessions, report }
}

/// Compiled once: this takes longer than most imports.
pub(crate) fn redactor() -> &'static Redactor {
    static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Redactor::broad([]).unwrap().with_mask("[REDACTED]"));
    &REDACTOR
}

/// A folder of files.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.0.path()).unwrap().join(name)
    }

    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Utf8PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn lines(&self, name: &str, lines: &[Value]) -> Utf8PathBuf {
        self.write(name, jsonl(lines))
    }

    pub(crate) fn import(&self) -> Imported {
        import_all(&[self.path("")], None)
    }
}

pub(crate) fn jsonl(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Prompt, completion and cached tokens, and the number of model calls.
pub(crate) fn tokens(session: &ImportedSession) -> (u64, u64, u64, usize) {
    let mut sums = (0, 0, 0, 0);
    for record in session.records() {
        if let EventBody::LlmCall(call) = &record.event.body {
            sums.3 += 1;
            if let Some(usage) = call.response.as_ref().and_then(|response| response.usage) {
                sums.0 += usage.prompt_tokens.unwrap_or(0);
                sums.1 += usage.completion_tokens.unwrap_or(0);
                sums.2 += usage.cached_tokens.unwrap_or(0);
            }
        }
    }
    sums
}

/// The records of a type.
pub(crate) fn of_type(session: &ImportedSession, kind: &str) -> Vec<SessionEvent> {
    session.events().filter(|event| event.body.kind() == kind).collect()
}

pub(crate) fn tools(session: &ImportedSession) -> Vec<ToolCall> {
    let events = of_type(session, "tool_call").into_iter();
    events.map(|event| if let EventBody::ToolCall(call) = event.body { call } else { unreachable!() }).collect()
}

pub(crate) fn transitions(session: &ImportedSession) -> Vec<StateTransition> {
    let events = of_type(session, "state_transition").into_iter();
    events.map(|event| if let EventBody::StateTransition(it) = event.body { it } else { unreachable!() }).collect()
}

/// The texts of the messages of the n-th model call.
pub(crate) fn history(session: &ImportedSession, call: usize) -> Value {
    let event = of_type(session, "llm_call").remove(call);
    if let EventBody::LlmCall(call) = event.body { call.request.messages } else { unreachable!() }
}
