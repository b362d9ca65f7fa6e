//! Tool calls that run commands: the command, and what the answer states about its end.

use serde_json::Value;

use crate::event::{Command, CommandLine};

/// The names by which agents give a shell to their models.
const SHELLS: [&str; 13] = [
    "shell",
    "bash",
    "Bash",
    "PowerShell",
    "exec",
    "exec_command",
    "shell_call",
    "shell_command",
    "container.exec",
    "local_shell",
    "local_shell_call",
    "run_terminal_cmd",
    "unified_exec",
];

/// Lines at the start of an output that can state facts about its command.
const HEADER_LINES: usize = 8;

/// How lines of a header begin that state nothing of use.
const HEADERS: [&str; 4] = ["Process running ", "Chunk ID: ", "Original token count: ", "Total output lines: "];

/// Returns the command of a tool call, if its tool is a shell. It runs in `cwd` unless the call states another folder.
pub fn shell_command(tool_name: &str, arguments: &Value, cwd: Option<&str>) -> Option<Command> {
    if !SHELLS.contains(&tool_name) {
        return None;
    }
    let command = ["command", "cmd"].iter().find_map(|name| command_line(&arguments[*name]));
    // Several texts for a shell, as `shell_call` has them.
    let several = || match command_line(&arguments["commands"])? {
        CommandLine::Arguments(texts) => Some(CommandLine::Shell(texts.join("\n"))),
        text @ CommandLine::Shell(_) => Some(text),
    };
    let own = ["workdir", "working_directory", "cwd"].iter().find_map(|name| arguments[*name].as_str());
    let cwd = own.filter(|own| !own.is_empty()).or(cwd).map(str::to_owned);
    Some(Command { command: Some(command.or_else(several)?), cwd, ..Command::default() })
}

fn command_line(value: &Value) -> Option<CommandLine> {
    match value {
        Value::String(text) => Some(CommandLine::Shell(text.clone())),
        Value::Array(words) if !words.is_empty() => {
            let words = words.iter().map(|word| word.as_str().map(str::to_owned));
            words.collect::<Option<_>>().map(CommandLine::Arguments)
        }
        _ => None,
    }
}

/// What an answer states about a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellOutput {
    pub exit_code: Option<i64>,
    /// Both streams, if the answer does not separate them. Without the header that some agents write.
    pub stdout: Option<String>,
    pub stderr: Option<String>,
    pub latency_ms: Option<u64>,
    /// True if the output was shortened for the model.
    pub is_truncated: bool,
}

/// Reads the answer to a shell call, in the forms in which agents pass the output of a command to a model.
pub fn shell_output(text: &str) -> ShellOutput {
    let mut output = structured(text).unwrap_or_else(|| plain(text));
    output.is_truncated = output.stdout.as_deref().is_some_and(is_shortened);
    output
}

fn structured(text: &str) -> Option<ShellOutput> {
    if !text.starts_with('{') {
        return None;
    }
    let answer: Value = serde_json::from_str(text).ok()?;
    let exit_code = [&answer["metadata"]["exit_code"], &answer["exit_code"]].into_iter().find_map(Value::as_i64);
    let text = |name: &str| answer[name].as_str().map(str::to_owned);
    let stdout = text("stdout").or_else(|| text("output"));
    let latency_ms = answer["metadata"]["duration_seconds"].as_f64().and_then(milliseconds);
    (exit_code.is_some() || stdout.is_some()).then(|| ShellOutput {
        exit_code,
        stdout,
        stderr: text("stderr"),
        latency_ms,
        is_truncated: false,
    })
}

/// Reads a text that can have a header, which ends with the line `Output:`, or a line such as `exit code 1` at its end.
fn plain(text: &str) -> ShellOutput {
    let mut output = ShellOutput::default();
    let mut end = 0;
    for (number, line) in text.split_inclusive('\n').take(HEADER_LINES).enumerate() {
        end += line.len();
        let line = line.trim();
        if line == "Output:" && number > 0 {
            // Other such lines are of the program.
            return ShellOutput { stdout: Some(text[end..].to_owned()), ..output };
        } else if let Some(code) = exit_code_of_line(line) {
            output.exit_code = output.exit_code.or(Some(code));
        } else if let Some(seconds) = line.strip_prefix("Wall time: ") {
            output.latency_ms = seconds.split(' ').next().and_then(|number| milliseconds(number.parse().ok()?));
        } else if !HEADERS.iter().any(|start| line.starts_with(start)) {
            break;
        }
    }
    let last = text.trim_end().lines().next_back().and_then(exit_code_of_line);
    ShellOutput { exit_code: last.or(output.exit_code), stdout: Some(text.to_owned()), ..output }
}

fn exit_code_of_line(line: &str) -> Option<i64> {
    // Lines of an output can be long.
    let line = line.get(..64).unwrap_or(line).trim().to_ascii_lowercase();
    let rest = ["exit code:", "exit code", "process exited with code"].iter().find_map(|it| line.strip_prefix(it))?;
    rest.trim().trim_end_matches('.').parse().ok()
}

/// Converts seconds, if they can be the duration of a command.
pub fn milliseconds(seconds: f64) -> Option<u64> {
    let milliseconds = (seconds * 1000.0).round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
    (0.0..1e15).contains(&milliseconds).then_some(milliseconds as u64)
}

/// The marks with which agents replace the middle of a long output.
pub fn is_shortened(text: &str) -> bool {
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
    fn commands_of_shells_are_found() {
        let shell = |text: &str| Some(CommandLine::Shell(text.to_owned()));
        let words = |words: &[&str]| Some(CommandLine::Arguments(words.iter().map(ToString::to_string).collect()));
        for (name, arguments, expected) in [
            ("Bash", json!({"command": "ls -l", "description": "x"}), shell("ls -l")),
            ("shell", json!({"command": ["bash", "-lc", "ls"]}), words(&["bash", "-lc", "ls"])),
            ("exec", json!({"cmd": "ls"}), shell("ls")),
            ("local_shell_call", json!({"type": "exec", "command": ["ls"]}), words(&["ls"])),
            ("shell_call", json!({"commands": ["ls", "pwd"]}), shell("ls\npwd")),
            ("bash", json!({"restart": true}), None),
            ("bash", json!({"command": [1]}), None),
            ("bash", json!("ls"), None),
            ("read", json!({"command": "ls"}), None),
        ] {
            let found = shell_command(name, &arguments, None);
            assert_eq!(found.and_then(|it| it.command), expected, "{name} {arguments}");
        }
    }

    #[test]
    fn a_command_runs_in_its_own_folder_or_that_of_the_session() {
        let cwd = |arguments| shell_command("shell", &arguments, Some("/w")).and_then(|command| command.cwd);
        assert_eq!(cwd(json!({"command": ["ls"]})).as_deref(), Some("/w"));
        assert_eq!(cwd(json!({"command": ["ls"], "workdir": ""})).as_deref(), Some("/w"));
        assert_eq!(cwd(json!({"command": ["ls"], "workdir": "/x"})).as_deref(), Some("/x"));
        assert_eq!(cwd(json!({"text": "ls"})), None);
    }

    #[test]
    fn an_exit_code_is_what_the_answer_states() {
        for (text, expected) in [
            ("1 passed\nexit code 0", Some(0)),
            ("1 failed\nExit code: 101\n", Some(101)),
            ("Exit code 2\nls: no such file", Some(2)),
            ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\nexit codes are odd", Some(1)),
            ("Wall time: 1 s\nProcess exited with code -9\nOutput:\nx", Some(-9)),
            (r#"{"output":"x","metadata":{"exit_code":3,"duration_seconds":0.1}}"#, Some(3)),
            ("exit code 1\nexit code 0", Some(0)),
            ("text\n\nexit code 1\ntext", None),
            ("text\nexit code 1\ntext", None),
            ("Exit code: 0\nOutput:\nexit code 1", Some(0)),
            ("Chunk ID: a1\nProcess running with session ID 7\nOutput:\nexit code 1", None),
            ("the exit code 1", None),
            ("exit code x", None),
            ("{broken", None),
            ("", None),
        ] {
            assert_eq!(shell_output(text).exit_code, expected, "{text}");
        }
        let output = shell_output(r#"{"stdout":"a","stderr":"b","exit_code":1}"#);
        assert_eq!((output.stdout.as_deref(), output.stderr.as_deref()), (Some("a"), Some("b")));
        assert_eq!(shell_output("{\"a\":1}").stdout.as_deref(), Some("{\"a\":1}"), "JSON that a command printed");
    }

    #[test]
    fn a_header_is_not_part_of_the_output() {
        let facts = |text: &str| {
            let output = shell_output(text);
            (output.exit_code, output.latency_ms, output.stdout.unwrap_or_default())
        };
        let text = "Exit code: 1\nWall time: 0.5 seconds\nOutput:\nno\n";
        assert_eq!(facts(text), (Some(1), Some(500), "no\n".into()));
        let text =
            "Chunk ID: a1\nWall time: 2 seconds\nProcess exited with code 0\nOriginal token count: 2\nOutput:\nyes";
        assert_eq!(facts(text), (Some(0), Some(2000), "yes".into()));
        let text = r#"{"output":"x","metadata":{"exit_code":2,"duration_seconds":0.25}}"#;
        assert_eq!(facts(text), (Some(2), Some(250), "x".into()));
        assert_eq!(facts("Wall time: -1e400 seconds\nOutput:\n"), (None, None, String::new()));
        for text in ["Exit code 127\nnot found", "Output:\nx\nexit code 127", "out\nexit code 127\n"] {
            assert_eq!(facts(text), (Some(127), None, text.into()));
        }
        assert!(shell_output("Exit code: 0\nOutput:\na\n…5 tokens truncated…\nb").is_truncated);
        assert!(!shell_output("Exit code: 0\nOutput:\na").is_truncated);
    }
}
