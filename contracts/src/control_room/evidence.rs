//! Reads the evidence of transitions and notes.

use serde::Serialize;
use serde_json::Value;

use super::WorkProcess;
use crate::lifecycle::{Details, State};
use crate::record::Record;
use crate::store::VersionHistory;

/// Longest text from the evidence, in characters.
pub const MAX_TEXT: usize = 500;

/// The outcome of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerificationSummary {
    /// Whether it passed.
    pub result: VerificationResult,
    /// The first reason why it did not pass.
    pub reason: Option<String>,
}

/// Whether a verification passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerificationResult {
    Passed,
    /// It did not pass.
    Failed,
    /// The transition has no evidence that says so.
    Unknown,
}

/// How many files and lines the work changed. A number that is not recorded is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// The number of changed files.
    pub files: Option<u64>,
    /// The number of added lines.
    pub insertions: Option<u64>,
    /// The number of removed lines.
    pub deletions: Option<u64>,
}

/// The outcome of a rollback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RollbackSummary {
    /// `rolled_back`, `refused`, `failed`, or what another program wrote.
    pub outcome: Option<String>,
    /// What was done, or why not.
    pub message: Option<String>,
    /// How to restore what the rollback removed.
    pub way_back: Option<String>,
}

/// The evidence of the last execution of a version.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence<'a> {
    verification: Option<&'a Value>,
    rollback: Option<&'a Value>,
}

impl<'a> Evidence<'a> {
    pub(super) fn of(version: &'a VersionHistory) -> Self {
        let records = version.records.iter().rev();
        // A contract that is ready or claimed again has lost the evidence of its earlier execution.
        let of_last: Vec<&Record> = records.take_while(|record| !is_before_work(record)).collect();
        let find = |name: &str| of_last.iter().find_map(|record| details(record)?.get(name));
        Self { verification: find("verification"), rollback: find("rollback") }
    }

    /// Returns the outcome of the verification, if there is evidence of one.
    pub(super) fn verification(&self) -> Option<VerificationSummary> {
        let document = self.verification?;
        let result = match document.get("passed").and_then(Value::as_bool) {
            Some(true) => VerificationResult::Passed,
            Some(false) => VerificationResult::Failed,
            None => VerificationResult::Unknown,
        };
        let reason = (result != VerificationResult::Passed).then(|| first_reason(document)).flatten();
        Some(VerificationSummary { result, reason })
    }

    pub(super) fn changes(&self) -> Option<Changes> {
        let changes = self.verification?.get("changes")?.as_object()?;
        let number = |name: &str| changes.get(name).and_then(Value::as_u64);
        Some(Changes { files: number("files"), insertions: number("insertions"), deletions: number("deletions") })
    }

    /// Returns the duration of the verification in milliseconds.
    pub(super) fn duration_ms(&self) -> Option<u64> {
        self.verification?.get("duration_ms")?.as_u64()
    }

    pub(super) fn rollback(&self) -> Option<RollbackSummary> {
        let document = self.rollback?;
        let field = |name: &str| document.get(name).and_then(text);
        Some(RollbackSummary { outcome: field("outcome"), message: field("message"), way_back: field("way_back") })
    }
}

/// Returns the process of the last execution, or of the claim before it, if it is recorded.
pub(super) fn process(version: &VersionHistory) -> Option<WorkProcess> {
    let start = version.transitions().rev().find(|it| matches!(it.to, State::Claimed | State::Executing))?;
    let process = start.details.get(if start.to == State::Claimed { "process" } else { "execution" })?;
    let pid = process.get("pid")?.as_u64().and_then(|pid| u32::try_from(pid).ok())?;
    Some(WorkProcess { pid, host: process.get("host").and_then(text) })
}

fn is_before_work(record: &Record) -> bool {
    matches!(record, Record::Transition(it) if matches!(it.to, State::Pending | State::Ready | State::Claimed))
}

fn details(record: &Record) -> Option<&Details> {
    match record {
        Record::Contract(_) => None,
        Record::Transition(transition) => Some(&transition.details),
        Record::Note(note) => Some(&note.details),
    }
}

/// Returns the first reason of a verification that did not pass, also where only the single facts are recorded.
fn first_reason(document: &Value) -> Option<String> {
    let first = document.get("reasons").and_then(|reasons| text(reasons.get(0)?));
    let timed_out =
        || document.get("timed_out").and_then(Value::as_bool)?.then(|| "the time limit was exceeded".to_owned());
    let exit_code = || {
        let code = document.get("exit_code").and_then(Value::as_i64).filter(|code| *code != 0)?;
        Some(format!("the command ended with exit code {code}"))
    };
    let assertion = || {
        let is_unmet = |it: &&Value| it.get("outcome").and_then(Value::as_str).is_some_and(|outcome| outcome != "met");
        let unmet = document.get("assertions")?.as_array()?.iter().find(is_unmet)?;
        Some(format!("assertion not met: {}", text(unmet.get("expression")?)?))
    };
    first.or_else(timed_out).or_else(exit_code).or_else(assertion)
}

/// Returns a text, cut to its limit.
fn text(value: &Value) -> Option<String> {
    value.as_str().map(shorten)
}

/// Cuts a text to the limit of texts.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
