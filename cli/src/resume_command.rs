//! A command line, said again: the options that were typed, as a line that a shell takes. Secrets are left out of it.

use clap::{ArgMatches, Command, parser::ValueSource};
use counterproof_runner::{BaseUrl, Secret};

/// The options of a subcommand that were typed, each with its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Retold {
    start: String,
    /// Names without dashes, with their values.
    options: Vec<(String, Vec<String>)>,
}

impl Retold {
    /// Reads what was typed for the subcommand `command`.
    pub(crate) fn of(command: &Command, typed: &ArgMatches) -> Self {
        let mut options = Vec::new();
        for argument in command.get_arguments() {
            let id = argument.get_id().as_str();
            let (Some(name), Ok(Some(_))) = (argument.get_long(), typed.try_get_raw(id)) else { continue };
            if typed.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            // The type says what is secret, so that an option of tomorrow is not given away.
            let values = match typed.try_get_many::<Secret>(id) {
                Ok(secrets) => secrets.into_iter().flatten().map(without_secret).collect(),
                Err(_) if !argument.get_action().takes_values() => Vec::new(),
                Err(_) => typed
                    .get_raw(id)
                    .into_iter()
                    .flatten()
                    .map(|value| quoted(&value.to_string_lossy()))
                    .collect::<Vec<_>>(),
            };
            options.push((name.to_owned(), values));
        }
        Self { start: format!("counterproof {}", command.get_name()), options }
    }

    /// The line without some of its options, and with another in front.
    pub(crate) fn with(&self, first: &str, without: &[&str]) -> String {
        let mut words = vec![self.start.clone(), first.to_owned()];
        for (name, values) in self.options.iter().filter(|(name, _)| !without.contains(&name.as_str())) {
            if values.is_empty() {
                words.push(format!("--{name}"));
            }
            words.extend(values.iter().map(|value| format!("--{name} {value}")));
        }
        words.join(" ")
    }
}

/// A secret as far as it may be shown: where it comes from, or what it is for.
fn without_secret(secret: &Secret) -> String {
    let text = secret.expose();
    if let Ok(url) = text.parse::<BaseUrl>() {
        return quoted(url.recorded());
    }
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    match text.split_once(':').filter(|(name, _)| is_name(name)) {
        Some((_, value)) if value.trim().starts_with("env:") => quoted(text),
        Some((name, _)) => quoted(&format!("{name}:…")),
        None => quoted("…"),
    }
}

/// A word as a POSIX shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

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

    fn again(line: &[&str]) -> String {
        let command = Line::command();
        let typed = command.clone().get_matches_from(["run"].iter().chain(line));
        Retold::of(&command, &typed).with("--resume r1", &["run-id"])
    }

    #[test]
    fn what_was_typed_is_said_again() {
        let said = again(&["--run-id", "r1", "--cases", "my cases.json", "--only", "a,b", "--fast"]);
        assert_eq!(said, "counterproof run --resume r1 --cases 'my cases.json' --only a --only b --fast");
    }

    #[test]
    fn secrets_are_left_out() {
        let header = ["--header", "x-key:s3cret", "--header", "authorization:env:TOKEN"];
        let url = ["--cases", "c", "--base-url", "http://u:s3cret@agent/?k=s3cret"];
        let command = ["--agent-cmd", "agent --key s3cret --at http://localhost:1"];
        let said = again(&[&header[..], &url, &command].concat());
        assert!(!said.contains("s3cret"), "{said}");
        assert!(said.contains("--header 'x-key:…' --header authorization:env:TOKEN"), "{said}");
    }
}
