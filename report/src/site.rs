//! What views know about the report: the names of its pages, the cases that have one, and the run files.

use camino::Utf8Path;
use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, Verdict};
use counterproof_artifact::{CaseId, Run, RunId, Sha256Digest, Side, Sides};
use counterproof_evaluator::SideRuns;
use counterproof_store::write::INDEX_FILE;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::files::{CopyFailures, FileRef, PageNames, RunFiles};
use super::folder;
use super::view::verdict;

/// Characters of a name that differs between comparisons.
const NAME_CHARS: usize = 16;

/// What views know about the report. It is read-only and shared between threads.
#[derive(Debug)]
pub(crate) struct Site<'a> {
    /// The name of the comparison, under which the browser stores marks: the same for every report of the same runs.
    pub(crate) name: String,
    pub(crate) pages: PageNames,
    pub(crate) selection: PageSelection,
    pub(crate) failures: CopyFailures,
    /// The page of the history that includes the report, as a link that starts in the folder of the report; `None` without one.
    pub(crate) history: Option<String>,
    /// The runs of both sides; `None` where the report is made from the evaluation alone.
    runs: Option<Sides<SideFiles<'a>>>,
}

#[derive(Debug)]
struct SideFiles<'a> {
    document: &'a Run,
    files: Vec<RunFiles<'a>>,
}

impl<'a> SideFiles<'a> {
    fn new(side: Side, runs: &'a SideRuns) -> Self {
        Self { document: runs.first().reader().run(), files: RunFiles::of_side(side, runs) }
    }
}

impl<'a> Site<'a> {
    /// The site of a report with run folders. Every case has a page.
    pub(crate) fn with_runs(ids: Vec<CaseId>, baseline: &'a SideRuns, new: &'a SideRuns) -> Self {
        let runs = Sides { baseline: SideFiles::new(Side::Baseline, baseline), new: SideFiles::new(Side::New, new) };
        let name = name([runs.baseline.document, runs.new.document].map(|run| (&run.run_id, &run.generated_at)));
        Self { selection: PageSelection::All, runs: Some(runs), ..Self::new(name, ids) }
    }

    /// The site of a report without run folders. No case has a page.
    pub(crate) fn without_runs(ids: Vec<CaseId>, evaluation: &Evaluation) -> Self {
        let runs = [&evaluation.baseline, &evaluation.new];
        Self::new(name(runs.map(|run| (&run.run_id, &run.generated_at))), ids)
    }

    fn new(name: String, ids: Vec<CaseId>) -> Self {
        Self {
            name,
            pages: PageNames::new(ids),
            // Pages of cases need the artifacts, which only the run folders have.
            selection: PageSelection::None,
            failures: CopyFailures::default(),
            history: None,
            runs: None,
        }
    }

    /// The files of each run of a side; empty without run folders.
    pub(crate) fn files(&self, side: Side) -> &[RunFiles<'a>] {
        self.runs.as_ref().map_or(&[], |runs| &runs.get(side).files)
    }

    /// The document of the first run of each side, where the run folders are known.
    pub(crate) fn documents(&self) -> Option<Sides<&'a Run>> {
        self.runs.as_ref().map(|runs| runs.as_ref().map(|side| side.document))
    }

    /// The link to an element of the page of the history, relative to the report folder.
    pub(crate) fn in_history(&self, anchor: &str) -> Option<String> {
        self.history.as_ref().map(|history| format!("{history}#{}", encode_path(anchor)))
    }

    pub(crate) fn run_files(&self) -> Vec<(Side, FileRef)> {
        let of_side =
            |side: Side| self.files(side).iter().map(move |files| (side, self.failures.apply(files.run().clone())));
        Side::BOTH.into_iter().flat_map(of_side).collect()
    }

    pub(crate) fn case_page(&self, id: &CaseId) -> String {
        folder::case_page(self.pages.stem(id))
    }

    /// The link to the page of a case, relative to the report folder; `None` for a case without a page.
    pub(crate) fn case_href(&self, case: &CaseEvaluation) -> Option<String> {
        self.selection.includes(case.verdict).then(|| encode_path(&self.case_page(&case.case_id)))
    }
}

/// The id of a case within the page of a history.
pub(crate) fn case_anchor(id: &CaseId) -> String {
    format!("case-{id}")
}

/// The id of a night within the page of a history, given the run that was compared as new.
pub(crate) fn night_anchor(run: &str) -> String {
    format!("night-{run}")
}

/// Which cases get a page. The index lists every case and links to the pages that exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageSelection {
    #[default]
    All,
    /// All cases except those that are unchanged or noisy.
    Changed,
    None,
}

/// With more cases, only those that changed get a page by default: a folder of many thousand files is slow to copy.
const CASES_WITH_PAGES: usize = 500;

impl PageSelection {
    /// The default for a number of cases.
    pub const fn of_cases(cases: usize) -> Self {
        if cases > CASES_WITH_PAGES { PageSelection::Changed } else { PageSelection::All }
    }

    pub const fn includes(self, verdict: Verdict) -> bool {
        match self {
            PageSelection::All => true,
            PageSelection::Changed => !verdict::is_quiet(verdict),
            PageSelection::None => false,
        }
    }
}

/// The name of a comparison of two runs, given their ids and start times.
fn name(runs: [(&RunId, &String); 2]) -> String {
    let runs = runs.map(|(id, generated_at)| format!("{id}\n{generated_at}\n")).concat();
    Sha256Digest::from_bytes(runs.as_bytes()).to_string().chars().take(NAME_CHARS).collect()
}

/// Everything except letters, digits, slashes and the other unreserved characters of RFC 3986, section 2.3.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Returns a relative path as it appears in a link.
pub fn encode_path(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

/// The link to the history next to a folder of pages, where there is one.
pub(crate) fn history_of(out: &Utf8Path) -> Option<String> {
    page_next_to(out, "history")
}

/// The link to the page in another folder next to a folder of pages, where there is one.
pub(crate) fn page_next_to(out: &Utf8Path, folder: &str) -> Option<String> {
    let page = format!("{folder}/{INDEX_FILE}");
    out.parent()?.join(&page).is_file().then(|| format!("../{page}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_unreserved_characters_and_slashes_is_encoded() {
        assert_eq!(encode_path("cases/t[a,1]~@=+é #?%.html"), "cases/t%5Ba%2C1%5D~%40%3D%2B%C3%A9%20%23%3F%25.html");
    }
}
