//! The report, written while the comparison goes on: one page a case from any thread, the index at the end.

use std::io;

use askama::Template;
use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::{Evaluation, Verdict};
use counterproof_artifact::store::{EVALUATION_FILE, ReadError};
use counterproof_artifact::write::{self, Durability, WriteError};
use counterproof_artifact::{CaseId, Side};

use super::case_page::CasePage;
use super::files::{FileLink, RunFiles};
use super::folder::{self, CASES_FOLDER, INDEX_FILE};
use super::index::IndexPage;
use super::names::Pages;
use super::verdicts;
use crate::comparison::{self, CaseComparison, Request};
use crate::runs::SideRuns;

/// Which cases get a page of their own; the index lists every case, and links to the pages that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageSelection {
    /// Every case.
    #[default]
    All,
    /// The cases that moved: all but those that are unchanged or differ by noise alone.
    Changed,
    /// None.
    None,
}

impl PageSelection {
    /// True where a case with this verdict gets a page.
    pub(super) const fn includes(self, verdict: Verdict) -> bool {
        match self {
            PageSelection::All => true,
            PageSelection::Changed => !verdicts::is_quiet(verdict),
            PageSelection::None => false,
        }
    }
}

/// A report under construction. It can be shared between threads.
#[derive(Debug)]
pub struct ReportWriter<'a> {
    pub(super) baseline: &'a SideRuns,
    pub(super) new: &'a SideRuns,
    baseline_files: Vec<RunFiles<'a>>,
    new_files: Vec<RunFiles<'a>>,
    pub(super) pages: Pages,
    pub(super) selection: PageSelection,
    out: Utf8PathBuf,
}

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A run folder could not be listed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The folder holds something that this program did not write.
    #[error("`{0}` is there already and is not a report, so nothing was written there")]
    NotAReport(Utf8PathBuf),
    /// What is to be compared would be cleared away with the report that is there.
    #[error("the run `{run}` lies in the report folder `{out}`, which is to be written again")]
    RunInside {
        /// The run folder.
        run: Utf8PathBuf,
        /// The report's folder.
        out: Utf8PathBuf,
    },
    /// An earlier report could not be cleared away.
    #[error("failed to clear `{path}`")]
    Folder {
        /// The file or folder.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A page could not be rendered.
    #[error("failed to render `{page}`")]
    Render {
        /// The page, within the report.
        page: String,
        /// What the template engine said.
        source: askama::Error,
    },
}

impl<'a> ReportWriter<'a> {
    /// Starts the report of a comparison in the folder `out`: made if it is not there, cleared if it holds a report.
    pub fn create(out: &Utf8Path, request: &'a Request<'_>) -> Result<Self, ReportError> {
        let (baseline, new) = (&request.baseline, &request.new);
        let ids = comparison::pair(baseline, new)?;
        folder::refuse_foreign(out)?;
        for run in baseline.iter().chain(new.iter()) {
            let run = run.reader().folder();
            if is_inside(run, out) {
                return Err(ReportError::RunInside { run: run.to_owned(), out: out.to_owned() });
            }
        }
        folder::prepare(out)?;
        let baseline_files = RunFiles::of_side(Side::Baseline, baseline, out);
        let new_files = RunFiles::of_side(Side::New, new, out);
        // Every page links to these: copied before the threads start, no two of them copy the same file at once.
        for files in baseline_files.iter().chain(&new_files) {
            files.run()?;
        }
        Ok(Self {
            baseline,
            new,
            baseline_files,
            new_files,
            pages: Pages::of(ids),
            selection: PageSelection::All,
            out: out.to_owned(),
        })
    }

    /// Writes pages for some cases only.
    #[must_use]
    pub fn with_pages(self, selection: PageSelection) -> Self {
        Self { selection, ..self }
    }

    /// Writes the page of a case and copies what it links to, if the case gets a page.
    pub fn write_case(&self, case: &CaseComparison<'_>) -> Result<(), ReportError> {
        if !self.selection.includes(case.row.verdict) {
            return Ok(());
        }
        let page = CasePage::of(self, case)?;
        self.write_page(&self.case_page(&case.row.case_id), &page)
    }

    /// Writes the index and `evaluation.json`, and returns the page to open.
    pub fn finish(&self, evaluation: &Evaluation) -> Result<Utf8PathBuf, ReportError> {
        write::write_json(&self.out.join(EVALUATION_FILE), evaluation, Durability::Synced)?;
        self.write_page(INDEX_FILE, &IndexPage::of(self, evaluation)?)?;
        Ok(self.out.join(INDEX_FILE))
    }

    /// The files of each run of a side.
    pub(super) fn files(&self, side: Side) -> &[RunFiles<'a>] {
        match side {
            Side::Baseline => &self.baseline_files,
            Side::New => &self.new_files,
        }
    }

    /// Links to the run documents of both sides.
    pub(super) fn run_links(&self) -> Result<Vec<(&'static str, FileLink)>, ReportError> {
        let of_side = |side: Side| self.files(side).iter().map(move |files| Ok((side.as_str(), files.run()?)));
        Side::BOTH.into_iter().flat_map(of_side).collect()
    }

    /// The page of a case, relative to the report's folder.
    pub(super) fn case_page(&self, id: &CaseId) -> String {
        format!("{CASES_FOLDER}/{}.html", self.pages.stem(id))
    }

    fn write_page(&self, page: &str, template: &impl Template) -> Result<(), ReportError> {
        let html = template.render().map_err(|source| ReportError::Render { page: page.to_owned(), source })?;
        Ok(write::write(&self.out.join(page), html.as_bytes(), Durability::Cached)?)
    }
}

fn is_inside(folder: &Utf8Path, out: &Utf8Path) -> bool {
    match (folder.canonicalize_utf8(), out.canonicalize_utf8()) {
        (Ok(folder), Ok(out)) => folder.starts_with(out),
        _ => false,
    }
}
