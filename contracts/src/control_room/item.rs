//! One contract of a tier.

use std::num::NonZeroU32;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::{ControlRoomOptions, Tier, WorkProcess};
use crate::contract::ContractId;
use crate::lifecycle::{Details, State};
use crate::store::{NoteKind, Record};
use crate::store::{Status, VersionHistory};

/// A contract of a tier. Texts that other programs wrote are cut to 500 characters and may contain any character.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Item {
    pub project: String,
    pub id: ContractId,
    pub version: NonZeroU32,
    pub state: State,
    /// One line for people, or the id.
    pub summary: String,
    pub since: Option<Timestamp>,
    pub owner: Option<String>,
    /// Why it needs attention, in the two highest tiers.
    pub attention: Option<Attention>,
    /// The outcome of the last verification. `None` before it.
    pub verification: Option<VerificationSummary>,
    /// What the work changed. `None` if that is not recorded.
    pub changes: Option<Changes>,
    /// The duration of the work and its verification, until now if it is not finished.
    pub duration_ms: Option<u64>,
    pub rollback: Option<RollbackSummary>,
    pub commands: Vec<Command>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attention {
    pub code: AttentionCode,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AttentionCode {
    /// The check passed, and a person must approve the work.
    ApprovalRequested,
    /// The work could not be undone without losing other work.
    RollbackRefused,
    Failed,
    RollingBack,
    RolledBack,
    /// The process that executed the contract does not run.
    ProcessEnded,
    /// The state has not changed for longer than its limit.
    NoProgress,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Command {
    pub command: String,
    pub effect: &'static str,
}

impl Item {
    pub(super) fn new(status: &Status, tier: Tier, version: &VersionHistory, options: &ControlRoomOptions<'_>) -> Self {
        let evidence = Evidence::of(version);
        // A contract that still runs has no verification yet, which is not the same as an unknown one.
        let is_ended = matches!(tier, Tier::NeedsDecision | Tier::Completed)
            || matches!(status.state, State::Failed | State::RollingBack | State::RolledBack);
        let unknown = VerificationSummary { result: VerificationResult::Unknown, reason: None };
        let verification = evidence.verification().or_else(|| is_ended.then_some(unknown));
        Self {
            project: shorten(version.contract.project()),
            id: status.id.clone(),
            version: status.version,
            state: status.state,
            summary: shorten(version.contract.summary()),
            since: status.in_state_since(),
            owner: status.owner.clone(),
            attention: attention(status, tier, version, options),
            verification,
            changes: evidence.changes(),
            duration_ms: duration(status, version, options.now).or_else(|| evidence.duration_ms()),
            rollback: evidence.rollback(),
            commands: commands(status),
        }
    }
}

/// Returns why a contract that should make progress makes none.
pub(super) fn stalled(
    status: &Status,
    options: &ControlRoomOptions<'_>,
    process_of: impl FnOnce() -> Result<Option<super::WorkProcess>, crate::store::StoreError>,
) -> Result<Option<Attention>, crate::store::StoreError> {
    // A claim should start within minutes; work may take a day.
    let limit = if status.state == State::Claimed { options.claim_limit } else { options.work_limit };
    let age = status.in_state_since().map_or(0, |since| millis_between(since, options.now));
    if u128::from(age) > limit.as_millis() {
        let message = match status.state {
            State::Claimed => format!("claimed for {} and not started", show(age)),
            other => format!("{other} for {}", show(age)),
        };
        return Ok(Some(Attention { code: AttentionCode::NoProgress, message }));
    }
    // Last, because it reads the history of the contract.
    let Some(process) = process_of()? else { return Ok(None) };
    Ok(((options.is_running)(&process) == Some(false)).then(|| Attention {
        code: AttentionCode::ProcessEnded,
        message: format!("process {} worked on the contract and does not run any more", process.pid),
    }))
}

fn attention(
    status: &Status,
    tier: Tier,
    version: &VersionHistory,
    options: &ControlRoomOptions<'_>,
) -> Option<Attention> {
    let last = version.transitions().next_back();
    let reason = || last.map_or_else(String::new, |it| shorten(&format!("{} (by {})", it.reason, it.actor)));
    let note =
        |kind: NoteKind| version.open_notes().filter(|note| note.kind == kind).last().map(|it| shorten(&it.reason));
    let (code, message) = match (tier, status.state) {
        (Tier::NeedsDecision, _) if status.rollback_refused => {
            (AttentionCode::RollbackRefused, note(NoteKind::NotRolledBack))
        }
        (Tier::NeedsDecision, _) => (AttentionCode::ApprovalRequested, note(NoteKind::ApprovalRequested)),
        (Tier::Anomaly, State::Failed) => (AttentionCode::Failed, None),
        (Tier::Anomaly, State::RollingBack) => (AttentionCode::RollingBack, None),
        (Tier::Anomaly, State::RolledBack) => (AttentionCode::RolledBack, None),
        (Tier::Anomaly, _) => return stalled(status, options, || Ok(process(version))).ok().flatten(),
        _ => return None,
    };
    Some(Attention { code, message: message.unwrap_or_else(reason) })
}

fn duration(status: &Status, version: &VersionHistory, now: Timestamp) -> Option<u64> {
    let start =
        version.records.iter().rposition(|it| matches!(it, Record::Transition(it) if it.to == State::Executing))?;
    let later = || version.records[start + 1..].iter();
    if later().any(|it| matches!(it, Record::Transition(it) if matches!(it.to, State::Ready | State::Claimed))) {
        // The contract waits for another attempt, which has no duration yet.
        return None;
    }
    let Record::Transition(executing) = &version.records[start] else { return None };
    let end = later().find_map(|record| match record {
        Record::Transition(it) => matches!(it.to, State::Completed | State::Failed | State::Cancelled).then_some(it.at),
        // The work waits for a person from here.
        Record::Note(note) => (note.kind == NoteKind::ApprovalRequested).then_some(note.at),
        Record::Contract(_) => None,
    });
    let is_working = matches!(status.state, State::Executing | State::Verifying);
    Some(millis_between(executing.at, end.or_else(|| is_working.then_some(now))?))
}

fn commands(status: &Status) -> Vec<Command> {
    let effects = match status.state {
        State::Verifying if status.awaits_approval => ("completes the contract", "fails the contract"),
        State::Failed => ("makes it ready for another attempt", "cancels the contract"),
        _ => return Vec::new(),
    };
    // With the version: a decision about work that was replaced in the meantime is refused.
    let command = |verb: &str, effect| Command {
        command: format!("counterproof contract {verb} {}@{} --reason …", status.id, status.version),
        effect,
    };
    vec![command("approve", effects.0), command("reject", effects.1)]
}

/// Returns the milliseconds from one time to another. Zero if the second one is earlier, as after a change of the clock.
pub fn millis_between(start: Timestamp, end: Timestamp) -> u64 {
    u64::try_from(end.duration_since(start).as_millis()).unwrap_or(0)
}

/// Returns a duration with its two largest units.
pub fn show(millis: u64) -> String {
    let seconds = millis / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: u64, large_unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{large} {large_unit}"),
        _ => format!("{large} {large_unit} {small} {small_unit}"),
    };
    match millis {
        0..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{seconds}.{} s", millis % 1000 / 100),
        _ if hours == 0 => two(minutes, "min", seconds % 60, "s"),
        _ if days == 0 => two(hours, "h", minutes % 60, "min"),
        _ => two(days, "d", hours % 24, "h"),
    }
}

/// Longest text from the evidence, in characters.
pub const MAX_TEXT: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerificationSummary {
    pub result: VerificationResult,
    /// The first reason why it did not pass.
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerificationResult {
    Passed,
    Failed,
    /// The transition records no such evidence.
    Unknown,
}

/// How many files and lines the work changed. A number that is not recorded is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Changes {
    pub files: Option<u64>,
    pub insertions: Option<u64>,
    pub deletions: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RollbackSummary {
    /// `rolled_back`, `refused`, `failed`, or what another program wrote.
    pub outcome: Option<String>,
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
    // A claim and an execution record the process under different names.
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
    // Other programs may record only the single facts.
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

fn text(value: &Value) -> Option<String> {
    value.as_str().map(shorten)
}

pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_its_two_largest_units() {
        for (millis, shown) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (12_345, "12.3 s"),
            (60_000, "1 min"),
            (90_500, "1 min 30 s"),
            (3_600_000, "1 h"),
            (7_261_000, "2 h 1 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(show(millis), shown);
        }
    }

    #[test]
    fn a_clock_that_was_set_back_gives_no_duration() {
        let (one, two) = ("2026-01-01T00:00:00Z".parse().unwrap(), "2026-01-01T00:00:02Z".parse().unwrap());
        assert_eq!((millis_between(one, two), millis_between(two, one)), (2000, 0));
    }
}
