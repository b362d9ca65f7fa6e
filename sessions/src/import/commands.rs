//! Recognizes the tool calls that run commands, and reads what their output states.

use serde_json::Value;

use crate::event::{Command, CommandLine};

/// The tools that run a command, by the names that agents give them.
const SHELL_TOOLS: [&str; 12] = [
    "shell",
    "bash",
    "Bash",
    "PowerShell",
    "exec",
    "exec_command",
    "shell_command",
    "container.exec",
    "local_shell",
    "local_shell_call",
    "run_terminal_cmd",
    "unified_exec",
];

/// Lines at the start of an output that may state facts about its command.
const HEADER_LINES: usize = 8;

/// Returns the command that a tool call runs.
pub(super) fn command(tool: &str, arguments: &Value, cwd: Option<&str>) -> Option<Command> {
    if !SHELL_TOOLS.contains(&tool) {
        return None;
    }
    let stated = ["command", "cmd", "argv"].iter().find_map(|name| arguments.get(name))?;
    let command = match stated {
        Value::String(text) => CommandLine::Shell(text.clone()),
        Value::Array(words) => {
            let words: Option<Vec<String>> = words.iter().map(|word| word.as_str().map(str::to_owned)).collect();
            CommandLine::Arguments(words?)
        }
        _ => return None,
    };
    let own = ["workdir", "cwd", "working_directory"].iter().find_map(|name| arguments.get(name)?.as_str());
    let cwd = own.filter(|own| !own.is_empty()).or(cwd).map(str::to_owned);
    Some(Command { command: Some(command), cwd, ..Command::default() })
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
    if let Some(facts) = json_facts(text) {
        return facts;
    }
    let mut facts = OutputFacts { is_truncated: is_shortened(text), ..OutputFacts::default() };
    let mut end = 0;
    for line in text.split_inclusive('\n').take(HEADER_LINES) {
        end += line.len();
        let line = line.trim();
        if let Some(code) = after(line, &["Exit code: ", "Process exited with code ", "Exit code "]) {
            facts.exit_code = code.parse().ok().or(facts.exit_code);
        } else if let Some(seconds) = after(line, &["Wall time: "]) {
            facts.latency_ms = seconds.split(' ').next().and_then(|number| milliseconds(number.parse().ok()?));
        } else if line == "Output:" {
            facts.output = Some(text[end..].to_owned());
            break;
        } else if after(line, &["Chunk ID: ", "Original token count: ", "Total output lines: ", "Process "]).is_none() {
            break;
        }
    }
    if facts.exit_code.is_none()
        && let Some(code) = text.trim_end().lines().next_back().and_then(|line| line.strip_prefix("exit code "))
    {
        facts.exit_code = code.trim().parse().ok();
    }
    facts
}

/// `{"output": …, "metadata": {"exit_code": …, "duration_seconds": …}}`
fn json_facts(text: &str) -> Option<OutputFacts> {
    if !text.starts_with('{') {
        return None;
    }
    let value: Value = serde_json::from_str(text).ok()?;
    let output = value.get("output")?.as_str()?.to_owned();
    let metadata = value.get("metadata").unwrap_or(&value);
    Some(OutputFacts {
        exit_code: metadata.get("exit_code").and_then(Value::as_i64),
        latency_ms: metadata.get("duration_seconds").and_then(Value::as_f64).and_then(milliseconds),
        is_truncated: is_shortened(&output),
        output: Some(output),
    })
}

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

fn after<'a>(line: &'a str, starts: &[&str]) -> Option<&'a str> {
    starts.iter().find_map(|start| line.strip_prefix(start))
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
        assert_eq!(facts("no facts\nExit code: 4\n"), (None, None, None));
    }

    #[test]
    fn commands_are_texts_or_lists() {
        let line = |arguments| command("shell", &arguments, Some("/w")).and_then(|it| it.command).map(|it| it.text());
        assert_eq!(line(json!({"command": ["ls", "-l"]})), Some("ls -l".into()));
        assert_eq!(line(json!({"cmd": "ls"})), Some("ls".into()));
        assert_eq!(line(json!({"command": [1]})), None);
        assert_eq!(command("read", &json!({"command": "x"}), None), None);
        let own = command("exec_command", &json!({"cmd": "ls", "workdir": "/x"}), Some("/w"));
        assert_eq!(own.unwrap().cwd.as_deref(), Some("/x"));
    }
}
