//! One contract of a tier.

use std::num::NonZeroU32;

use jiff::Timestamp;
use serde::Serialize;

use super::duration::{millis_between, show};
use super::evidence::{Changes, Evidence, RollbackSummary, VerificationResult, VerificationSummary, process, shorten};
use super::{ControlRoomOptions, Tier};
use crate::contract::ContractId;
use crate::lifecycle::State;
use crate::record::{NoteKind, Record};
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
    /// The time since which it is in its state.
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
    /// The outcome of the rollback, if there was one.
    pub rollback: Option<RollbackSummary>,
    /// The commands with which a person decides.
    pub commands: Vec<Command>,
}

/// Why a contract needs attention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attention {
    /// The kind.
    pub code: AttentionCode,
    /// The reason, in one sentence.
    pub message: String,
}

/// A kind of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AttentionCode {
    /// The check passed, and a person must approve the work.
    ApprovalRequested,
    /// The work could not be undone without losing other work.
    RollbackRefused,
    /// The work or its check failed.
    Failed,
    /// The work is being undone.
    RollingBack,
    /// The work is undone.
    RolledBack,
    /// The process that executed the contract does not run.
    ProcessEnded,
    /// The state has not changed for longer than its limit.
    NoProgress,
}

/// A command with which a person decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Command {
    pub command: String,
    /// What it does.
    pub effect: &'static str,
}

impl Item {
    /// Builds the item of a contract in a tier.
    pub(super) fn new(status: &Status, tier: Tier, version: &VersionHistory, options: &ControlRoomOptions<'_>) -> Self {
        let evidence = Evidence::of(version);
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
    let limit = if status.state == State::Claimed { options.claim_limit } else { options.work_limit };
    let age = status.in_state_since().map_or(0, |since| millis_between(since, options.now));
    if u128::from(age) > limit.as_millis() {
        let message = match status.state {
            State::Claimed => format!("claimed for {} and not started", show(age)),
            other => format!("{other} for {}", show(age)),
        };
        return Ok(Some(Attention { code: AttentionCode::NoProgress, message }));
    }
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

/// Returns the time from the start of the last execution to its end, or until now.
fn duration(status: &Status, version: &VersionHistory, now: Timestamp) -> Option<u64> {
    let start =
        version.records.iter().rposition(|it| matches!(it, Record::Transition(it) if it.to == State::Executing))?;
    let later = || version.records[start + 1..].iter();
    if later().any(|it| matches!(it, Record::Transition(it) if matches!(it.to, State::Ready | State::Claimed))) {
        // It waits for another attempt.
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

/// Returns the commands with which a person decides about a contract.
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
