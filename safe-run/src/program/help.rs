//! The help text, generated from tables of the subcommands, options and environment variables.

use std::fmt::Write as _;

#[derive(Debug)]
pub(super) struct OptionHelp {
    /// The long name without hyphens.
    pub(super) name: &'static str,
    short: Option<char>,
    value: Option<&'static str>,
    help: &'static str,
}

impl OptionHelp {
    const fn new(name: &'static str, value: Option<&'static str>, help: &'static str) -> Self {
        Self { name, short: None, value, help }
    }

    /// Returns the left column: `-h, --help` or `    --events <FILE>`.
    fn usage(&self) -> String {
        let short = self.short.map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
        let value = self.value.map(|value| format!(" <{value}>")).unwrap_or_default();
        format!("{short}--{}{value}", self.name)
    }
}

const COMMANDS: [(&str, &str); 3] = [
    ("run", "Run a command and record it if it fails; the word `run` is optional"),
    ("check", "Check whether a command can be executed: exit code 0, 2 not found, 3 not executable"),
    ("archive", "Pack a folder into a .tar.gz, .tar.bz2 or .zip file"),
];

pub(super) const RUN_OPTIONS: [OptionHelp; 4] = [
    OptionHelp::new("events", Some("FILE"), "Write the events as JSON lines to a new file, also after success"),
    OptionHelp::new("pty", None, "Give the command a terminal, which merges its two output streams"),
    OptionHelp::new("grace", Some("SECONDS"), "Time to exit after a signal before the command is killed [default: 10]"),
    OptionHelp::new("drain", Some("SECONDS"), "Time to wait for open output streams after the exit [default: 2]"),
];

pub(super) const ARCHIVE_OPTIONS: [OptionHelp; 1] =
    [OptionHelp::new("no-clobber", None, "Fail if the destination exists, instead of choosing a numbered name")];

pub(super) const COMMON_OPTIONS: [OptionHelp; 2] = [
    OptionHelp { name: "help", short: Some('h'), value: None, help: "Print help" },
    OptionHelp { name: "version", short: Some('V'), value: None, help: "Print the version and the contract" },
];

const ENVIRONMENT: [(&str, &str); 6] = [
    ("SAFE_LOG_DIR", "Folder for logs of failed commands [default: .agent/FAIL-LOGS]"),
    ("SAFE_RUN_VIEW", "Content of a log: `ledger` or `merged` [default: ledger]"),
    ("SAFE_SNIPPET_LINES", "Number of last output lines to print after a failure [default: 0]"),
    ("SAFE_LOG_STYLE", "`m0` for log names such as 20240115T103000Z-pid42-FAIL.log"),
    ("SAFE_RUN_RECORD_DIR", "Folder that also gets the events of every command, as JSON Lines, even after success"),
    ("SAFE_REDACT", "`1` redacts keys of known formats in records; `NAME,NAME` also the values of these variables"),
];

const EXIT_CODES: [(&str, &str); 4] = [
    ("2", "Invalid arguments"),
    ("125", "The command could not be prepared, or its output could not be written"),
    ("126", "The command cannot be executed"),
    ("127", "The command does not exist"),
];

pub(super) fn help() -> String {
    let options = |options: &[OptionHelp]| section(options.iter().map(|option| (option.usage(), option.help)));
    let named = |rows: &[(&str, &'static str)]| section(rows.iter().map(|(name, help)| ((*name).to_owned(), *help)));
    format!(
        "Run a command unchanged, and record its output if it fails

Usage: safe-run [run] [OPTIONS] [--] <COMMAND> [ARGUMENTS]...
       safe-run check <COMMAND>
       safe-run archive [--no-clobber] <SOURCE> <DESTINATION>

Commands:
{commands}
Options of run:
{run}
Options of archive:
{archive}
Options:
{common}
Environment:
{environment}
Exit codes:
  The exit code is the command's own, or 128 plus the number of the signal that killed it.
{exit_codes}",
        commands = named(&COMMANDS),
        run = options(&RUN_OPTIONS),
        archive = options(&ARCHIVE_OPTIONS),
        common = options(&COMMON_OPTIONS),
        environment = named(&ENVIRONMENT),
        exit_codes = named(&EXIT_CODES),
    )
}

fn section(rows: impl Iterator<Item = (String, &'static str)>) -> String {
    let rows: Vec<_> = rows.collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    rows.iter().fold(String::new(), |mut text, (name, help)| {
        let _ = writeln!(text, "  {name:width$}  {help}");
        text
    })
}
