//! The command line: its meaning, and the errors in it.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use lexopt::{Arg, Parser};

use super::help::{ARCHIVE_OPTIONS, COMMON_OPTIONS, OptionHelp, RUN_OPTIONS};

/// The longest time that an option accepts. A longer one could overflow when it is added to the clock.
const MAX_DURATION: Duration = Duration::from_hours(366 * 24);

pub(super) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Invocation, UsageError> {
    let arguments: Vec<OsString> = arguments.collect();
    match arguments.split_first() {
        // Not an error: people start a program to see what it is.
        None => Ok(Invocation::Banner),
        Some((first, rest)) if first == "check" => parse_check(Parser::from_args(rest)),
        Some((first, rest)) if first == "archive" => parse_archive(Parser::from_args(rest)),
        Some(_) => parse_run(Parser::from_args(arguments)),
    }
}

fn parse_run(mut parser: Parser) -> Result<Invocation, UsageError> {
    let mut run = Run::default();
    // The word `run` is a subcommand once and only before `--`: `run run` and `-- run` execute a program named run.
    let mut accepts_subcommand = true;
    loop {
        if next_is_separator(&mut parser) {
            accepts_subcommand = false;
        }
        match parser.next()? {
            None => break,
            Some(Arg::Short('h') | Arg::Long("help")) => return Ok(Invocation::Help),
            Some(Arg::Short('V') | Arg::Long("version")) => return Ok(Invocation::Version),
            Some(Arg::Long("pty")) => run.terminal = true,
            Some(Arg::Long("events")) => run.events = Some(parser.value()?.into()),
            Some(Arg::Long("grace")) => run.grace = Some(seconds("--grace", &parser.value()?)?),
            Some(Arg::Long("drain")) => run.drain = Some(seconds("--drain", &parser.value()?)?),
            Some(Arg::Value(word)) if accepts_subcommand && word == "run" => accepts_subcommand = false,
            Some(Arg::Value(program)) => {
                // Options after the program belong to it.
                run.command.push(program);
                run.command.extend(parser.raw_args()?);
                break;
            }
            Some(option) => return Err(UsageError::unknown_run_option(name(&option))),
        }
    }
    // Checked after all options, so that an unknown option is reported first.
    if run.command.is_empty() { Err(UsageError::Run) } else { Ok(Invocation::Run(run)) }
}

fn parse_check(mut parser: Parser) -> Result<Invocation, UsageError> {
    let mut commands = Vec::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(Invocation::Help),
            Arg::Short('V') | Arg::Long("version") => return Ok(Invocation::Version),
            Arg::Value(command) => commands.push(command),
            option => return Err(UsageError::unknown_option(name(&option), &[])),
        }
    }
    match <[OsString; 1]>::try_from(commands) {
        Ok([command]) => Ok(Invocation::Check(command)),
        Err(_) => Err(UsageError::Check),
    }
}

fn parse_archive(mut parser: Parser) -> Result<Invocation, UsageError> {
    let (mut no_clobber, mut paths) = (false, Vec::new());
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(Invocation::Help),
            Arg::Short('V') | Arg::Long("version") => return Ok(Invocation::Version),
            Arg::Long("no-clobber") => no_clobber = true,
            Arg::Value(path) => paths.push(PathBuf::from(path)),
            option => return Err(UsageError::unknown_archive_option(name(&option))),
        }
    }
    match <[PathBuf; 2]>::try_from(paths) {
        Ok([source, destination]) => Ok(Invocation::Archive(Archive { no_clobber, source, destination })),
        Err(_) => Err(UsageError::Archive),
    }
}

fn next_is_separator(parser: &mut Parser) -> bool {
    parser.try_raw_args().is_some_and(|arguments| arguments.peek() == Some(OsStr::new("--")))
}

fn name(option: &Arg<'_>) -> String {
    match option {
        Arg::Short(letter) => format!("-{letter}"),
        Arg::Long(name) => format!("--{name}"),
        Arg::Value(value) => value.to_string_lossy().into_owned(),
    }
}

fn seconds(option: &'static str, value: &OsStr) -> Result<Duration, UsageError> {
    let seconds = value.to_str().and_then(|text| text.parse().ok());
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let duration = duration.filter(|duration| *duration < MAX_DURATION);
    duration.ok_or_else(|| UsageError::Seconds { option, value: value.to_string_lossy().into_owned() })
}

/// What the program does.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Invocation {
    Help,
    Version,
    /// There are no arguments: print the version and where to find help.
    Banner,
    Run(Run),
    Check(OsString),
    Archive(Archive),
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) command: Vec<OsString>,
    pub(super) events: Option<PathBuf>,
    pub(super) terminal: bool,
    pub(super) grace: Option<Duration>,
    pub(super) drain: Option<Duration>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Archive {
    pub(super) no_clobber: bool,
    pub(super) source: PathBuf,
    pub(super) destination: PathBuf,
}

/// The least similarity (Jaro, 0 to 1) at which an option is suggested. clap uses the same limit.
const MIN_SIMILARITY: f64 = 0.7;

/// Invalid arguments. Conformance vectors pin the three `usage:` lines.
#[derive(Debug, thiserror::Error)]
pub(super) enum UsageError {
    #[error("usage: safe-run run <command> [args...]")]
    Run,
    #[error("usage: safe-run check <command>")]
    Check,
    #[error("usage: safe-run archive [--no-clobber] <source> <destination>")]
    Archive,
    #[error("safe-run: unknown option `{option}`\n  hint: {hint}")]
    UnknownOption { option: String, hint: String },
    #[error("safe-run: invalid value `{value}` for `{option}`\n  hint: use a number of seconds, such as 2 or 0.5")]
    Seconds { option: &'static str, value: String },
    /// A missing value, or a value for an option that takes none.
    #[error("safe-run: {0}")]
    Syntax(#[from] lexopt::Error),
}

impl UsageError {
    /// An option that neither `options` nor the common options contain.
    pub(super) fn unknown_option(option: String, options: &[OptionHelp]) -> Self {
        let known = options.iter().chain(&COMMON_OPTIONS).map(|option| format!("--{}", option.name));
        let similar = known.map(|name| (strsim::jaro(&option, &name), name));
        let nearest =
            similar.max_by(|(a, _), (b, _)| a.total_cmp(b)).filter(|(similarity, _)| *similarity > MIN_SIMILARITY);
        let hint = match nearest {
            Some((_, name)) => format!("did you mean `{name}`?"),
            None => "put `--` before a command or path that begins with a hyphen".to_owned(),
        };
        UsageError::UnknownOption { option, hint }
    }

    pub(super) fn unknown_run_option(option: String) -> Self {
        Self::unknown_option(option, &RUN_OPTIONS)
    }

    pub(super) fn unknown_archive_option(option: String) -> Self {
        Self::unknown_option(option, &ARCHIVE_OPTIONS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Invocation, String> {
        parse(line.split_whitespace().map(OsString::from)).map_err(|error| error.to_string())
    }

    fn command(words: &[&str]) -> Invocation {
        Invocation::Run(Run { command: words.iter().map(OsString::from).collect(), ..Run::default() })
    }

    #[test]
    fn the_word_run_and_the_two_hyphens_are_optional() {
        for line in ["echo -n --", "run echo -n --", "-- echo -n --", "run -- echo -n --"] {
            assert_eq!(parsed(line), Ok(command(&["echo", "-n", "--"])), "{line}");
        }
        assert_eq!(parsed("-- run"), Ok(command(&["run"])));
        assert_eq!(parsed("--pty -- run").map(|_| ()), Ok(()));
        assert_eq!(parsed("run run x"), Ok(command(&["run", "x"])));
        assert_eq!(parsed("run check ls"), Ok(command(&["check", "ls"])));
        assert_eq!(parsed("-- --pty"), Ok(command(&["--pty"])));
        assert_eq!(parsed("- x"), Ok(command(&["-", "x"])));
    }

    #[test]
    fn options_are_accepted_only_before_the_command() {
        let expected = Run {
            command: vec!["ls".into(), "--pty".into()],
            events: Some("e.jsonl".into()),
            grace: Some(Duration::from_millis(500)),
            ..Run::default()
        };
        assert_eq!(parsed("--events e.jsonl run --grace 0.5 ls --pty"), Ok(Invocation::Run(expected)));
    }

    #[test]
    fn a_value_can_follow_an_equals_sign() {
        assert_eq!(parsed("--events=e.jsonl --drain=1.5 ls"), parsed("--events e.jsonl --drain 1.5 ls"));
        assert_eq!(parsed("--events=--pty ls"), parsed("--events --pty ls"));
    }

    #[test]
    fn help_and_version_are_available_everywhere() {
        for command in ["", "run", "check", "archive"] {
            for (option, expected) in [
                ("-h", Invocation::Help),
                ("--help", Invocation::Help),
                ("-V", Invocation::Version),
                ("--version", Invocation::Version),
            ] {
                assert_eq!(parsed(&format!("{command} {option}")), Ok(expected), "{command} {option}");
            }
        }
        assert_eq!(parsed("ls --help"), Ok(command(&["ls", "--help"])));
        assert_eq!(parsed("check -- --help"), Ok(Invocation::Check("--help".into())));
    }

    #[test]
    fn an_unknown_option_suggests_the_nearest_one_or_the_two_hyphens() {
        for (line, expected) in [
            ("--event e ls", "safe-run: unknown option `--event`\n  hint: did you mean `--events`?"),
            ("archive --noclobber a b", "safe-run: unknown option `--noclobber`\n  hint: did you mean `--no-clobber`?"),
            ("check --verison", "safe-run: unknown option `--verison`\n  hint: did you mean `--version`?"),
            (
                "-x ls",
                "safe-run: unknown option `-x`\n  hint: put `--` before a command or path that begins with a hyphen",
            ),
        ] {
            assert_eq!(parsed(line), Err(expected.to_owned()), "{line}");
        }
    }

    #[test]
    fn an_invalid_value_is_an_error() {
        for value in ["soon", "-1", "inf", "NaN", "1e300"] {
            let expected = format!(
                "safe-run: invalid value `{value}` for `--drain`\n  hint: use a number of seconds, such as 2 or 0.5"
            );
            assert_eq!(parsed(&format!("--drain {value} ls")), Err(expected));
        }
        assert!(parsed("--events").unwrap_err().contains("--events"));
        assert!(parsed("--pty=1 ls").unwrap_err().contains("--pty"));
    }

    #[test]
    fn missing_arguments_are_answered_with_the_usage() {
        assert_eq!(parsed(""), Ok(Invocation::Banner));
        for line in ["run", "--", "run --", "--pty"] {
            assert_eq!(parsed(line), Err(UsageError::Run.to_string()), "{line}");
        }
        assert_eq!(parsed("check"), Err(UsageError::Check.to_string()));
        assert_eq!(parsed("check a b"), Err(UsageError::Check.to_string()));
        assert_eq!(parsed("archive a"), Err(UsageError::Archive.to_string()));
        assert_eq!(parsed("check -- ls"), Ok(Invocation::Check("ls".into())));
    }
}
