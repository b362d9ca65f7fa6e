//! What a reader wants to know about a session before its records: sums, milestones and errors.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::event::{Command, EventBody, FileChange, SessionEvent, Usage};
use crate::shell::{Program, programs};

/// Longest text of a milestone, in characters.
const MAX_TEXT: usize = 200;

/// The sums over the records of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Failed calls included.
    pub llm_calls: u64,
    pub tool_calls: u64,
    pub commands: u64,
    pub checkpoints: u64,
    /// The sums of what is known.
    pub tokens: Usage,
    /// The sum of what the source states.
    pub cost: Option<f64>,
    pub tool_calls_by_tool: BTreeMap<String, u64>,
    /// The files that were created, changed, renamed or deleted.
    pub files_changed: BTreeSet<String>,
    pub milestones: Vec<Milestone>,
    pub errors: Vec<SessionError>,
}

/// A record that shows how far the session came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Milestone {
    pub kind: MilestoneKind,
    pub timestamp: Timestamp,
    pub seq: Option<u64>,
    pub text: String,
    /// Whether it succeeded, if that is known.
    #[serde(skip)]
    pub succeeded: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MilestoneKind {
    Tests,
    Commit,
    Push,
    PullRequest,
    Compaction,
    Refusal,
}

impl MilestoneKind {
    /// Returns the word for people.
    pub const fn word(self) -> &'static str {
        match self {
            MilestoneKind::Tests => "tests",
            MilestoneKind::Commit => "commit",
            MilestoneKind::Push => "push",
            MilestoneKind::PullRequest => "pull request",
            MilestoneKind::Compaction => "compaction",
            MilestoneKind::Refusal => "refusal",
        }
    }
}

/// A failed record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionError {
    pub seq: Option<u64>,
    pub timestamp: Timestamp,
    pub message: String,
}

impl Summary {
    pub fn new<'a>(events: impl IntoIterator<Item = &'a SessionEvent>) -> Self {
        let mut summary = Self::default();
        events.into_iter().for_each(|event| summary.add(event));
        summary
    }

    pub fn add(&mut self, event: &SessionEvent) {
        match &event.body {
            EventBody::LlmCall(call) => {
                self.llm_calls += 1;
                if let Some(usage) = call.response.as_ref().and_then(|response| response.usage) {
                    self.tokens = sum(self.tokens, usage);
                }
                self.cost = call.cost.map_or(self.cost, |cost| Some(self.cost.unwrap_or_default() + cost));
            }
            EventBody::ToolCall(call) => {
                self.tool_calls += 1;
                *self.tool_calls_by_tool.entry(call.tool_name.clone()).or_default() += 1;
            }
            EventBody::Command(_) => self.commands += 1,
            EventBody::Checkpoint(_) => self.checkpoints += 1,
            EventBody::FileOperation(file) if file.operation != FileChange::Read => {
                self.files_changed.insert(file.path.clone());
            }
            EventBody::FileOperation(_) | EventBody::StateTransition(_) | EventBody::Opaque(_) => {}
        }
        self.milestones.extend(milestones(event));
        if let Some(message) = error_message(event) {
            self.errors.push(SessionError { seq: event.seq, timestamp: event.timestamp, message });
        }
    }
}

fn sum(one: Usage, other: Usage) -> Usage {
    let add = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or_default().saturating_add(other.unwrap_or_default())),
    };
    Usage {
        prompt_tokens: add(one.prompt_tokens, other.prompt_tokens),
        completion_tokens: add(one.completion_tokens, other.completion_tokens),
        total_tokens: add(one.total_tokens, other.total_tokens),
        cached_tokens: add(one.cached_tokens, other.cached_tokens),
    }
}

/// Returns why a record failed; `None` if it did not, or if nothing states it. A tool that answers with an error is part of
/// a normal session, and not an error of it.
pub fn error_message(event: &SessionEvent) -> Option<String> {
    let error = event.error.as_ref()?;
    Some(match error.status {
        Some(status) => format!("{} {status}: {}", error.kind, error.message),
        None => format!("{}: {}", error.kind, error.message),
    })
}

/// Returns what a record shows, in the order of its programs.
pub fn milestones(event: &SessionEvent) -> Vec<Milestone> {
    let milestone = |kind, text: String, succeeded| {
        let text = counterproof_artifact::one_line(&text, MAX_TEXT);
        Milestone { kind, timestamp: event.timestamp, seq: event.seq, text, succeeded }
    };
    match &event.body {
        EventBody::Command(command) => {
            let succeeded = command.exit_code.map(|code| code == 0);
            let text = command.command.as_ref().map(|line| line.text()).unwrap_or_default();
            let text = match command.exit_code {
                Some(0) => text,
                Some(code) => format!("{text} (exit code {code})"),
                None => format!("{text} (exit code not known)"),
            };
            kinds(command).into_iter().map(|kind| milestone(kind, text.clone(), succeeded)).collect()
        }
        EventBody::StateTransition(transition) if transition.trigger == "compaction" => {
            let states = format!("{} → {}", transition.from_state, transition.to_state);
            vec![milestone(MilestoneKind::Compaction, states, None)]
        }
        EventBody::ToolCall(call) => {
            let refusal = call.decision.as_ref().filter(|decision| decision["action"] != "ALLOW");
            let text = |decision: &Value| format!("{}: {}", call.tool_name, refusal_reason(decision));
            refusal.map(|decision| milestone(MilestoneKind::Refusal, text(decision), Some(false))).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Returns why the guard did not allow a call.
pub fn refusal_reason(decision: &Value) -> String {
    let texts = [&decision["explain"]["summary"], &decision["explain"]["reason_code"], &decision["rule_id"]];
    let reason = texts.into_iter().find_map(Value::as_str).or_else(|| decision["action"].as_str());
    reason.map_or_else(|| "refused by the guard".to_owned(), str::to_owned)
}

fn kinds(command: &Command) -> Vec<MilestoneKind> {
    let mut kinds = Vec::new();
    for program in command.command.as_ref().map(programs).unwrap_or_default() {
        kinds.extend(kind(&program).filter(|kind| !kinds.contains(kind)));
    }
    kinds
}

fn kind(program: &Program) -> Option<MilestoneKind> {
    if program.is_test() {
        return Some(MilestoneKind::Tests);
    }
    let mut words = program.words();
    match (program.name.as_str(), words.next(), words.next()) {
        ("git", Some("commit"), _) => Some(MilestoneKind::Commit),
        ("git", Some("push"), _) => Some(MilestoneKind::Push),
        ("gh", Some("pr"), Some("create")) | ("glab", Some("mr"), Some("create")) => Some(MilestoneKind::PullRequest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::{CommandLine, LlmCall, LlmResponse, ToolCall};

    fn event(body: EventBody) -> SessionEvent {
        SessionEvent::reconstructed("k", Timestamp::UNIX_EPOCH, body)
    }

    fn command(text: &str, exit_code: Option<i64>) -> SessionEvent {
        let command = Some(CommandLine::Shell(text.to_owned()));
        event(EventBody::Command(Command { command, exit_code, ..Command::default() }))
    }

    #[test]
    fn sums_are_of_what_is_known() {
        let call = |usage| {
            let response = Some(LlmResponse { usage, ..LlmResponse::default() });
            event(EventBody::LlmCall(LlmCall { response, ..LlmCall::default() }))
        };
        let summary = Summary::new(&[call(None), call(Some(Usage::new(Some(10), Some(2), None)))]);
        assert_eq!((summary.llm_calls, summary.tokens), (2, Usage::new(Some(10), Some(2), None)));
        assert_eq!(summary.cost, None);
        assert_eq!(Summary::new(&[call(None)]).tokens, Usage::default());
    }

    #[test]
    fn a_command_shows_tests_commit_and_push() {
        let found = milestones(&command("pytest && git commit -m x && git push && gh pr create", Some(1)));
        let kinds: Vec<_> = found.iter().map(|milestone| milestone.kind).collect();
        assert_eq!(
            kinds,
            [MilestoneKind::Tests, MilestoneKind::Commit, MilestoneKind::Push, MilestoneKind::PullRequest]
        );
        assert_eq!(found[0].succeeded, Some(false));
        assert!(found[0].text.ends_with("(exit code 1)"), "{}", found[0].text);
        assert!(milestones(&command("ls", Some(0))).is_empty());
    }

    #[test]
    fn a_refused_call_is_a_milestone() {
        let decision =
            Some(json!({"action": "BLOCK", "rule_id": "no-push", "explain": {"summary": "pushes are refused"}}));
        let call = ToolCall { tool_name: "shop.push".to_owned(), decision, ..ToolCall::default() };
        let found = milestones(&event(EventBody::ToolCall(call)));
        assert_eq!(found[0].text, "shop.push: pushes are refused");
    }
}
