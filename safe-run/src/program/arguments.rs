//! What was typed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Invocation {
    Help,
    Version,
    /// Nothing was typed.
    Nothing,
    Run(Run),
    Check(OsString),
    Archive(Archive),
}

/// A command to be run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) command: Vec<OsString>,
    pub(super) events: Option<PathBuf>,
    pub(super) terminal: bool,
    pub(super) grace: Option<Duration>,
    pub(super) drain: Option<Duration>,
}

/// A folder to be packed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Archive {
    pub(super) no_clobber: bool,
    pub(super) source: PathBuf,
    pub(super) destination: PathBuf,
}

/// What was typed cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum UsageError {
    #[error("usage: safe-run run <command> [args...]")]
    NoCommand,
    #[error("usage: safe-run check <command>")]
    NoCheck,
    #[error("usage: safe-run archive [--no-clobber] <source> <destination>")]
    NoArchive,
    #[error("safe-run: unknown option `{0}`\n  hint: a command that begins with a hyphen stands behind `--`")]
    Unknown(String),
    #[error("safe-run: `{0}` needs a value")]
    NoValue(&'static str),
    #[error("safe-run: `{option}` takes seconds, such as 2 or 0.5, and not `{value}`")]
    NoSeconds { option: &'static str, value: String },
}

/// Reads the arguments, without the program's own name.
pub(super) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Invocation, UsageError> {
    let mut arguments = arguments.peekable();
    let Some(first) = arguments.peek() else { return Ok(Invocation::Nothing) };
    match first.to_str() {
        Some("--version" | "-V") => return Ok(Invocation::Version),
        Some("--help" | "-h") => return Ok(Invocation::Help),
        Some("check") => return check(arguments.skip(1)),
        Some("archive") => return archive(arguments.skip(1)),
        _ => {}
    }
    let mut run = Run::default();
    // The word stands before the command at most once: `run run` runs a program called run.
    let mut may_say_run = true;
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("run") if may_say_run => may_say_run = false,
            Some("--") => break,
            Some("--help" | "-h") => return Ok(Invocation::Help),
            Some("--version") => return Ok(Invocation::Version),
            Some("--pty") => run.terminal = true,
            Some("--events") => run.events = Some(value("--events", &mut arguments)?.into()),
            Some("--grace") => run.grace = Some(seconds("--grace", &mut arguments)?),
            Some("--drain") => run.drain = Some(seconds("--drain", &mut arguments)?),
            Some(option) if option.starts_with('-') && option != "-" => {
                return Err(UsageError::Unknown(option.to_owned()));
            }
            _ => {
                run.command.push(argument);
                break;
            }
        }
    }
    run.command.extend(arguments);
    if run.command.is_empty() { Err(UsageError::NoCommand) } else { Ok(Invocation::Run(run)) }
}

fn value(option: &'static str, arguments: &mut impl Iterator<Item = OsString>) -> Result<OsString, UsageError> {
    arguments.next().ok_or(UsageError::NoValue(option))
}

fn seconds(option: &'static str, arguments: &mut impl Iterator<Item = OsString>) -> Result<Duration, UsageError> {
    let value = value(option, arguments)?;
    let seconds = value.to_str().and_then(|text| text.parse().ok());
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    // More than a year is for ever, and for ever has to be added to the time of day.
    let duration = duration.filter(|duration| duration.as_secs() < 366 * 24 * 3600);
    duration.ok_or_else(|| UsageError::NoSeconds { option, value: value.to_string_lossy().into_owned() })
}

fn check(mut arguments: impl Iterator<Item = OsString>) -> Result<Invocation, UsageError> {
    let first = arguments.next().filter(|argument| argument != "--").or_else(|| arguments.next());
    match (first, arguments.next()) {
        (Some(command), None) => Ok(Invocation::Check(command)),
        _ => Err(UsageError::NoCheck),
    }
}

fn archive(arguments: impl Iterator<Item = OsString>) -> Result<Invocation, UsageError> {
    let (mut no_clobber, mut paths) = (false, Vec::new());
    let mut options = true;
    for argument in arguments {
        match argument.to_str().filter(|_| options) {
            Some("--no-clobber") => no_clobber = true,
            Some("--") => options = false,
            Some(option) if option.starts_with("--") => return Err(UsageError::Unknown(option.to_owned())),
            _ => paths.push(PathBuf::from(argument)),
        }
    }
    match <[PathBuf; 2]>::try_from(paths) {
        Ok([source, destination]) => Ok(Invocation::Archive(Archive { no_clobber, source, destination })),
        Err(_) => Err(UsageError::NoArchive),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Invocation, UsageError> {
        parse(line.split_whitespace().map(OsString::from))
    }

    fn command(words: &[&str]) -> Invocation {
        Invocation::Run(Run { command: words.iter().map(OsString::from).collect(), ..Run::default() })
    }

    #[test]
    fn the_word_run_and_the_two_hyphens_may_be_left_out() {
        for line in ["echo -n --", "run echo -n --", "-- echo -n --", "run -- echo -n --"] {
            assert_eq!(parsed(line), Ok(command(&["echo", "-n", "--"])), "{line}");
        }
        assert_eq!(parsed("-- run"), Ok(command(&["run"])));
        assert_eq!(parsed("run run x"), Ok(command(&["run", "x"])));
        assert_eq!(parsed("run check ls"), Ok(command(&["check", "ls"])));
        assert_eq!(parsed("-- --pty"), Ok(command(&["--pty"])));
    }

    #[test]
    fn options_stand_before_the_command_and_nowhere_else() {
        let expected = Run {
            command: vec!["ls".into(), "--pty".into()],
            events: Some("e.jsonl".into()),
            grace: Some(Duration::from_millis(500)),
            ..Run::default()
        };
        assert_eq!(parsed("--events e.jsonl run --grace 0.5 ls --pty"), Ok(Invocation::Run(expected)));
        assert_eq!(parsed("-x ls"), Err(UsageError::Unknown("-x".to_owned())));
        assert_eq!(parsed("--events"), Err(UsageError::NoValue("--events")));
        for value in ["soon", "-1", "inf", "NaN", "1e300"] {
            let error = UsageError::NoSeconds { option: "--drain", value: value.to_owned() };
            assert_eq!(parsed(&format!("--drain {value} ls")), Err(error));
        }
    }

    #[test]
    fn what_is_missing_is_told() {
        assert_eq!(parsed(""), Ok(Invocation::Nothing));
        for line in ["run", "--", "run --", "--pty"] {
            assert_eq!(parsed(line), Err(UsageError::NoCommand), "{line}");
        }
        assert_eq!(parsed("check"), Err(UsageError::NoCheck));
        assert_eq!(parsed("check a b"), Err(UsageError::NoCheck));
        assert_eq!(parsed("archive a"), Err(UsageError::NoArchive));
        assert_eq!(parsed("check -- ls"), Ok(Invocation::Check("ls".into())));
    }
}
