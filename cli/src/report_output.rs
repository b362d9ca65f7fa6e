//! What the commands that write a report share: the selection of case pages, the context of the report, and its errors.

use std::env;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::{Evaluation, Verdict};
use counterproof_report::{CaseLocation, Copies, PageSelection, ReportContext, ReportError, ReportUrl, ReportWriter};

use crate::command_error::CommandError;

/// What is written of a report besides its index.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ReportFiles {
    /// Cases that get a page in the report [default: all; above 500 cases, changed]
    #[arg(help_heading = "Output", long, value_enum, value_name = "WHICH")]
    pub(crate) pages: Option<Pages>,

    /// Also write OUT.html next to the report: the index and the worst 200 cases in one file of at most 20 MB
    #[arg(help_heading = "Output", long)]
    pub(crate) single_file: bool,

    /// Also write the report as one archive next to it
    #[arg(help_heading = "Output", long, value_enum, value_name = "FORMAT")]
    pub(crate) archive: Option<Archive>,

    /// Folder of the history page that the report links, which may be written later [default: history next to the report, if it
    /// exists]
    #[arg(help_heading = "Output", long, value_name = "DIR", conflicts_with = "archive")]
    pub(crate) history: Option<Utf8PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Archive {
    /// OUT.zip
    Zip,
}

impl ReportFiles {
    /// The selection of pages for a number of cases.
    pub(crate) fn pages(&self, cases: usize) -> PageSelection {
        self.pages.map_or_else(|| PageSelection::of_cases(cases), PageSelection::from)
    }

    /// The report with its copies, and with the link to its history.
    pub(crate) fn apply<'a>(&self, report: ReportWriter<'a>) -> Result<ReportWriter<'a>, CommandError> {
        let report = report.with_copies(Copies { html: self.single_file, zip: self.archive.is_some() });
        match &self.history {
            Some(folder) => report.with_history(folder).map_err(report_error),
            None => Ok(report),
        }
    }
}

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

/// Maps an error of a report or a history to an exit code and a hint.
pub(crate) fn report_error(error: ReportError) -> CommandError {
    match error {
        ReportError::Foreign { .. } | ReportError::RunInside { .. } => {
            CommandError::usage(error).hint("choose another folder with `--out`")
        }
        ReportError::History { .. } => {
            CommandError::usage(error).hint("name a folder outside of the report with `--history`")
        }
        ReportError::Busy { .. } => CommandError::usage(error).hint(WAIT_OR_CHOOSE),
        _ => CommandError::io(error),
    }
}

/// Size limit of a cases file whose case lines are looked up.
const MAX_CASES_BYTES: usize = 16 * 1024 * 1024;

/// Collects the context of a report.
pub(crate) fn report_context(
    evaluation: &Evaluation,
    cases: Option<&Utf8Path>,
    report_url: Option<&ReportUrl>,
) -> ReportContext {
    // Lines of cases are looked up only if an export names a case: the lookup reads the cases file again.
    let is_exported = |verdict| !matches!(verdict, Verdict::Unchanged | Verdict::Noisy);
    let any_exported = evaluation.cases.iter().any(|case| is_exported(case.verdict) || !case.findings.is_empty());
    let places = cases.filter(|_| any_exported).and_then(|path| {
        let root = env::current_dir().ok().and_then(|folder| Utf8PathBuf::from_path_buf(folder).ok())?;
        // Read errors were reported when the cases were loaded.
        let places = counterproof_cases::locate(path, MAX_CASES_BYTES).ok()?;
        let place = |place: counterproof_cases::CaseLocation| {
            Some((place.id, CaseLocation { file: repository_path(&place.file, &root)?, line: place.line }))
        };
        Some(places.into_iter().filter_map(place).collect())
    });
    ReportContext { report_url: report_url.cloned(), case_locations: places.unwrap_or_default() }
}

/// Converts a path to the form that code hosts use: relative to the working folder, with forward slashes. Returns `None` for
/// paths outside of it.
fn repository_path(path: &Utf8Path, root: &Utf8Path) -> Option<String> {
    let path = if path.is_absolute() { path.strip_prefix(root).ok()? } else { path };
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Utf8Component::Normal(part) => parts.push(part),
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir | Utf8Component::RootDir | Utf8Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_working_folder_have_a_repository_path() {
        let root = Utf8Path::new("/checkouts/repo");
        for (path, expected) in [
            ("cases.json", Some("cases.json")),
            ("./a/./cases.json", Some("a/cases.json")),
            ("/checkouts/repo/a/cases.json", Some("a/cases.json")),
            ("/checkouts/repository/cases.json", None),
            ("../cases.json", None),
            ("a/../../cases.json", None),
        ] {
            assert_eq!(repository_path(Utf8Path::new(path), root).as_deref(), expected, "{path}");
        }
    }
}
