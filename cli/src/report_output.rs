//! What the commands that write a report share: the selection of case pages, and the mapping of report errors.

use counterproof_report::{PageSelection, ReportError};

use crate::command_error::CommandError;

/// Values of `--pages`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Pages {
    /// Every case
    All,
    /// Cases with a verdict other than unchanged and noisy
    Changed,
    /// No case: only the index page and the exports
    None,
}

impl From<Pages> for PageSelection {
    fn from(pages: Pages) -> Self {
        match pages {
            Pages::All => PageSelection::All,
            Pages::Changed => PageSelection::Changed,
            Pages::None => PageSelection::None,
        }
    }
}

/// What to do if another process is writing to the output folder.
pub(crate) const WAIT_OR_CHOOSE: &str = "wait until it ends, or choose another folder with `--out`";

/// Maps an error of the report to an exit code and a hint.
pub(crate) fn report_error(error: ReportError) -> CommandError {
    match error {
        ReportError::NotAReport(_) | ReportError::RunInside { .. } => {
            CommandError::usage(error).hint("choose another folder with `--out`")
        }
        ReportError::Busy(_) => CommandError::usage(error).hint(WAIT_OR_CHOOSE),
        ReportError::Read(_) | ReportError::Folder { .. } | ReportError::Write(_) | ReportError::Render { .. } => {
            CommandError::io(error)
        }
    }
}
