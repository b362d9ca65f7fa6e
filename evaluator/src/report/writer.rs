//! The report, written while the comparison goes on: one page a case from any thread, the index at the end.

use std::io;
use std::sync::{Mutex, PoisonError};

use askama::Template;
use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::{Evaluation, Verdict};
use counterproof_artifact::{CaseId, Run, Side};
use counterproof_store::write::{self, Durability, WriteError};
use counterproof_store::{EVALUATION_FILE, ReadError};

use super::beside::{self, Surroundings};
use super::case_page::CasePage;
use super::files::{FileLink, RunFiles};
use super::folder::{self, CASES_FOLDER, INDEX_FILE};
use super::index::IndexPage;
use super::lists;
use super::moved;
use super::names::{self, Pages};
use super::neighbours::{Placed, Waiting};
use super::search;
use super::verdicts;
use crate::comparison::{self, CaseComparison, Request};
use crate::load::SideRuns;

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
    pub const fn includes(self, verdict: Verdict) -> bool {
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
    /// The run documents of both sides; `None` where the report is made of the evaluation alone.
    documents: Option<[&'a Run; 2]>,
    baseline_files: Vec<RunFiles<'a>>,
    new_files: Vec<RunFiles<'a>>,
    pub(super) pages: Pages,
    pub(super) selection: PageSelection,
    /// The verdicts, where they were known before; otherwise empty.
    verdicts: Vec<Verdict>,
    /// Pages whose neighbours are not known yet, where not every case has one.
    waiting: Option<Mutex<Waiting<Box<CasePage>>>>,
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
        let ids = comparison::pair(&request.baseline, &request.new)?;
        Self::of_runs(out, [&request.baseline, &request.new], ids)
    }

    /// Starts the report of a comparison that was made before, with the runs that it was made of.
    pub fn again(
        out: &Utf8Path,
        evaluation: &Evaluation,
        baseline: &'a SideRuns,
        new: &'a SideRuns,
    ) -> Result<Self, ReportError> {
        let verdicts = evaluation.cases.iter().map(|case| case.verdict).collect();
        Ok(Self { verdicts, ..Self::of_runs(out, [baseline, new], case_ids(evaluation))? })
    }

    /// Starts the report of a comparison that was made before, without its runs: there is nothing to make the cases' pages of.
    pub fn of_evaluation(out: &Utf8Path, evaluation: &Evaluation) -> Result<Self, ReportError> {
        folder::refuse_foreign(out)?;
        folder::prepare(out)?;
        Ok(Self {
            documents: None,
            baseline_files: Vec::new(),
            new_files: Vec::new(),
            pages: Pages::of(case_ids(evaluation)),
            selection: PageSelection::None,
            verdicts: Vec::new(),
            waiting: None,
            out: out.to_owned(),
        })
    }

    fn of_runs(out: &Utf8Path, [baseline, new]: [&'a SideRuns; 2], ids: Vec<CaseId>) -> Result<Self, ReportError> {
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
            documents: Some([baseline, new].map(|runs| runs.first().reader().run())),
            baseline_files,
            new_files,
            pages: Pages::of(ids),
            selection: PageSelection::All,
            verdicts: Vec::new(),
            waiting: None,
            out: out.to_owned(),
        })
    }

    /// Writes pages for some cases only.
    #[must_use]
    pub fn with_pages(self, selection: PageSelection) -> Self {
        let mut waiting = Waiting::of(self.pages.count());
        for (index, verdict) in self.verdicts.iter().enumerate() {
            if !selection.includes(*verdict) {
                waiting.decide(index, None);
            }
        }
        let waiting = (selection == PageSelection::Changed).then(|| Mutex::new(waiting));
        Self { selection, waiting, ..self }
    }

    /// Writes the page of a case and copies what it links to, if the case gets a page. Where not every case gets one, the
    /// page is written once it is known which of its neighbours do.
    pub fn write_case(&self, case: &CaseComparison<'_>) -> Result<(), ReportError> {
        let has_page = self.selection.includes(case.row.verdict);
        let page = has_page.then(|| CasePage::of(self, case).map(Box::new)).transpose()?;
        let Some(waiting) = &self.waiting else {
            let placed = |page| Placed {
                index: case.index,
                previous: case.index.checked_sub(1),
                next: case.index.checked_add(1),
                page,
            };
            return page.map_or(Ok(()), |page| self.write_placed(placed(page)));
        };
        let ready = waiting.lock().unwrap_or_else(PoisonError::into_inner).decide(case.index, page);
        ready.into_iter().try_for_each(|placed| self.write_placed(placed))
    }

    fn write_placed(&self, placed: Placed<Box<CasePage>>) -> Result<(), ReportError> {
        let neighbour = |index: Option<usize>| {
            let id = self.pages.at(index?)?;
            Some(format!("{}.html", names::encode_path(self.pages.stem(id))))
        };
        let Some(id) = self.pages.at(placed.index) else { return Ok(()) };
        let page = placed.page.between(neighbour(placed.previous), neighbour(placed.next));
        self.write_page(&self.case_page(id), &page)
    }

    /// Writes the index, the lists, `evaluation.json` and what else stands beside the pages, and returns the page to open.
    pub fn finish(&self, evaluation: &Evaluation) -> Result<Utf8PathBuf, ReportError> {
        self.finish_within(evaluation, &Surroundings::default())
    }

    /// The same, and the files beside the pages say where the report and the cases are.
    pub fn finish_within(
        &self,
        evaluation: &Evaluation,
        surroundings: &Surroundings,
    ) -> Result<Utf8PathBuf, ReportError> {
        write::write_json(&self.out.join(EVALUATION_FILE), evaluation, Durability::Synced)?;
        self.finish_pages(evaluation, surroundings)
    }

    /// The same for an evaluation that was read from `bytes`, which are kept as they are.
    pub fn finish_again(
        &self,
        evaluation: &Evaluation,
        bytes: &[u8],
        surroundings: &Surroundings,
    ) -> Result<Utf8PathBuf, ReportError> {
        write::write(&self.out.join(EVALUATION_FILE), bytes, Durability::Synced)?;
        self.finish_pages(evaluation, surroundings)
    }

    fn finish_pages(&self, evaluation: &Evaluation, surroundings: &Surroundings) -> Result<Utf8PathBuf, ReportError> {
        if let Some(waiting) = &self.waiting {
            let rest = waiting.lock().unwrap_or_else(PoisonError::into_inner).rest();
            rest.into_iter().try_for_each(|placed| self.write_placed(placed))?;
        }
        beside::write(&self.out, evaluation, surroundings, self.selection)?;
        let groups = moved::groups(evaluation);
        lists::write(self, evaluation, &groups)?;
        search::write(self, evaluation)?;
        self.write_page(INDEX_FILE, &IndexPage::of(self, evaluation, &groups)?)?;
        Ok(self.out.join(INDEX_FILE))
    }

    /// The files of each run of a side.
    pub(super) fn files(&self, side: Side) -> &[RunFiles<'a>] {
        match side {
            Side::Baseline => &self.baseline_files,
            Side::New => &self.new_files,
        }
    }

    /// The run documents of both sides, where the runs are there.
    pub(super) const fn documents(&self) -> Option<[&'a Run; 2]> {
        self.documents
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

    /// Where the report goes.
    pub(super) fn out(&self) -> &Utf8Path {
        &self.out
    }

    /// Writes a page.
    pub(super) fn write_page(&self, page: &str, template: &impl Template) -> Result<(), ReportError> {
        let html = template.render().map_err(|source| ReportError::Render { page: page.to_owned(), source })?;
        Ok(write::write(&self.out.join(page), html.as_bytes(), Durability::Cached)?)
    }
}

fn case_ids(evaluation: &Evaluation) -> Vec<CaseId> {
    evaluation.cases.iter().map(|case| case.case_id.clone()).collect()
}

fn is_inside(folder: &Utf8Path, out: &Utf8Path) -> bool {
    match (folder.canonicalize_utf8(), out.canonicalize_utf8()) {
        (Ok(folder), Ok(out)) => folder.starts_with(out),
        _ => false,
    }
}
