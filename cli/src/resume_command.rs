//! The command line that resumes a run: the typed options with `--resume`, without secrets, and the quoting for a shell.

use std::borrow::Cow;

use camino::Utf8Path;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use counterproof_runner::{BaseUrl, Secret};

/// Options that `--resume` replaces.
const REPLACED: [&str; 2] = ["run-id", "resume"];

/// The options of a subcommand that were typed, each with its values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TypedOptions {
    program: String,
    /// Names without dashes, with their quoted values.
    options: Vec<(String, Vec<String>)>,
}

impl TypedOptions {
    /// Collects the typed options of the subcommand `command`. Defaults are left out.
    pub(crate) fn new(command: &Command, matches: &ArgMatches) -> Self {
        let mut options = Vec::new();
        for argument in command.get_arguments() {
            let id = argument.get_id().as_str();
            let (Some(name), Ok(Some(_))) = (argument.get_long(), matches.try_get_raw(id)) else { continue };
            // Variables of the environment apply to the next command as well.
            if matches.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            // The value's type decides what is secret, so that a secret option added later is masked as well.
            let values = match matches.try_get_many::<Secret>(id) {
                Ok(secrets) => secrets.into_iter().flatten().map(masked).collect(),
                Err(_) if !argument.get_action().takes_values() => Vec::new(),
                Err(_) => {
                    let values = matches.get_raw(id).into_iter().flatten();
                    values.map(|value| quoted(&value.to_string_lossy()).into_owned()).collect::<Vec<_>>()
                }
            };
            options.push((name.to_owned(), values));
        }
        Self { program: format!("counterproof {}", command.get_name()), options }
    }

    /// Returns the command line that resumes the run `id` with the same options.
    pub(crate) fn resume_command(&self, id: &str) -> String {
        self.command_with(&format!("--resume {}", quoted(id)), &REPLACED)
    }

    /// Returns the command line with the same options except those in `replaced`, and with `first` before them.
    pub(crate) fn command_with(&self, first: &str, replaced: &[&str]) -> String {
        let mut words = vec![self.program.clone(), first.to_owned()];
        for (name, values) in self.options.iter().filter(|(name, _)| !replaced.contains(&name.as_str())) {
            if values.is_empty() {
                words.push(format!("--{name}"));
            }
            words.extend(values.iter().map(|value| format!("--{name} {value}")));
        }
        words.join(" ")
    }
}

/// Masks a secret, except for the parts that identify it: the URL without credentials, the header's name, or the name of an
/// environment variable.
fn masked(secret: &Secret) -> String {
    let text = secret.expose();
    if let Ok(url) = text.parse::<BaseUrl>() {
        return quoted(url.recorded()).into_owned();
    }
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    match text.split_once(':').filter(|(name, _)| is_name(name)) {
        Some((_, value)) if value.trim().starts_with("env:") => quoted(text).into_owned(),
        Some((name, _)) => quoted(&format!("{name}:…")).into_owned(),
        None => quoted("…").into_owned(),
    }
}

/// Quotes a word for a POSIX shell, if it needs quotes.
pub(crate) fn quoted(word: &str) -> Cow<'_, str> {
    shell_words::quote(word)
}

/// Quotes a path that is an argument of a printed command. A path that looks like an option gets `./` in front.
pub(crate) fn path(path: &Utf8Path) -> String {
    let prefix = if path.as_str().starts_with('-') { "./" } else { "" };
    quoted(&format!("{prefix}{path}")).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    #[command(name = "run")]
    struct Line {
        #[arg(long)]
        cases: String,
        #[arg(long, default_value = "http://localhost:8787")]
        base_url: Secret,
        #[arg(long = "header")]
        headers: Vec<Secret>,
        #[arg(long)]
        agent_cmd: Option<Secret>,
        #[arg(long)]
        run_id: Option<String>,
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
        #[arg(long)]
        fast: bool,
    }

    fn resume(line: &[&str]) -> String {
        let command = Line::command();
        let typed = command.clone().get_matches_from(["run"].iter().chain(line));
        TypedOptions::new(&command, &typed).resume_command("r1")
    }

    #[test]
    fn typed_options_are_repeated_without_the_run_id() {
        let command_line = resume(&["--run-id", "r1", "--cases", "my cases.json", "--only", "a,b", "--fast"]);
        assert_eq!(command_line, "counterproof run --resume r1 --cases 'my cases.json' --only a --only b --fast");
    }

    #[test]
    fn secrets_are_omitted() {
        let header = ["--header", "x-key:s3cret", "--header", "authorization:env:TOKEN"];
        let url = ["--cases", "c", "--base-url", "http://u:s3cret@agent/?k=s3cret"];
        let command = ["--agent-cmd", "agent --key s3cret --at http://localhost:1"];
        let command_line = resume(&[&header[..], &url, &command].concat());
        assert!(!command_line.contains("s3cret"), "{command_line}");
        assert!(command_line.contains("--header x-key:… --header authorization:env:TOKEN"), "{command_line}");
    }

    #[test]
    fn paths_are_single_words_and_no_options() {
        let quoted = ["runs/new/r1", "my runs/$1", "--out"].map(|listed| path(Utf8Path::new(listed)));
        assert_eq!(quoted, ["runs/new/r1", "'my runs/$1'", "./--out"]);
    }
}
