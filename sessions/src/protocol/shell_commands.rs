//! Tool calls that run commands: the command, and what the answer states about its end.

use serde_json::Value;

use crate::event::CommandLine;

/// The names by which agents give a shell to their models.
const SHELLS: [&str; 9] =
    ["shell", "bash", "Bash", "exec", "local_shell_call", "shell_call", "shell_command", "exec_command", "local_shell"];

/// Lines at the start of an output that can state the exit code.
const HEADER_LINES: usize = 6;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCommand {
    pub command: CommandLine,
    pub cwd: Option<String>,
}

/// Returns the command of a tool call, if its tool is a shell.
pub fn shell_command(tool_name: &str, arguments: &Value) -> Option<ShellCommand> {
    if !SHELLS.contains(&tool_name) {
        return None;
    }
    let command = ["command", "cmd"].iter().find_map(|name| command_line(&arguments[*name]));
    // Several texts for a shell, as `shell_call` has them.
    let several = || match command_line(&arguments["commands"])? {
        CommandLine::Arguments(texts) => Some(CommandLine::Shell(texts.join("\n"))),
        text @ CommandLine::Shell(_) => Some(text),
    };
    let cwd = ["workdir", "working_directory", "cwd"].iter().find_map(|name| arguments[*name].as_str());
    Some(ShellCommand { command: command.or_else(several)?, cwd: cwd.map(str::to_owned) })
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
    /// Both streams, if the answer does not separate them.
    pub stdout: Option<String>,
    pub stderr: Option<String>,
}

/// Reads the answer to a shell call.
pub fn shell_output(text: &str) -> ShellOutput {
    if text.starts_with('{')
        && let Ok(answer) = serde_json::from_str::<Value>(text)
        && let Some(output) = structured(&answer)
    {
        return output;
    }
    ShellOutput { exit_code: stated_exit_code(text), stdout: Some(text.to_owned()), stderr: None }
}

fn structured(answer: &Value) -> Option<ShellOutput> {
    let exit_code = [&answer["metadata"]["exit_code"], &answer["exit_code"]].into_iter().find_map(Value::as_i64);
    let text = |name: &str| answer[name].as_str().map(str::to_owned);
    let stdout = text("stdout").or_else(|| text("output"));
    (exit_code.is_some() || stdout.is_some()).then(|| ShellOutput { exit_code, stdout, stderr: text("stderr") })
}

/// Finds a line such as `exit code 1` at the end, or within the header that some agents write.
fn stated_exit_code(text: &str) -> Option<i64> {
    let last = text.trim_end().lines().next_back().and_then(exit_code_of_line);
    last.or_else(|| text.lines().take(HEADER_LINES).take_while(|line| !line.is_empty()).find_map(exit_code_of_line))
}

fn exit_code_of_line(line: &str) -> Option<i64> {
    // Lines of an output can be long.
    let line = line.get(..64).unwrap_or(line).trim().to_ascii_lowercase();
    let rest = ["exit code:", "exit code", "process exited with code"].iter().find_map(|it| line.strip_prefix(it))?;
    rest.trim().trim_end_matches('.').parse().ok()
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
            assert_eq!(shell_command(name, &arguments).map(|it| it.command), expected, "{name} {arguments}");
        }
        let command = shell_command("shell", &json!({"command": "ls", "workdir": "/w"})).unwrap();
        assert_eq!(command.cwd.as_deref(), Some("/w"));
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
}
