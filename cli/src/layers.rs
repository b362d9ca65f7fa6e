//! The sources of option values: the command line, then the environment, then the configuration file, then the default.
//!
//! The values of the environment and of the file become the defaults of the options before the command line is parsed, so
//! that every option is validated in one place. A value that conflicts with one of a higher source is dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::{OsStr, OsString};
use std::num::ParseIntError;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use counterproof_artifact::Side;
use counterproof_runner::{Header, Protocol};
use counterproof_validation::nearest;

use crate::command_error::CommandError;
use crate::config::Config;
use crate::config_file::{ConfigFile, InvalidConfig, Leaf};
use crate::resume_command::TypedOptions;
use crate::side_table::SideTables;

/// The keys of `[run]`. Each is the option of `check` with dashes instead of underscores.
pub(crate) const RUN_KEYS: [&str; 27] = [
    "cases",
    "out",
    "report",
    "timeout",
    "connect_timeout",
    "first_byte_timeout",
    "idle_timeout",
    "concurrency",
    "rate",
    "retries",
    "retry_budget",
    "retry_on",
    "confirm",
    "repeat",
    "confirm_max",
    "fail_fast",
    "max_failed",
    "max_cost",
    "max_tokens",
    "allow_unknown_usage",
    "strict",
    "strict_wire",
    "watch_path",
    "max_body_bytes",
    "max_answer_bytes",
    "pages",
    "report_url",
];

/// Keys of `[run]` that are paths, relative to the folder of the file.
const PATHS: [&str; 4] = ["cases", "out", "report", "watch_path"];

/// Keys of a side that are options too.
const SIDE_OPTIONS: [(&str, &str); 4] =
    [("base_url", "base-url"), ("command", "agent-cmd"), ("protocol", "protocol"), ("model", "model")];

/// The commands that read `[run]`, and whether they read the tables of a side.
const COMMANDS: [(&str, bool); 8] = [
    ("run", true),
    ("check", true),
    ("try", true),
    ("show", true),
    ("compare", false),
    ("accept", false),
    ("mutate", false),
    ("calibrate", false),
];

/// Where the value of an option is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag { option: String },
    Environment { variable: String },
    File { path: String, line: usize },
    Default,
}

/// The configuration, and the origins of the options of a command.
#[derive(Debug)]
pub(crate) struct Layers {
    pub(crate) file: ConfigFile,
    pub(crate) config: Config,
    /// The side that the options about the agent are for.
    pub(crate) side: Side,
    /// The options that were typed, for a command to print.
    pub(crate) typed: TypedOptions,
    /// By the id of the option. Options with their default are absent.
    origins: BTreeMap<String, Origin>,
    /// The values of each option as texts, by its id. Options without one are absent.
    values: BTreeMap<String, Vec<String>>,
}

impl Default for Layers {
    fn default() -> Self {
        Self {
            file: ConfigFile::default(),
            config: Config::default(),
            side: Side::New,
            typed: TypedOptions::default(),
            origins: BTreeMap::new(),
            values: BTreeMap::new(),
        }
    }
}

impl Layers {
    /// Returns the origin of an option, by its id.
    pub(crate) fn origin(&self, id: &str) -> &Origin {
        self.origins.get(id).unwrap_or(&Origin::Default)
    }

    /// Returns the value of an option as text; empty if it has none.
    pub(crate) fn value(&self, id: &str) -> String {
        self.all(id).join(",")
    }

    /// Returns the values of an option as texts.
    pub(crate) fn all(&self, id: &str) -> &[String] {
        self.values.get(id).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns whether the option was typed or set by the environment.
    pub(crate) fn is_overridden(&self, id: &str) -> bool {
        matches!(self.origin(id), Origin::Flag { .. } | Origin::Environment { .. })
    }
}

/// Makes no option required, for a first look at the command line: a lower source may have the value.
pub(crate) fn relaxed(command: Command) -> Command {
    command.mut_args(|argument| argument.required(false)).mut_subcommands(relaxed)
}

/// Adds the values of the environment and of the configuration to a command. `typed` are the matches of the command line
/// alone. `check` is the command with all options of `[run]`.
pub(crate) fn apply(root: Command, typed: &ArgMatches, check: &Command) -> Result<(Command, Layers), CommandError> {
    let (names, matches) = leaf_of(typed);
    let Some(command) = names.iter().try_fold(&root, |command, name| command.find_subcommand(name)).cloned() else {
        return Ok((root, Layers::default()));
    };
    let mut builder = Builder { matches, command, origins: typed_origins(&root, &names, matches) };
    builder.environment()?;
    let mut layers = Layers::default();
    let is_of_sides = COMMANDS.iter().find(|(name, _)| names.last().is_some_and(|last| last == name));
    // Other systems have commands of the same name, such as `contract run`.
    let is_own = names.len() == 1 || names.first().is_some_and(|name| name == "config");
    if let Some((_, reads_sides)) = is_of_sides.filter(|_| is_own) {
        let named = builder.value("config").or_else(|| env_value("config"));
        let file = ConfigFile::read(named.as_deref().map(|path| path.to_str().unwrap_or_default().into()))?;
        validate_run(&file, check).map_err(|error| error.into_command_error(&file.path, &file.text))?;
        layers.config = Config::of_file(&file)?;
        builder.run_table(&file);
        if *reads_sides {
            let side = builder.value("side").and_then(|side| side.to_str()?.parse().ok()).unwrap_or(Side::New);
            builder.side_table(&file, side, &layers.config.side);
            layers.side = side;
        }
        layers.file = file;
    }
    layers.values = builder.values();
    layers.origins = builder.origins;
    let command = replace(root, &names, &builder.command);
    Ok((command, layers))
}

fn leaf_of(matches: &ArgMatches) -> (Vec<String>, &ArgMatches) {
    let (mut names, mut matches) = (Vec::new(), matches);
    while let Some((name, inner)) = matches.subcommand() {
        names.push(name.to_owned());
        matches = inner;
    }
    (names, matches)
}

fn replace(root: Command, names: &[String], leaf: &Command) -> Command {
    match names {
        [] => leaf.clone(),
        [name, rest @ ..] => root.mut_subcommand(name, |inner| replace(inner, rest, leaf)),
    }
}

fn typed_origins(root: &Command, names: &[String], matches: &ArgMatches) -> BTreeMap<String, Origin> {
    let Some(command) = names.iter().try_fold(root, |command, name| command.find_subcommand(name)) else {
        return BTreeMap::new();
    };
    let origin = |argument: &Arg| {
        let id = argument.get_id().as_str();
        matches.try_contains_id(id).ok()?;
        Some((
            id.to_owned(),
            match matches.value_source(id)? {
                ValueSource::CommandLine => Origin::Flag { option: argument.get_long().unwrap_or(id).to_owned() },
                ValueSource::EnvVariable => {
                    Origin::Environment { variable: argument.get_env()?.to_string_lossy().into_owned() }
                }
                _ => return None,
            },
        ))
    };
    command.get_arguments().filter_map(origin).collect()
}

/// Returns the variable of an option.
fn variable(long: &str) -> String {
    format!("COUNTERPROOF_{}", long.replace('-', "_").to_uppercase())
}

/// Returns the value of the variable of an option. An empty variable counts as unset.
fn env_value(long: &str) -> Option<OsString> {
    env::var_os(variable(long)).filter(|value| !value.is_empty())
}

struct Builder<'m> {
    matches: &'m ArgMatches,
    command: Command,
    origins: BTreeMap<String, Origin>,
}

impl Builder<'_> {
    /// Returns the value of an option so far, by its id.
    fn value(&self, id: &str) -> Option<OsString> {
        if let Some(mut raw) = self.matches.try_get_raw(id).ok().flatten() {
            return raw.next().map(OsStr::to_owned);
        }
        // A lower source may have set it.
        let argument = self.command.get_arguments().find(|argument| argument.get_id() == id)?;
        argument.get_default_values().first().map(clap::builder::OsStr::to_os_string)
    }

    fn values(&self) -> BTreeMap<String, Vec<String>> {
        let text = |argument: &Arg| {
            let id = argument.get_id().as_str();
            let typed = matches!(self.origins.get(id), Some(Origin::Flag { .. }));
            let raw = typed.then(|| self.matches.try_get_raw(id).ok().flatten()).flatten();
            let values: Vec<_> = match raw {
                Some(raw) => raw.map(|value| value.to_string_lossy().into_owned()).collect(),
                None => {
                    argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect()
                }
            };
            let is_switch = matches!(argument.get_action(), ArgAction::SetTrue);
            let values = if values.is_empty() && is_switch { vec![typed.to_string()] } else { values };
            (!values.is_empty()).then(|| (id.to_owned(), values))
        };
        self.command.get_arguments().filter_map(text).collect()
    }

    fn environment(&mut self) -> Result<(), CommandError> {
        let options: Vec<Arg> =
            self.command.get_arguments().filter(|argument| argument.get_env().is_none()).cloned().collect();
        for argument in options {
            let Some(long) = argument.get_long() else { continue };
            let Some(value) = env_value(long).filter(|_| !is_built_in(&argument)) else { continue };
            let name = variable(long);
            let origin = Origin::Environment { variable: name.clone() };
            let values: Vec<OsString> = if takes_list(&argument) {
                let text = value.to_string_lossy();
                text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(OsString::from).collect()
            } else {
                vec![value]
            };
            for value in &values {
                check_value(&argument, value).map_err(|problem| {
                    CommandError::usage(format!("invalid value in the environment variable `{name}`: {problem}"))
                        .hint(format!("correct or unset `{name}`"))
                })?;
            }
            self.set(&argument, values, origin);
        }
        Ok(())
    }

    fn run_table(&mut self, file: &ConfigFile) {
        for key in RUN_KEYS {
            let Some(leaf) = file.leaf(&format!("run.{key}")) else { continue };
            let long = key.replace('_', "-");
            // In `compare` and the commands after it, `--out` is the report, and `--runs` the folder of the runs.
            let has_runs = self.command.get_arguments().any(|argument| argument.get_long() == Some("runs"));
            let long = match key {
                "out" if has_runs => "runs",
                "report" if has_runs => "out",
                _ => long.as_str(),
            };
            self.set_from_file(file, long, leaf, PATHS.contains(&key));
        }
    }

    fn side_table(&mut self, file: &ConfigFile, side: Side, tables: &SideTables) {
        for (key, long) in SIDE_OPTIONS {
            if let Some(leaf) = side_leaf(file, side, tables, key) {
                self.set_from_file(file, long, leaf, false);
            }
        }
        let table = tables.get(side);
        let protocol = self.command.get_arguments().find(|it| it.get_long() == Some("protocol")).cloned();
        if let (Some(argument), true) = (protocol, table.http.is_some()) {
            let is_mapping = |leaf: &&Leaf| leaf.key.starts_with("side.") && leaf.key.contains(".http.");
            let line = file.leaves.iter().find(is_mapping).map_or(1, |leaf| leaf.line);
            let origin = Origin::File { path: file.path.to_string(), line };
            // Without an effect if a higher source, or the table itself, has a protocol.
            self.set(&argument, vec![Protocol::Http.as_str().into()], origin);
        }
        let headers = table.headers;
        let typed = self.command.get_arguments().find(|argument| argument.get_long() == Some("header")).cloned();
        if let (Some(argument), false) = (typed, headers.is_empty()) {
            let values = headers.iter().map(|(name, value)| Header::text(name, value).expose().into()).collect();
            let line = file.leaves.iter().find(|leaf| leaf.key.contains(".headers.")).map_or(1, |leaf| leaf.line);
            self.set(&argument, values, Origin::File { path: file.path.to_string(), line });
        }
    }

    /// Returns whether a value of the environment or the file applies to this call of a command. `run` confirms new only, and
    /// repeats only what it does not confirm: a file is for the runs of both sides.
    fn applies(&self, id: &str) -> bool {
        let is_run = self.command.get_name() == "run";
        let is_baseline = self.value("side").is_some_and(|side| side == "baseline");
        match id {
            "confirm" | "confirm_max" => !is_run || !is_baseline,
            "repeat" => !is_run || is_baseline || !self.origins.contains_key("confirm"),
            _ => true,
        }
    }

    fn set_from_file(&mut self, file: &ConfigFile, long: &str, leaf: &Leaf, is_path: bool) {
        let argument = self.command.get_arguments().find(|argument| argument.get_long() == Some(long)).cloned();
        let Some(argument) = argument else { return };
        let folder = file.path.parent().filter(|folder| is_path && !folder.as_str().is_empty());
        let value = |text: &String| folder.map_or_else(|| text.into(), |folder| folder.join(text).into_os_string());
        let values = leaf.values.iter().map(value).collect();
        self.set(&argument, values, Origin::File { path: file.path.to_string(), line: leaf.line });
    }

    /// Makes the values the default of an option, unless a higher source has this option or one that excludes it.
    fn set(&mut self, argument: &Arg, values: Vec<OsString>, origin: Origin) {
        let id = argument.get_id().as_str();
        let excluded: BTreeSet<&str> =
            self.command.get_arg_conflicts_with(argument).iter().map(|other| other.get_id().as_str()).collect();
        let excludes = |other: &Arg| {
            self.command.get_arg_conflicts_with(other).iter().any(|excluded| excluded.get_id() == argument.get_id())
        };
        let is_higher = |other: &&Arg| {
            let other_id = other.get_id().as_str();
            self.origins.get(other_id).is_some_and(|set| rank(set) > rank(&origin))
                && (excluded.contains(other_id) || excludes(other))
        };
        let is_set = self.origins.contains_key(id);
        if is_set || !self.applies(id) || self.command.get_arguments().any(|other| is_higher(&other)) {
            return;
        }
        let is_off = matches!(argument.get_action(), ArgAction::SetTrue)
            && values.iter().all(|value| boolean(value) != Some(true));
        let values: Vec<OsString> = if matches!(argument.get_action(), ArgAction::SetTrue) {
            if is_off { Vec::new() } else { vec!["true".into()] }
        } else {
            values
        };
        if !values.is_empty() {
            let id = id.to_owned();
            let command = std::mem::take(&mut self.command);
            self.command = command.mut_arg(&id, |argument| {
                argument.required(false).default_values(values.iter().map(clap::builder::OsStr::from))
            });
        }
        self.origins.insert(id.to_owned(), origin);
    }
}

fn rank(origin: &Origin) -> u8 {
    match origin {
        Origin::Flag { .. } => 3,
        Origin::Environment { .. } => 2,
        Origin::File { .. } => 1,
        Origin::Default => 0,
    }
}

/// Returns the value of a key of a side, from its own table or from the one that it inherits.
pub(crate) fn side_leaf<'f>(file: &'f ConfigFile, side: Side, tables: &SideTables, key: &str) -> Option<&'f Leaf> {
    let inherited = || {
        let inherits = side == Side::Baseline && tables.baseline_inherits(key);
        inherits.then(|| file.leaf(&format!("side.new.{key}"))).flatten()
    };
    file.leaf(&format!("side.{side}.{key}")).or_else(inherited)
}

fn is_built_in(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version)
}

fn takes_list(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Append)
        || argument.get_num_args().is_some_and(|range| range.max_values() > 1)
}

fn boolean(value: &OsStr) -> Option<bool> {
    match value.to_str()?.to_ascii_lowercase().as_str() {
        "1" | "true" => Some(true),
        "0" | "false" => Some(false),
        _ => None,
    }
}

/// Validates a value with the parser of its option. The message does not quote the value, which may be a secret.
fn check_value(argument: &Arg, value: &OsStr) -> Result<(), String> {
    if matches!(argument.get_action(), ArgAction::SetTrue) {
        return boolean(value).map(drop).ok_or_else(|| "expected `1`, `true`, `0` or `false`".to_owned());
    }
    // A command that takes the one option alone: the parser of an option is private to it.
    let probe = Command::new("value")
        .no_binary_name(true)
        .disable_help_flag(true)
        .arg(Arg::new("value").value_parser(argument.get_value_parser().clone()).allow_hyphen_values(true).num_args(1));
    match probe.try_get_matches_from([value]) {
        Ok(_) => Ok(()),
        Err(error) => Err(std::error::Error::source(&error).map_or_else(
            || match argument.get_possible_values().as_slice() {
                [] => "expected another value".to_owned(),
                values => {
                    let names: Vec<_> = values.iter().map(|value| format!("`{}`", value.get_name())).collect();
                    format!("expected {}", names.join(", "))
                }
            },
            // The parsers of numbers do not name what they expect.
            |problem| match problem.to_string() {
                text if problem.is::<ParseIntError>() || text.contains(" is not in ") => {
                    format!("{text}; expected a whole number of zero or more")
                }
                text => text,
            },
        )),
    }
}

/// Validates `[run]`: its keys, and each value with the parser of its option.
pub(crate) fn validate_run(file: &ConfigFile, check: &Command) -> Result<(), InvalidConfig> {
    for leaf in file.leaves.iter().filter(|leaf| leaf.key == "run" || leaf.key.starts_with("run.")) {
        let key = leaf.key.trim_start_matches("run").trim_start_matches('.');
        let problem = |message: String| InvalidConfig { message, span: Some(leaf.span.clone()) };
        if !RUN_KEYS.contains(&key) {
            let remedy = nearest(key, &RUN_KEYS).map_or_else(
                || format!("expected one of {}", RUN_KEYS.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            return Err(problem(if leaf.key == "run" {
                "`run`: expected a table".to_owned()
            } else {
                format!("unknown key `run.{key}`; {remedy}")
            }));
        }
        let long = key.replace('_', "-");
        let Some(argument) = check.get_arguments().find(|argument| argument.get_long() == Some(&long)) else {
            continue;
        };
        let is_switch = matches!(argument.get_action(), ArgAction::SetTrue);
        if is_switch != leaf.is_switch {
            let expected = if is_switch { "`true` or `false`" } else { "a text or a number" };
            return Err(problem(format!("`run.{key}`: expected {expected}")));
        }
        if PATHS.contains(&key) && !leaf.is_text {
            return Err(problem(format!("`run.{key}`: expected a path in quotes")));
        }
        if leaf.values.len() != 1 && !takes_list(argument) {
            return Err(problem(format!("`run.{key}`: expected one value")));
        }
        if leaf.values.is_empty() {
            return Err(problem(format!(
                "`run.{key}`: the list is empty; expected a value, or no key for the default"
            )));
        }
        for value in &leaf.values {
            check_value(argument, OsStr::new(value)).map_err(|message| problem(format!("`run.{key}`: {message}")))?;
        }
    }
    Ok(())
}
