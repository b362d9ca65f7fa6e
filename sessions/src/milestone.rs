//! Milestones: the records that a reader of a session looks for first.

use counterproof_artifact::one_line;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{Command, EventBody, SessionEvent, StateTransition};
use crate::shell::{Program, programs};

/// What a record shows about how far the session came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Milestone {
    pub kind: MilestoneKind,
    /// One line.
    pub text: String,
    /// Whether it succeeded, if that is known.
    pub succeeded: Option<bool>,
    /// It failed, and had to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_expected: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MilestoneKind {
    /// Tests were run. The text has the result.
    Tests,
    Commit,
    Push,
    PullRequest,
    /// The history was replaced by a summary.
    Compaction,
    /// The guard refused a call.
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

impl Milestone {
    fn new(kind: MilestoneKind, text: &str, succeeded: Option<bool>) -> Self {
        Self { kind, text: one_line(text, MAX_TEXT), succeeded, is_expected: false }
    }

    fn expected(self) -> Self {
        Self { is_expected: true, ..self }
    }
}

/// Longest text in characters.
const MAX_TEXT: usize = 200;

/// Longest command in the text of a milestone, in characters.
const MAX_COMMAND: usize = 160;

/// Returns what a record shows, in the order of its programs.
pub fn milestones(event: &SessionEvent) -> Vec<Milestone> {
    let milestone = Milestone::new;
    match &event.body {
        EventBody::Command(command) => {
            let line = command.command.as_ref().map(|line| one_line(&line.text(), MAX_COMMAND)).unwrap_or_default();
            let of = |kind| {
                if kind == MilestoneKind::Tests {
                    let (succeeded, result) = test_result(command);
                    if command.expected_failure {
                        return milestone(kind, &format!("{line}: {result}, as expected"), succeeded).expected();
                    }
                    return milestone(kind, &format!("{line}: {result}"), succeeded);
                }
                let failed = command.exit_code.filter(|code| *code != 0);
                let code = failed.map(|code| format!(" (exit code {code})")).unwrap_or_default();
                milestone(kind, &format!("{line}{code}"), command.exit_code.map(|code| code == 0))
            };
            kinds(command).into_iter().map(of).collect()
        }
        EventBody::StateTransition(transition) => of_transition(transition).into_iter().collect(),
        EventBody::ToolCall(call) => match &call.decision {
            Some(decision) if decision["action"] != "ALLOW" => {
                let text = format!("{}: {}", call.tool_name, refusal_reason(decision));
                vec![milestone(MilestoneKind::Refusal, &text, Some(false))]
            }
            _ if creates_pull_request(&call.tool_name) => {
                vec![milestone(MilestoneKind::PullRequest, &call.tool_name, call.result.success)]
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Returns what the transition of a recorded agent or of a workflow shows. `docs/workflows.md` lists the triggers.
fn of_transition(transition: &StateTransition) -> Option<Milestone> {
    let StateTransition { from_state, to_state, trigger, context } = transition;
    let field = |name: &str, other: &str| context[name].as_str().unwrap_or(other).to_owned();
    let (kind, text, succeeded) = match (trigger.as_str(), from_state.as_str()) {
        ("compaction", _) => (MilestoneKind::Compaction, "history compacted".to_owned(), None),
        ("test_fails", _) => (MilestoneKind::Tests, "the test fails before the change".to_owned(), Some(false)),
        ("target_passes", _) => (MilestoneKind::Tests, "the test passes".to_owned(), Some(true)),
        ("no_new_failures", _) => (MilestoneKind::Tests, "all tests: no new failures".to_owned(), Some(true)),
        ("ci_passed", _) => (MilestoneKind::Tests, "the CI passed".to_owned(), Some(true)),
        ("red_check", "target_test" | "suite" | "ci") => {
            (MilestoneKind::Tests, field("message", "a check failed"), Some(false))
        }
        ("committed", _) => (MilestoneKind::Commit, field("commit", to_state), Some(true)),
        ("pushed", _) => (MilestoneKind::Push, field("branch", to_state), Some(true)),
        ("pull_request", _) => (MilestoneKind::PullRequest, field("url", to_state), Some(true)),
        _ => return None,
    };
    let milestone = Milestone::new(kind, &text, succeeded);
    Some(if trigger == "test_fails" { milestone.expected() } else { milestone })
}

/// Tools of common servers that open a pull request.
fn creates_pull_request(tool: &str) -> bool {
    ["create_pull_request", "create_merge_request", "git_create_pr"].iter().any(|name| tool.ends_with(name))
}

/// Returns why the guard did not allow a call. A decision without an explanation has its reason code next to the action.
pub fn refusal_reason(decision: &Value) -> String {
    let explain = &decision["explain"];
    let codes = [&explain["reason_code"], &decision["reason_code"]];
    let texts = [&explain["summary"]].into_iter().chain(codes).chain([&decision["rule_id"], &decision["action"]]);
    let reason = texts.into_iter().find_map(Value::as_str);
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

/// Returns how a test run ended, by its exit code, or by what common runners print last.
fn test_result(command: &Command) -> (Option<bool>, String) {
    match command.exit_code {
        Some(0) => return (Some(true), "passed".to_owned()),
        Some(code) => return (Some(false), format!("failed with exit code {code}")),
        None => {}
    }
    let printed = [&command.stdout, &command.stderr].into_iter().flatten();
    let last: Vec<String> = printed.flat_map(|text| text.lines().rev().take(20)).map(str::to_lowercase).collect();
    let has = |words: &[&str]| last.iter().any(|line| words.iter().any(|word| line.contains(word)));
    if has(&["test result: failed", "failures:", "failed (", "fail\t", "tests failed"])
        || last.iter().any(|it| counts_failed(it))
    {
        (Some(false), "failed".to_owned())
    } else if has(&["test result: ok", " passed", "ok\t"]) || last.iter().any(|line| line == "ok") {
        (Some(true), "passed".to_owned())
    } else {
        (None, "result unknown".to_owned())
    }
}

/// Returns true for a summary such as `1 failed, 3 passed`, or `2 errors`.
fn counts_failed(line: &str) -> bool {
    let words: Vec<&str> = line.split(|character: char| !character.is_alphanumeric()).collect();
    words.windows(2).any(|pair| {
        matches!(pair[1], "failed" | "error" | "errors") && pair[0].parse::<u64>().is_ok_and(|count| count > 0)
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::event::{CommandLine, ToolCall};

    fn of(body: EventBody) -> Vec<Milestone> {
        milestones(&SessionEvent::captured(Timestamp::UNIX_EPOCH, body))
    }

    fn command(text: &str, exit_code: Option<i64>, stdout: &str) -> Vec<Milestone> {
        let (command, stdout) = (Some(CommandLine::Shell(text.to_owned())), Some(stdout.to_owned()));
        of(EventBody::Command(Command { command, exit_code, stdout, ..Command::default() }))
    }

    #[test]
    fn a_test_run_states_its_result() {
        let tests = |text: &str, code, stdout: &str| {
            let found = command(text, code, stdout);
            assert!(found.iter().all(|it| it.kind == MilestoneKind::Tests));
            found.first().map(|it| (it.text.clone(), it.succeeded))
        };
        for (text, code, stdout, expected, succeeded) in [
            ("cd x && cargo test -p y", Some(0), "", "passed", Some(true)),
            ("FOO=1 python3 -m pytest -q", Some(1), "", "failed with exit code 1", Some(false)),
            ("pytest", None, "== 1 failed, 2 passed in 0.1s ==", "failed", Some(false)),
            ("pytest", None, "== 0 failed, 2 passed in 0.1s ==", "passed", Some(true)),
            ("pytest", None, "2 errors in 0.1s", "failed", Some(false)),
            ("python -m unittest", None, "Ran 2 tests in 0.1s\n\nOK", "passed", Some(true)),
            (".venv/bin/pytest", None, "", "result unknown", None),
        ] {
            assert_eq!(tests(text, code, stdout), Some((format!("{text}: {expected}"), succeeded)));
        }
        assert_eq!(tests("cat pytest.ini", Some(0), ""), None);
    }

    #[test]
    fn a_test_that_must_fail_is_a_milestone_and_not_a_failure_to_look_at() {
        let run = |expected_failure| {
            let line = Some(CommandLine::Shell("pytest".to_owned()));
            let body = Command { command: line, exit_code: Some(1), expected_failure, ..Command::default() };
            assert_eq!(body.has_failed(), !expected_failure);
            of(EventBody::Command(body)).remove(0)
        };
        let (failed, expected) = (run(false), run(true));
        assert_eq!((failed.succeeded, failed.is_expected), (Some(false), false));
        assert_eq!((expected.succeeded, expected.is_expected), (Some(false), true));
        assert_eq!(expected.text, "pytest: failed with exit code 1, as expected");
        // The record has its documented fields, and one more.
        let written = serde_json::to_value(Command::default()).unwrap();
        let fields: Vec<&String> = written.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["command", "cwd", "exit_code", "stdout", "stderr", "latency_ms"]);
    }

    #[test]
    fn a_command_shows_all_that_its_programs_do() {
        let found = command("pytest && git commit -m x && git push && gh pr create", Some(1), "");
        let kinds: Vec<_> = found.iter().map(|milestone| milestone.kind).collect();
        assert_eq!(
            kinds,
            [MilestoneKind::Tests, MilestoneKind::Commit, MilestoneKind::Push, MilestoneKind::PullRequest]
        );
        assert!(found[1].text.ends_with("(exit code 1)") && found[1].succeeded == Some(false));
        assert!(command("git status", Some(0), "").is_empty() && command("", None, "").is_empty());
    }

    #[test]
    fn refusals_compactions_and_pull_requests_are_milestones() {
        let decision =
            Some(json!({"action": "BLOCK", "rule_id": "no-push", "explain": {"summary": "pushes are refused"}}));
        let call = ToolCall { tool_name: "shop.push".to_owned(), decision, ..ToolCall::default() };
        assert_eq!(of(EventBody::ToolCall(call))[0].text, "shop.push: pushes are refused");
        for (decision, reason) in [
            (json!({"action": "BLOCK", "rule_id": "no-push", "reason_code": "RULE_MATCHED"}), "RULE_MATCHED"),
            (json!({"action": "BLOCK", "rule_id": "no-push", "explain": {"reason_code": "LIMIT"}}), "LIMIT"),
            (json!({"action": "BLOCK", "rule_id": "no-push", "reason_code": null}), "no-push"),
            (json!({"action": "BLOCK", "rule_id": null, "reason_code": null}), "BLOCK"),
            (json!({}), "refused by the guard"),
        ] {
            assert_eq!(refusal_reason(&decision), reason);
        }
        let call = ToolCall { tool_name: "mcp__github__create_pull_request".to_owned(), ..ToolCall::default() };
        assert_eq!(of(EventBody::ToolCall(call))[0].kind, MilestoneKind::PullRequest);
        let state = |trigger: &str| {
            let [from_state, to_state, trigger] = ["a", "b", trigger].map(str::to_owned);
            of(EventBody::StateTransition(StateTransition {
                from_state,
                to_state,
                trigger,
                context: json!({"url": "u"}),
            }))
        };
        assert_eq!(state("compaction")[0].kind, MilestoneKind::Compaction);
        assert_eq!(state("pull_request")[0].text, "u");
        for (trigger, kind) in [
            ("test_fails", MilestoneKind::Tests),
            ("no_new_failures", MilestoneKind::Tests),
            ("committed", MilestoneKind::Commit),
            ("pushed", MilestoneKind::Push),
        ] {
            assert_eq!(state(trigger)[0].kind, kind);
        }
        assert!(state("agent started").is_empty() && state("red_check").is_empty());
    }
}
