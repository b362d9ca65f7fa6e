//! Vectors name some commands instead of writing them out. Here they are, for a POSIX shell.

use crate::vectors::Command;

/// The variable with the path of a file that a command makes when it may be sent a signal.
pub(crate) const READY: &str = "CONFORMANCE_READY";

/// A file that a template asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) is_executable: bool,
}

/// The arguments of a vector's command and the files that it needs.
pub(crate) fn expand(command: &Command) -> Result<(Vec<String>, Option<Asked>), String> {
    let script = |script: String| Ok((vec!["sh".to_owned(), "-c".to_owned(), script], None));
    let code = command.exit_code.unwrap_or(0);
    match (&command.args, command.args_template.as_deref()) {
        (Some(args), None) => Ok((args.clone(), None)),
        (None, Some("simple_fail")) => script(format!("exit {code}")),
        (None, Some("long_running")) => script(format!(": > \"${READY}\"; exec sleep 300")),
        (None, Some("multiline_output")) => {
            let lines = command.output_lines.clone().unwrap_or_default();
            script(format!("{}exit {code}", lines.iter().map(|line| print(line, "")).collect::<String>()))
        }
        (None, Some("print_and_exit")) => {
            let out = command.print_stdout.as_deref().map(|text| print(text, "")).unwrap_or_default();
            let err = command.print_stderr.as_deref().map(|text| print(text, " >&2")).unwrap_or_default();
            // A pause, so that no system can tell the two in the other order.
            script(format!("{out}sleep 0.1; {err}exit {code}"))
        }
        (None, Some("create_executable_script")) => {
            Ok((checked(command)?, Some(Asked { path: named(command.script_path.as_ref())?, is_executable: true })))
        }
        (None, Some("create_non_executable_file")) => {
            Ok((checked(command)?, Some(Asked { path: named(command.file_path.as_ref())?, is_executable: false })))
        }
        (None, Some(template)) => Err(format!("there is no template `{template}`")),
        (None, None) => Err("the command has neither `args` nor `args_template`".to_owned()),
        (Some(_), Some(_)) => Err("the command has `args` and `args_template`".to_owned()),
    }
}

fn print(text: &str, to: &str) -> String {
    format!("printf '%s\\n' '{}'{to}; ", text.replace('\'', r"'\''"))
}

fn checked(command: &Command) -> Result<Vec<String>, String> {
    command.check_args.clone().ok_or_else(|| "the template needs `check_args`".to_owned())
}

fn named(path: Option<&String>) -> Result<String, String> {
    path.cloned().ok_or_else(|| "the template needs a path".to_owned())
}
