//! One contract of a tier.

use std::num::NonZeroU32;

use counterproof_artifact::is_invisible;
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
    /// The files with the evidence of the last execution, relative to the files of the store.
    pub evidence: Vec<String>,
    /// What happened to this version, oldest first. Of a long history, the latest steps.
    pub history: Vec<Step>,
    /// Commands that a person can paste as they are.
    pub commands: Vec<Command>,
}

/// A transition or a note.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    pub at: Timestamp,
    /// The new state, or what the note is about.
    pub event: &'static str,
    pub actor: String,
    pub reason: String,
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
            attention: attention(status, tier, version, &evidence, options),
            verification,
            changes: evidence.changes(),
            duration_ms: duration(status, version, options.now).or_else(|| evidence.duration_ms()),
            rollback: evidence.rollback(),
            evidence: evidence.files(),
            history: history(version),
            commands: commands(status, options.command),
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
    evidence: &Evidence<'_>,
    options: &ControlRoomOptions<'_>,
) -> Option<Attention> {
    let last = version.transitions().next_back();
    let reason = || last.map(|it| (&*it.reason, format!("{} (by {})", it.reason, it.actor)));
    let note = |kind: NoteKind| {
        version.open_notes().filter(|note| note.kind == kind).last().map(|it| (&*it.reason, it.reason.clone()))
    };
    let (code, event) = match (tier, status.state) {
        (Tier::NeedsDecision, _) if status.rollback_refused => {
            (AttentionCode::RollbackRefused, note(NoteKind::NotRolledBack))
        }
        (Tier::NeedsDecision, _) => (AttentionCode::ApprovalRequested, note(NoteKind::ApprovalRequested)),
        (Tier::Anomaly, State::Failed) => (AttentionCode::Failed, reason()),
        (Tier::Anomaly, State::RollingBack) => (AttentionCode::RollingBack, reason()),
        (Tier::Anomaly, State::RolledBack) => (AttentionCode::RolledBack, reason()),
        (Tier::Anomaly, _) => return stalled(status, options, || Ok(process(version))).ok().flatten(),
        _ => return None,
    };
    let (event, shown) = event.or_else(reason).unwrap_or_default();
    // What failed is first: what happened afterwards follows from it.
    let message = match evidence.verification().and_then(|it| it.reason) {
        Some(cause) if evidence.states(event) => cause,
        Some(cause) => format!("{cause}; {shown}"),
        None => shown,
    };
    Some(Attention { code, message: shorten(&message) })
}

/// Steps of the history.
const MAX_STEPS: usize = 20;

fn history(version: &VersionHistory) -> Vec<Step> {
    let mut steps: Vec<Step> = version.records.iter().filter_map(step).collect();
    steps.drain(..steps.len().saturating_sub(MAX_STEPS));
    steps
}

fn step(record: &Record) -> Option<Step> {
    let (at, event, actor, reason) = match record {
        Record::Contract(_) => return None,
        Record::Transition(it) => (it.at, it.to.words(), &it.actor, &it.reason),
        Record::Note(it) => {
            let event = match it.kind {
                NoteKind::ApprovalRequested => "approval requested",
                NoteKind::NotRolledBack => "not rolled back",
            };
            (it.at, event, &it.actor, &it.reason)
        }
    };
    Some(Step { at, event, actor: actor.to_string(), reason: shorten(reason) })
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

fn commands(status: &Status, program: &str) -> Vec<Command> {
    let effects = match status.state {
        State::Verifying if status.awaits_approval => ("completes the contract", "fails the contract"),
        State::Failed => ("makes it ready for another attempt", "cancels the contract"),
        _ => return Vec::new(),
    };
    // With the version: a decision about work that was replaced in the meantime is refused. With a reason that is true as it
    // is, so that the command runs as it is.
    let command = |verb: &str, done: &str, effect| Command {
        command: format!("{program} {verb} {}@{} --reason '{done} from the control room'", status.id, status.version),
        effect,
    };
    vec![command("approve", "approved", effects.0), command("reject", "rejected", effects.1)]
}

/// Programs of the commands that undo a rollback.
const RESTORING: [&str; 2] = ["git ", "cp "];

/// Returns true if a text is one whole command of a shell, without substitutions, redirections or further commands. The text is
/// evidence, which any program may have written.
fn is_command(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " ._/%+=:@,-".contains(c);
    let mut is_quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let is_allowed = match character {
            '\'' => {
                is_quoted = !is_quoted;
                true
            }
            '\\' if !is_quoted => characters.next_if_eq(&'\'').is_some(),
            // The sign of a text that was cut.
            '…' => false,
            other if is_quoted => !is_invisible(other),
            other => is_plain(other),
        };
        if !is_allowed {
            return false;
        }
    }
    !is_quoted && !text.contains("...") && RESTORING.iter().any(|program| text.starts_with(program))
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
const MAX_TEXT: usize = 500;

/// Files of the evidence of a contract.
const MAX_FILES: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerificationSummary {
    pub result: VerificationResult,
    /// The first reason why it did not pass: an assertion, if one failed. It begins with the expression.
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
    /// How to restore what the rollback removed: a command, or a sentence.
    pub way_back: Option<String>,
}

impl RollbackSummary {
    /// Returns the command that restores what the rollback removed, if it is whole.
    pub fn restore_command(&self) -> Option<&str> {
        self.way_back.as_deref().filter(|text| is_command(text))
    }
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

    /// Returns true if the verification states this reason.
    fn states(&self, reason: &str) -> bool {
        self.verification
            .and_then(|it| it.get("reasons")?.as_array())
            .is_some_and(|reasons| reasons.iter().any(|it| it.as_str() == Some(reason)))
    }

    fn files(&self) -> Vec<String> {
        let names = self.verification.and_then(|it| it.get("evidence")?.as_array()).into_iter().flatten();
        names.filter_map(|it| it.as_str().map(str::to_owned)).take(MAX_FILES).collect()
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
    let first = || document.get("reasons").and_then(|reasons| text(reasons.get(0)?));
    let timed_out =
        || document.get("timed_out").and_then(Value::as_bool)?.then(|| "the time limit was exceeded".to_owned());
    let exit_code = || {
        let code = document.get("exit_code").and_then(Value::as_i64).filter(|code| *code != 0)?;
        Some(format!("the command ended with exit code {code}"))
    };
    failed_assertion(document).or_else(first).or_else(timed_out).or_else(exit_code)
}

/// Returns the first assertion that failed, with the values that it read.
fn failed_assertion(document: &Value) -> Option<String> {
    let reasons = document.get("reasons").and_then(Value::as_array);
    let assertion = |it: &Value| {
        let expression = it.get("expression")?.as_str()?;
        let sentence = match it.get("outcome")?.as_str()? {
            "met" => return None,
            "not_met" => match it.get("got").and_then(Value::as_str) {
                Some(got) => format!("{expression}: assertion not met, {got}"),
                None => format!("{expression}: assertion not met"),
            },
            // A check that was stopped leaves each assertion without a value, which is not the reason.
            _ if reasons
                .is_some_and(|it| it.iter().all(|it| it.as_str().is_some_and(|it| !it.contains(expression)))) =>
            {
                return None;
            }
            _ => match it.get("message").and_then(Value::as_str) {
                Some(message) => format!("{expression}: assertion failed, {message}"),
                None => format!("{expression}: assertion failed"),
            },
        };
        Some(shorten(&sentence))
    };
    document.get("assertions")?.as_array()?.iter().find_map(assertion)
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
    fn only_a_whole_command_without_further_commands_is_one() {
        for text in ["git -C /w switch --create a refs/x%2Fy/1", "git -C '/my work' stash pop", r"cp -a 'it'\''s/.' ."]
        {
            assert!(is_command(text), "{text}");
        }
        for text in [
            "git stash pop; rm -rf x",
            "git $(x)",
            "git 'a",
            "git -C /a… b",
            "git -C '/a…' b",
            "git -C a/... b",
            "git \\x",
            "git a\nb",
            "git '\u{202e}'",
            "the files are in `x/files`",
            "the files are in x",
            "curl x",
            "",
        ] {
            assert!(!is_command(text), "{text}");
        }
    }

    #[test]
    fn a_clock_that_was_set_back_gives_no_duration() {
        let (one, two) = ("2026-01-01T00:00:00Z".parse().unwrap(), "2026-01-01T00:00:02Z".parse().unwrap());
        assert_eq!((millis_between(one, two), millis_between(two, one)), (2000, 0));
    }
}
