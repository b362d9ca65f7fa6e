//! The files that a page links to, copied into the report so that the folder is whole by itself.
//!
//! A link is followed as the contract follows it, so nothing from outside of the run folder is copied. What cannot be
//! copied is shown as missing: a report of a broken run is still a report.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{CaseId, Href, PROGRAM, Side};
use counterproof_store::confined_path;
use counterproof_store::write::{self, Durability};

use super::names;
use super::shown;
use super::writer::ReportError;
use crate::load::ComparedRun;
use crate::load::SideRuns;

/// The folder of the copies, within the report.
pub(super) const ARTIFACTS_FOLDER: &str = "artifacts";

/// A link to a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileLink {
    /// What the run calls the file.
    pub(super) name: String,
    /// The copy, relative to the report's folder and percent-encoded; `None` where there is none.
    pub(super) href: Option<String>,
    /// Why there is no copy; empty where there is one.
    pub(super) missing: String,
}

/// The files of one run.
#[derive(Debug)]
pub(super) struct RunFiles<'a> {
    /// Where the copies go, within the folder of all copies.
    folder: String,
    run_folder: &'a Utf8Path,
    asks_program: bool,
    out: Utf8PathBuf,
}

impl<'a> RunFiles<'a> {
    /// Files of every run of a side, to be copied into the report in `out`: each run into a folder of its own.
    pub(super) fn of_side(side: Side, runs: &'a SideRuns, out: &Utf8Path) -> Vec<Self> {
        let folder = |index: usize| if runs.is_repeated() { format!("{side}-{}", index + 1) } else { side.to_string() };
        let files = |(index, run): (usize, &'a ComparedRun)| Self {
            folder: folder(index),
            run_folder: run.reader().folder(),
            asks_program: run.reader().run().base_url.starts_with(PROGRAM),
            out: out.to_owned(),
        };
        runs.iter().enumerate().map(files).collect()
    }

    /// Where the run is.
    pub(super) const fn run_folder(&self) -> &Utf8Path {
        self.run_folder
    }

    /// True where the run has asked a program and no server.
    pub(super) const fn asks_program(&self) -> bool {
        self.asks_program
    }

    /// The artifact of a case, copied under the name of the case's page.
    pub(super) fn artifact(&self, case_id: &CaseId, stem: &str) -> Result<FileLink, ReportError> {
        self.named(&format!("{case_id}.json"), Some(format!("{stem}.json")))
    }

    /// Where the copy of a case's artifact goes, within the report.
    pub(super) fn artifact_path(&self, stem: &str) -> String {
        format!("{ARTIFACTS_FOLDER}/{}/{stem}.json", self.folder)
    }

    /// The run document.
    pub(super) fn run(&self) -> Result<FileLink, ReportError> {
        self.named(counterproof_store::RUN_FILE, None)
    }

    /// A file that a document of the run names by a text that may be no link at all.
    pub(super) fn asset(&self, name: &str) -> Result<FileLink, ReportError> {
        self.named(name, None)
    }

    fn named(&self, name: &str, copy_name: Option<String>) -> Result<FileLink, ReportError> {
        let missing = |why: &str| FileLink { name: shown::visible(name), href: None, missing: why.to_owned() };
        let Ok(href) = name.parse::<Href>() else { return Ok(missing("not a link within the run folder")) };
        let Ok(source) = confined_path::resolve(self.run_folder, href.as_str()) else {
            return Ok(missing("not there"));
        };
        let copy_name = copy_name.unwrap_or_else(|| names::copy_name(&href));
        let place = format!("{ARTIFACTS_FOLDER}/{}/{copy_name}", self.folder);
        let target = self.out.join(&place);
        // The folder was empty when the report began: what is there now is this very file.
        if !target.exists() {
            if let Some(folder) = target.parent() {
                write::create_folder(folder)?;
            }
            match write::copy(&source, &target, Durability::Cached) {
                Err(error) if error.path == source => return Ok(missing("not readable")),
                copied => copied?,
            }
        }
        Ok(FileLink { name: shown::visible(name), href: Some(names::encode_path(&place)), missing: String::new() })
    }
}
