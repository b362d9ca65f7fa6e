//! The commands that tool calls run, and what their output states.

use serde_json::Value;

use crate::event::Command;
use crate::protocol::{shell_command, shell_output};

/// Lines at the start of an output that may state facts about its command.
const HEADER_LINES: usize = 8;

/// Returns the command that a tool call runs, in this folder unless it states another one.
pub(super) fn command(tool: &str, arguments: &Value, cwd: Option<&str>) -> Option<Command> {
    let shell = shell_command(tool, arguments)?;
    let cwd = shell.cwd.filter(|own| !own.is_empty()).or_else(|| cwd.map(str::to_owned));
    Some(Command { command: Some(shell.command), cwd, ..Command::default() })
}

/// What the output of a command states about it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct OutputFacts {
    pub(super) exit_code: Option<i64>,
    pub(super) latency_ms: Option<u64>,
    /// The output without the facts, if it has any.
    pub(super) output: Option<String>,
    /// True if the output was shortened for the model.
    pub(super) is_truncated: bool,
}

/// Reads the forms in which agents pass the output of a command to a model.
pub(super) fn output_facts(text: &str) -> OutputFacts {
    let stated = shell_output(text);
    let mut facts = OutputFacts { exit_code: stated.exit_code, ..OutputFacts::default() };
    if text.starts_with('{')
        && let Ok(answer) = serde_json::from_str::<Value>(text)
    {
        facts.latency_ms = answer.pointer("/metadata/duration_seconds").and_then(Value::as_f64).and_then(milliseconds);
        facts.output = stated.stdout.filter(|output| output != text);
        facts.is_truncated = facts.output.as_deref().is_some_and(is_shortened);
        return facts;
    }
    facts.is_truncated = is_shortened(text);
    let mut end = 0;
    for line in text.split_inclusive('\n').take(HEADER_LINES) {
        end += line.len();
        let line = line.trim();
        if let Some(seconds) = line.strip_prefix("Wall time: ") {
            facts.latency_ms = seconds.split(' ').next().and_then(|number| milliseconds(number.parse().ok()?));
        } else if line == "Output:" {
            facts.output = Some(text[end..].to_owned());
            break;
        } else if !HEADERS.iter().any(|start| line.starts_with(start)) {
            break;
        }
    }
    facts
}

/// How other lines of a header begin.
const HEADERS: [&str; 6] = [
    "Exit code",
    "Process exited with code ",
    "Process running ",
    "Chunk ID: ",
    "Original token count: ",
    "Total output lines: ",
];

pub(super) fn milliseconds(seconds: f64) -> Option<u64> {
    let milliseconds = (seconds * 1000.0).round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
    (0.0..1e15).contains(&milliseconds).then_some(milliseconds as u64)
}

/// The marks with which agents replace the middle of a long output.
fn is_shortened(text: &str) -> bool {
    text.contains(" tokens truncated…")
        || text.contains(" chars truncated…")
        || text.contains("[... omitted ")
        || text.contains(" characters truncated] ...")
        || text.contains("... [truncated]")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn exit_codes_are_read_in_the_forms_of_the_agents() {
        let facts = |text: &str| {
            let facts = output_facts(text);
            (facts.exit_code, facts.latency_ms, facts.output)
        };
        let text = "Exit code: 1\nWall time: 0.5 seconds\nOutput:\nno\n";
        assert_eq!(facts(text), (Some(1), Some(500), Some("no\n".into())));
        let text =
            "Chunk ID: a1\nWall time: 2 seconds\nProcess exited with code 0\nOriginal token count: 2\nOutput:\nyes";
        assert_eq!(facts(text), (Some(0), Some(2000), Some("yes".into())));
        let text = r#"{"output":"x","metadata":{"exit_code":2,"duration_seconds":0.25}}"#;
        assert_eq!(facts(text), (Some(2), Some(250), Some("x".into())));
        assert_eq!(facts("Exit code 127\nnot found"), (Some(127), None, None));
        assert_eq!(facts("out\nexit code 3\n"), (Some(3), None, None));
        assert_eq!(facts("Wall time: -1e400 seconds\nOutput:\n"), (None, None, Some(String::new())));
    }

    #[test]
    fn a_command_runs_in_its_own_folder_or_that_of_the_session() {
        let cwd = |arguments| command("shell", &arguments, Some("/w")).and_then(|command| command.cwd);
        assert_eq!(cwd(json!({"command": ["ls"]})).as_deref(), Some("/w"));
        assert_eq!(cwd(json!({"command": ["ls"], "workdir": ""})).as_deref(), Some("/w"));
        assert_eq!(cwd(json!({"command": ["ls"], "workdir": "/x"})).as_deref(), Some("/x"));
        assert_eq!(cwd(json!({"text": "ls"})), None);
    }
}
