//! Milestones: the records that a reader of a session looks for first.

use counterproof_artifact::one_line;
use serde::{Deserialize, Serialize};

use crate::event::{Command, EventBody, SessionEvent, StateTransition};
use crate::shell::{Program, programs};

/// What a record means for the session, without its time and number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Milestone {
    pub kind: MilestoneKind,
    /// One line.
    pub text: String,
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

/// Longest text in characters.
const MAX_TEXT: usize = 160;

/// Returns the milestone that a record is, if it is one.
pub fn milestone(event: &SessionEvent) -> Option<Milestone> {
    let (kind, text) = match &event.body {
        EventBody::Command(command) => of_command(command)?,
        EventBody::StateTransition(StateTransition { trigger, to_state, context, .. }) => match trigger.as_str() {
            "compaction" => (MilestoneKind::Compaction, "history compacted".to_owned()),
            "pull_request" => {
                (MilestoneKind::PullRequest, context["url"].as_str().unwrap_or(to_state.as_str()).to_owned())
            }
            _ => return None,
        },
        EventBody::ToolCall(call) => match &call.decision {
            Some(decision) => {
                let rule = decision["rule_id"].as_str().unwrap_or("the policy");
                (MilestoneKind::Refusal, format!("{}: refused by {rule}", call.tool_name))
            }
            None if creates_pull_request(&call.tool_name) => (MilestoneKind::PullRequest, call.tool_name.clone()),
            None => return None,
        },
        _ => return None,
    };
    Some(Milestone { kind, text: one_line(&text, MAX_TEXT) })
}

/// Returns whether the command or the call of a milestone succeeded, if that is known.
pub fn succeeded(event: &SessionEvent) -> Option<bool> {
    match &event.body {
        EventBody::Command(command) => match test_result(command) {
            Some(TestResult::Passed) => Some(true),
            Some(TestResult::Failed) => Some(false),
            Some(TestResult::Unknown) => None,
            None => command.exit_code.map(|code| code == 0),
        },
        EventBody::ToolCall(call) if call.decision.is_some() => Some(false),
        EventBody::ToolCall(call) => call.result.success,
        _ => None,
    }
}

/// Tools of common servers that open a pull request.
fn creates_pull_request(tool: &str) -> bool {
    ["create_pull_request", "create_merge_request", "git_create_pr"].iter().any(|name| tool.ends_with(name))
}

fn of_command(command: &Command) -> Option<(MilestoneKind, String)> {
    let line = command.command.as_ref()?;
    // The last one counts: `git add . && git commit -m x && git push` is a push.
    let kind = programs(line).iter().filter_map(kind_of).next_back()?;
    let line = line.script();
    let text = match kind {
        MilestoneKind::Tests => format!("{}: {}", one_line(&line, MAX_TEXT - 20), result(command)),
        _ => line,
    };
    Some((kind, text))
}

fn kind_of(program: &Program) -> Option<MilestoneKind> {
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

/// How a test run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestResult {
    Passed,
    Failed,
    Unknown,
}

/// Returns how the tests ended that a command ran; `None` if it ran none.
pub fn test_result(command: &Command) -> Option<TestResult> {
    if !programs(command.command.as_ref()?).iter().any(Program::is_test) {
        return None;
    }
    let text = result(command);
    Some(match text.as_str() {
        "passed" => TestResult::Passed,
        "result unknown" => TestResult::Unknown,
        _ => TestResult::Failed,
    })
}

/// Returns how a test run ended, by its exit code, or by what common runners print last.
fn result(command: &Command) -> String {
    match command.exit_code {
        Some(0) => return "passed".to_owned(),
        Some(code) => return format!("failed with exit code {code}"),
        None => {}
    }
    let printed = [&command.stdout, &command.stderr].into_iter().flatten();
    let last: Vec<String> = printed.flat_map(|text| text.lines().rev().take(20)).map(str::to_lowercase).collect();
    let has = |words: &[&str]| last.iter().any(|line| words.iter().any(|word| line.contains(word)));
    if has(&["test result: failed", "failures:", "failed (", "fail\t", "tests failed"])
        || last.iter().any(|it| counts_failed(it))
    {
        "failed".to_owned()
    } else if has(&["test result: ok", " passed", "ok\t"]) || last.iter().any(|line| line == "ok") {
        "passed".to_owned()
    } else {
        "result unknown".to_owned()
    }
}

/// Returns true for a summary such as `1 failed, 3 passed`.
fn counts_failed(line: &str) -> bool {
    let words: Vec<&str> = line.split(|character: char| !character.is_alphanumeric()).collect();
    words.windows(2).any(|pair| pair[1] == "failed" && pair[0].parse::<u64>().is_ok_and(|count| count > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::CommandLine;
    use jiff::Timestamp;

    fn of(command: CommandLine, exit_code: Option<i64>, stdout: &str) -> Option<(MilestoneKind, String)> {
        let command =
            Command { command: Some(command), exit_code, stdout: Some(stdout.to_owned()), ..Command::default() };
        let event = SessionEvent::captured(Timestamp::UNIX_EPOCH, EventBody::Command(command));
        milestone(&event).map(|it| (it.kind, it.text))
    }

    fn shell(text: &str) -> CommandLine {
        CommandLine::Shell(text.to_owned())
    }

    #[test]
    fn a_test_run_states_its_result() {
        use MilestoneKind::Tests;
        let tests = |text: &str| Some((Tests, text.to_owned()));
        assert_eq!(of(shell("cd x && cargo test -p y"), Some(0), ""), tests("cd x && cargo test -p y: passed"));
        assert_eq!(
            of(shell("FOO=1 python3 -m pytest -q"), Some(1), ""),
            tests("FOO=1 python3 -m pytest -q: failed with exit code 1")
        );
        assert_eq!(of(shell("pytest"), None, "== 1 failed, 2 passed in 0.1s =="), tests("pytest: failed"));
        assert_eq!(of(shell("pytest"), None, "== 0 failed, 2 passed in 0.1s =="), tests("pytest: passed"));
        assert_eq!(of(shell(".venv/bin/pytest"), None, ""), tests(".venv/bin/pytest: result unknown"));
        assert_eq!(of(shell("cat pytest.ini"), Some(0), ""), None);
    }

    #[test]
    fn commits_pushes_and_pull_requests_are_found_in_scripts() {
        let kind = |command: CommandLine| of(command, Some(0), "").map(|it| it.0);
        assert_eq!(kind(shell("git add -A; git commit -m 'fix'")), Some(MilestoneKind::Commit));
        assert_eq!(kind(shell("git commit -am x && git push origin x")), Some(MilestoneKind::Push));
        let arguments = ["bash", "-lc", "gh pr create --fill"].map(str::to_owned).to_vec();
        assert_eq!(kind(CommandLine::Arguments(arguments)), Some(MilestoneKind::PullRequest));
        assert_eq!(kind(shell("git status")), None);
        assert_eq!(kind(shell("")), None);
    }
}
