//! Expands the commands that vectors name instead of writing them out. The scripts are for a POSIX shell.

use super::error::TemplateError;
use crate::vectors::VectorCommand;

/// The variable with the path of the file that a command creates when it is ready for a signal.
pub(super) const READY_VARIABLE: &str = "CONFORMANCE_READY";

/// A script that a template requires in the folder of the trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TemplateFile {
    pub(super) path: String,
    /// The permission bits.
    pub(super) mode: u32,
}

/// Returns the arguments of a command and the file that it needs.
pub(super) fn expand(command: &VectorCommand) -> Result<(Vec<String>, Option<TemplateFile>), TemplateError> {
    match (&command.args, command.args_template.as_deref()) {
        (Some(args), None) => Ok((args.clone(), None)),
        (None, Some(template)) => expand_template(template, command),
        (None, None) => Err(TemplateError::NoArguments),
        (Some(_), Some(_)) => Err(TemplateError::AmbiguousArguments),
    }
}

fn expand_template(
    template: &str,
    command: &VectorCommand,
) -> Result<(Vec<String>, Option<TemplateFile>), TemplateError> {
    let script = |script: String| Ok((vec!["sh".to_owned(), "-c".to_owned(), script], None));
    let code = command.exit_code.unwrap_or(0);
    match template {
        "simple_fail" => script(format!("exit {code}")),
        "long_running" => script(format!(": > \"${READY_VARIABLE}\"; exec sleep 300")),
        "multiline_output" => {
            let lines = command.output_lines.iter().flatten().map(|line| print(line, ""));
            script(format!("{}exit {code}", lines.collect::<String>()))
        }
        "print_and_exit" => {
            let out = command.print_stdout.as_deref().map(|text| print(text, "")).unwrap_or_default();
            let err = command.print_stderr.as_deref().map(|text| print(text, " >&2")).unwrap_or_default();
            // The pause keeps the order of the two streams observable on every system.
            script(format!("{out}sleep 0.1; {err}exit {code}"))
        }
        "create_executable_script" => {
            let field = FieldOf { template: "create_executable_script" };
            let path = field.required("script_path", command.script_path.as_ref())?;
            let args = field.required("check_args", command.check_args.as_ref())?;
            Ok((args, Some(TemplateFile { path, mode: 0o755 })))
        }
        "create_non_executable_file" => {
            let field = FieldOf { template: "create_non_executable_file" };
            let path = field.required("file_path", command.file_path.as_ref())?;
            let args = field.required("check_args", command.check_args.as_ref())?;
            Ok((args, Some(TemplateFile { path, mode: 0o644 })))
        }
        unknown => Err(TemplateError::Unknown(unknown.to_owned())),
    }
}

/// Returns a shell command that prints a line.
///
/// The text is always quoted, also where `shell_words` would leave it bare: the script is in the log of the command, and golden
/// outputs contain it.
fn print(text: &str, redirection: &str) -> String {
    format!("printf '%s\\n' '{}'{redirection}; ", text.replace('\'', r"'\''"))
}

/// Access to the fields that a template requires.
struct FieldOf {
    template: &'static str,
}

impl FieldOf {
    fn required<T: Clone>(&self, field: &'static str, value: Option<&T>) -> Result<T, TemplateError> {
        value.cloned().ok_or(TemplateError::MissingField { template: self.template, field })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(name: &str) -> VectorCommand {
        VectorCommand { args_template: Some(name.to_owned()), exit_code: Some(7), ..VectorCommand::default() }
    }

    fn script(command: &VectorCommand) -> String {
        let (arguments, file) = expand(command).unwrap();
        assert_eq!((&arguments[..2], file), (&["sh".to_owned(), "-c".to_owned()][..], None));
        arguments[2].clone()
    }

    #[test]
    fn arguments_are_used_as_they_are() {
        let args = vec!["echo".to_owned(), "a b".to_owned()];
        let command = VectorCommand { args: Some(args.clone()), ..VectorCommand::default() };
        assert_eq!(expand(&command), Ok((args, None)));
    }

    #[test]
    fn each_template_becomes_a_script() {
        assert_eq!(script(&template("simple_fail")), "exit 7");
        assert_eq!(script(&template("long_running")), ": > \"$CONFORMANCE_READY\"; exec sleep 300");
        let lines = Some(vec!["L1".to_owned(), "it's".to_owned()]);
        let command = VectorCommand { output_lines: lines, ..template("multiline_output") };
        assert_eq!(script(&command), r"printf '%s\n' 'L1'; printf '%s\n' 'it'\''s'; exit 7");
        let (print_stdout, print_stderr) = (Some("OUT".to_owned()), Some("ERR".to_owned()));
        let command = VectorCommand { print_stdout, print_stderr, ..template("print_and_exit") };
        assert_eq!(script(&command), r"printf '%s\n' 'OUT'; sleep 0.1; printf '%s\n' 'ERR' >&2; exit 7");
    }

    #[test]
    fn a_template_can_require_a_file() {
        let check_args = Some(vec!["./file".to_owned()]);
        let path = Some("file".to_owned());
        let executable = VectorCommand {
            check_args: check_args.clone(),
            script_path: path.clone(),
            ..template("create_executable_script")
        };
        let plain = VectorCommand { check_args, file_path: path, ..template("create_non_executable_file") };
        for (command, mode) in [(executable, 0o755), (plain, 0o644)] {
            let file = TemplateFile { path: "file".to_owned(), mode };
            assert_eq!(expand(&command), Ok((vec!["./file".to_owned()], Some(file))));
        }
    }

    #[test]
    fn a_command_that_cannot_be_expanded_is_an_error() {
        assert_eq!(expand(&VectorCommand::default()), Err(TemplateError::NoArguments));
        let both = VectorCommand { args: Some(Vec::new()), ..template("simple_fail") };
        assert_eq!(expand(&both), Err(TemplateError::AmbiguousArguments));
        assert_eq!(expand(&template("dance")), Err(TemplateError::Unknown("dance".to_owned())));
        let missing = TemplateError::MissingField { template: "create_executable_script", field: "script_path" };
        assert_eq!(expand(&template("create_executable_script")), Err(missing));
    }
}
