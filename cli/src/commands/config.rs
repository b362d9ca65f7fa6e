//! `counterproof config show`: prints the values that `check` would use, each with its origin.

use clap::{Args as _, Parser};
use counterproof_artifact::{Exit, Side};
use counterproof_runner::BaseUrl;
use serde_json::json;

use super::check;
use crate::command_error::CommandError;
use crate::layers::{Layers, Origin, RUN_KEYS, side_leaf};
use crate::side_table::KEYS;
use crate::streams::{Streams, to_json};

/// Show the configuration.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Show(Box<ShowArgs>),
}

/// Print each value that `check` would use, with its origin.
///
/// Takes the options of `check`. A value comes from an option, else from the environment (`COUNTERPROOF_<OPTION>`), else from
/// counterproof.toml, else it is the default. Values of headers and of `env` are not printed.
///
/// Exit code 0: done. 2: an option, a variable or the configuration is invalid.
#[derive(Debug, Parser)]
struct ShowArgs {
    #[command(flatten)]
    check: check::Args,
}

/// A value with its origin.
struct Shown {
    key: String,
    value: String,
    origin: Origin,
}

pub(crate) fn run(args: &Args, layers: &Layers, streams: &mut Streams) -> Result<Exit, CommandError> {
    let Command::Show(show) = &args.command;
    let values = values(layers);
    if show.check.prints_json() {
        let values: Vec<_> = values
            .iter()
            .map(|shown| {
                let (origin, source) = described(&shown.origin);
                json!({"key": shown.key, "value": shown.value, "origin": origin, "source": source})
            })
            .collect();
        streams.print_document(&to_json(&json!({"values": values})))?;
        return Ok(Exit::Done);
    }
    let width = |part: fn(&Shown) -> usize| values.iter().map(part).max().unwrap_or_default().min(60);
    let (keys, texts) = (width(|shown| shown.key.len()), width(|shown| shown.value.chars().count()));
    for Shown { key, value, origin } in &values {
        let (origin, source) = described(origin);
        let source = source.map(|source| format!(" {source}")).unwrap_or_default();
        streams.print_line(format_args!("{key:<keys$}  {value:<texts$}  {origin}{source}"))?;
    }
    Ok(Exit::Done)
}

fn described(origin: &Origin) -> (&'static str, Option<String>) {
    match origin {
        Origin::Flag { option } => ("flag", Some(format!("--{option}"))),
        Origin::Environment { variable } => ("environment", Some(variable.clone())),
        Origin::File { path, line } => ("file", Some(format!("{path}:{line}"))),
        Origin::Default => ("default", None),
    }
}

/// Returns the values of `[run]`, of both sides, and of the other tables of the file.
fn values(layers: &Layers) -> Vec<Shown> {
    let all = check::Args::augment_args(clap::Command::new("check"));
    let option = |long: &str| all.get_arguments().find(|argument| argument.get_long() == Some(long));
    let mut values = Vec::new();
    for key in RUN_KEYS {
        let Some(argument) = option(&key.replace('_', "-")) else { continue };
        let id = argument.get_id().as_str();
        values.push(Shown { key: format!("run.{key}"), value: layers.value(id), origin: layers.origin(id).clone() });
    }
    for side in [Side::Baseline, Side::New] {
        for key in KEYS {
            if let Some(shown) = side_value(layers, side, key) {
                values.push(shown);
            }
        }
    }
    let is_other = |key: &str| !key.starts_with("run.") && !key.starts_with("side.");
    values.extend(layers.file.leaves.iter().filter(|leaf| is_other(&leaf.key)).map(|leaf| Shown {
        key: leaf.key.clone(),
        value: if leaf.key.ends_with("].command") {
            shown_value("command", &leaf.values.join(", "))
        } else {
            leaf.values.join(", ")
        },
        origin: Origin::File { path: layers.file.path.to_string(), line: leaf.line },
    }));
    values
}

/// Returns a value of a side without what may be a secret.
fn shown_value(key: &str, value: &str) -> String {
    match key {
        "headers" | "env" => "(not shown)".to_owned(),
        "http" => "(set)".to_owned(),
        "base_url" => without_credentials(value),
        // Arguments may be secrets.
        "command" | "start" | "setup" => match value.split_once(char::is_whitespace) {
            Some((program, _)) => format!("{program} …"),
            None => value.to_owned(),
        },
        _ => value.to_owned(),
    }
}

/// Leaves out the parts of a URL that may be a secret. A URL with `{port}` cannot be parsed, and is shown if it has none.
fn without_credentials(url: &str) -> String {
    match url.parse::<BaseUrl>() {
        Ok(url) => url.recorded().to_owned(),
        Err(_) if url.contains(['@', '?']) => "(not shown)".to_owned(),
        Err(_) => url.to_owned(),
    }
}

fn side_value(layers: &Layers, side: Side, key: &str) -> Option<Shown> {
    let name = format!("side.{side}.{key}");
    let option = match key {
        "command" => "agent_cmd",
        key => key,
    };
    if side == Side::New
        && ["base_url", "agent_cmd", "protocol", "model"].contains(&option)
        && layers.is_overridden(option)
    {
        let value = shown_value(key, &layers.value(option));
        return Some(Shown { key: name, value, origin: layers.origin(option).clone() });
    }
    // Tables, such as `http`, have a leaf for each of their keys.
    let prefix = |side: Side| format!("side.{side}.{key}");
    let tables = &layers.config.side;
    let leaf = side_leaf(&layers.file, side, tables, key).or_else(|| {
        let inherits = side == Side::Baseline && tables.baseline_inherits(key);
        let within = |side: Side| {
            let start = format!("{}.", prefix(side));
            layers.file.leaves.iter().find(|leaf| leaf.key.starts_with(&start))
        };
        within(side).or_else(|| inherits.then(|| within(Side::New)).flatten())
    })?;
    let value = shown_value(key, &leaf.values.join(", "));
    Some(Shown { key: name, value, origin: Origin::File { path: layers.file.path.to_string(), line: leaf.line } })
}
