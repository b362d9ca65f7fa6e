//! Errors in the command line.

use super::help::{ARCHIVE_OPTIONS, COMMON_OPTIONS, OptionHelp, RUN_OPTIONS};

/// The least similarity (Jaro, 0 to 1) at which an option is suggested. clap uses the same limit.
const MIN_SIMILARITY: f64 = 0.7;

/// Invalid arguments. Conformance vectors pin the three `usage:` lines.
#[derive(Debug, thiserror::Error)]
pub(super) enum UsageError {
    /// `run` without a command.
    #[error("usage: safe-run run <command> [args...]")]
    Run,
    /// `check` without a command, or with more than one.
    #[error("usage: safe-run check <command>")]
    Check,
    /// `archive` without exactly two paths.
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

    /// An unknown option of `run`.
    pub(super) fn unknown_run_option(option: String) -> Self {
        Self::unknown_option(option, &RUN_OPTIONS)
    }

    /// An unknown option of `archive`.
    pub(super) fn unknown_archive_option(option: String) -> Self {
        Self::unknown_option(option, &ARCHIVE_OPTIONS)
    }
}
