//! The report writer. It writes case pages while the comparison runs, from any thread, and the index at the end.

use std::sync::{Mutex, PoisonError};

use askama::Template;
use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::CaseId;
use counterproof_artifact::evaluation::{Evaluation, Verdict};
use counterproof_evaluator::{CaseComparison, Request, decide, other_runs, pair, worst_first};
use counterproof_store::write::{self, Durability, INDEX_FILE, StagedFolder};
use counterproof_store::{EVALUATION_FILE, read_file, relative_path};

use super::case::{self, CasePage, PickerInput, RunPicker};
use super::copies::{self, Copies, SingleFile};
use super::exports::{self, ReportContext};
use super::files::copy_files;
use super::folder;
use super::folder::ReportError;
use super::index::{self, CaseLists, IndexPage, Rows, SuitesPage};
use super::page_queue::{PageQueue, ReadyPage};
use super::site::{PageSelection, Site};
use super::site::{encode_path, history_of};

/// A report under construction. Threads can share it. Until it is finished, the report that is in its folder stays unchanged.
#[derive(Debug)]
pub struct ReportWriter<'a> {
    site: Site<'a>,
    /// The verdicts that are known in advance, by case; empty if none is.
    verdicts: Vec<Option<Verdict>>,
    /// Pages that wait for their neighbours; `None` where every case has a page, so that the neighbours are known.
    queue: Option<Mutex<PageQueue<Box<CasePage>>>>,
    /// What was compared; `None` where the report is made from the evaluation alone.
    request: Option<&'a Request<'a>>,
    /// The folder as the caller named it.
    out: Utf8PathBuf,
    replacement: StagedFolder,
    copies: Copies,
}

impl<'a> ReportWriter<'a> {
    /// Starts the report of a comparison that will be in the folder `out`.
    pub fn create(out: &Utf8Path, request: &'a Request<'a>) -> Result<Self, ReportError> {
        let ids = pair(&request.baseline, &request.new)?;
        Self::start(out, ids, request)
    }

    /// Starts the report of an earlier comparison, with a request for the runs that were compared.
    pub fn with_runs(out: &Utf8Path, evaluation: &Evaluation, request: &'a Request<'a>) -> Result<Self, ReportError> {
        let verdicts = evaluation.cases.iter().map(|case| Some(case.verdict)).collect();
        Ok(Self::start(out, case_ids(evaluation), request)?.with_verdicts(verdicts))
    }

    /// Sets the verdicts that are known in advance, before [`ReportWriter::with_pages`]. Cases that their verdict leaves out are
    /// not waited for.
    #[must_use]
    pub fn with_verdicts(self, verdicts: Vec<Option<Verdict>>) -> Self {
        Self { verdicts, ..self }
    }

    /// Starts the report of an earlier comparison without its runs. Such a report has no case pages.
    pub fn without_runs(out: &Utf8Path, evaluation: &Evaluation) -> Result<Self, ReportError> {
        Self::new(out, Site::without_runs(case_ids(evaluation), evaluation), None)
    }

    fn start(out: &Utf8Path, ids: Vec<CaseId>, request: &'a Request<'a>) -> Result<Self, ReportError> {
        let (baseline, new) = (&request.baseline, &request.new);
        for run in baseline.iter().chain(new.iter()) {
            let run = run.reader().folder();
            // The new report replaces the whole folder, and would delete the run.
            if is_inside(run, out) {
                return Err(ReportError::RunInside { run: run.to_owned(), out: out.to_owned() });
            }
        }
        let mut report = Self::new(out, Site::with_runs(ids, baseline, new), Some(request))?;
        // Every page links to the run documents. Copying them before the threads start avoids concurrent copies.
        let run_files = report.site.run_files().into_iter().filter_map(|(_, file)| file.copy);
        report.site.failures = copy_files(report.replacement.path(), run_files)?;
        Ok(report)
    }

    fn new(out: &Utf8Path, mut site: Site<'a>, request: Option<&'a Request<'a>>) -> Result<Self, ReportError> {
        site.history = history_of(out);
        Ok(Self {
            site,
            verdicts: Vec::new(),
            queue: None,
            request,
            out: out.to_owned(),
            replacement: folder::begin(out)?,
            copies: Copies::default(),
        })
    }

    /// The number of cases.
    pub fn cases(&self) -> usize {
        self.site.pages.count()
    }

    /// Limits the case pages to a selection.
    #[must_use]
    pub fn with_pages(mut self, selection: PageSelection) -> Self {
        let mut queue = PageQueue::new(self.site.pages.count());
        for (index, verdict) in self.verdicts.iter().enumerate() {
            if verdict.is_some_and(|verdict| !selection.includes(verdict)) {
                queue.decide(index, None);
            }
        }
        // With all pages or none, the neighbours follow from the order of the cases.
        self.queue = (selection == PageSelection::Changed).then(|| Mutex::new(queue));
        self.site.selection = selection;
        self
    }

    /// Adds copies in one file each, which are written with the index. With an archive, no page links a history: an archive is
    /// unpacked anywhere.
    #[must_use]
    pub fn with_copies(mut self, copies: Copies) -> Self {
        self.copies = copies;
        if copies.zip {
            self.site.history = None;
        }
        self
    }

    /// Links the history that is or will be in a folder, instead of one next to the report.
    pub fn with_history(mut self, folder: &Utf8Path) -> Result<Self, ReportError> {
        let link = history_in(folder, self.replacement.target());
        let link = link.ok_or_else(|| ReportError::History { folder: folder.to_owned(), out: self.out.clone() })?;
        self.site.history = Some(link);
        Ok(self)
    }

    /// Writes the page of a case and copies the files it links to, if the case has a page. With a selection, the page is
    /// written as soon as its neighbours are known.
    pub fn write_case(&self, case: &CaseComparison<'_>) -> Result<(), ReportError> {
        let page =
            if self.site.selection.includes(case.row.verdict) { Some(Box::new(self.case_page(case)?)) } else { None };
        if let Some(queue) = &self.queue {
            // The lock covers the decision only: pages are rendered and written by the thread that made them ready.
            let ready = queue.lock().unwrap_or_else(PoisonError::into_inner).decide(case.index, page);
            return ready.into_iter().try_for_each(|ready| self.write_ready(ready));
        }
        let Some(page) = page else { return Ok(()) };
        let (previous, next) = (case.index.checked_sub(1), case.index.checked_add(1));
        self.write_ready(ReadyPage { index: case.index, previous, next, page })
    }

    /// The page of a case. The pages of its other runs are written at once, because they have no neighbours.
    fn case_page(&self, case: &CaseComparison<'_>) -> Result<CasePage, ReportError> {
        let runs = self.request.map(|request| other_runs(request, case)).unwrap_or_default();
        let others: Vec<_> = runs.iter().map(|run| (run.side, *run.comparison.shown.get(run.side))).collect();
        let (case_id, shown) = (&case.row.case_id, case.shown);
        let picker = |current| case::run_picker(&self.site, &PickerInput { case_id, shown, others: &others, current });
        for (run, at) in runs.iter().zip(&others) {
            let page = self.page(&run.comparison, &picker(Some(*at)))?;
            let stem = self.site.pages.run_stem(case_id, at.0, at.1);
            self.write_page(&folder::case_page(&stem), &page)?;
        }
        self.page(case, &picker(None))
    }

    fn page(&self, case: &CaseComparison<'_>, picker: &RunPicker) -> Result<CasePage, ReportError> {
        let (page, copies) = CasePage::new(&self.site, case, &self.site.failures, picker.clone());
        let failures = copy_files(self.replacement.path(), copies)?;
        if failures.is_empty() {
            return Ok(page);
        }
        // Built again, because the page must not link to files that are not there. Only a copy shows that a file is readable
        // to its end: a check before would read every file twice.
        let failures = self.site.failures.merged_with(failures);
        Ok(CasePage::new(&self.site, case, &failures, picker.clone()).0)
    }

    fn write_ready(&self, ready: ReadyPage<Box<CasePage>>) -> Result<(), ReportError> {
        let pages = &self.site.pages;
        let neighbour = |index: Option<usize>| {
            let id = pages.id(index?)?;
            Some(format!("{}.html", encode_path(pages.stem(id))))
        };
        let Some(id) = pages.id(ready.index) else { return Ok(()) };
        let page = ready.page.with_neighbours(neighbour(ready.previous), neighbour(ready.next));
        self.write_page(&self.site.case_page(id), &page)
    }

    /// Writes the index, the lists, `evaluation.json` and the exports, and puts the report in its place. Returns the path of the
    /// index.
    pub fn finish(self, evaluation: &Evaluation) -> Result<Utf8PathBuf, ReportError> {
        self.finish_with(evaluation, &ReportContext::default())
    }

    /// Like [`ReportWriter::finish`], with exports that refer to locations outside of the report.
    pub fn finish_with(self, evaluation: &Evaluation, context: &ReportContext) -> Result<Utf8PathBuf, ReportError> {
        write::write_json(&self.path(EVALUATION_FILE), evaluation, Durability::Synced)?;
        self.finish_pages(evaluation, context)
    }

    /// Like [`ReportWriter::finish_with`] for an evaluation that was read from `bytes`, which are written unchanged.
    pub fn finish_from_bytes(
        self,
        evaluation: &Evaluation,
        bytes: &[u8],
        context: &ReportContext,
    ) -> Result<Utf8PathBuf, ReportError> {
        write::write(&self.path(EVALUATION_FILE), bytes, Durability::Synced)?;
        self.finish_pages(evaluation, context)
    }

    fn finish_pages(self, evaluation: &Evaluation, context: &ReportContext) -> Result<Utf8PathBuf, ReportError> {
        if let Some(queue) = &self.queue {
            let rest = queue.lock().unwrap_or_else(PoisonError::into_inner).drain();
            rest.into_iter().try_for_each(|ready| self.write_ready(ready))?;
        }
        let put = |name: &str, text: &str| write::write_new(&self.path(name), text.as_bytes());
        // The limit is far longer than the first line, so the summary is never `None`.
        let summary = exports::summary(evaluation, context, self.site.selection, exports::SUMMARY_UP_TO_BYTES);
        put(folder::SUMMARY_FILE, &summary.unwrap_or_default())?;
        let suites = exports::test_results::suites(evaluation);
        put(folder::JUNIT_FILE, &exports::junit::render(&suites))?;
        put(folder::CTRF_FILE, &exports::ctrf::render(&suites, &exports::ctrf::Tested::of_new(evaluation)))?;
        put(folder::SARIF_FILE, &exports::sarif::render(evaluation, &context.case_locations))?;
        let (groups, decision) = (index::groups(evaluation), decide(evaluation));
        let rows = Rows::new(&self.site, evaluation);
        let lists = CaseLists::new(evaluation, &decision, &groups, &rows);
        for (path, page) in lists.pages(&rows) {
            self.write_page(&path, &page)?;
        }
        if let Some(suites) = SuitesPage::new(evaluation, &lists) {
            self.write_page(folder::SUITES_PAGE, &suites)?;
        }
        for (path, script) in index::search_scripts(&self.site, evaluation, &lists, &rows) {
            put(&path, &script)?;
        }
        // Last, because it links to all others.
        self.write_page(INDEX_FILE, &IndexPage::new(&self.site, evaluation, &decision, &groups, &lists, &rows))?;
        let html = if self.copies.html { Some(self.single_file(evaluation)?) } else { None };
        self.replacement.publish()?;
        if let Some(html) = html {
            write::write(&copy_path(&self.out, "html"), html.as_bytes(), Durability::Synced)?;
        }
        if self.copies.zip {
            copies::write_archive(&self.out, &copy_path(&self.out, "zip"))?;
        }
        Ok(self.out.join(INDEX_FILE))
    }

    /// The index and the pages of the worst cases in one text.
    fn single_file(&self, evaluation: &Evaluation) -> Result<String, ReportError> {
        let ranked = worst_first(evaluation);
        let paged = ranked.iter().filter(|ranked| self.site.selection.includes(ranked.case.verdict));
        let cases = paged.take(copies::MOST_PAGES).map(|ranked| self.site.case_page(&ranked.case.case_id));
        let paths: Vec<_> = std::iter::once(INDEX_FILE.to_owned()).chain(cases).collect();
        let read = |path: &str| {
            let path = self.path(path);
            read_file::read_text(&path, copies::MOST_BYTES as u64)
                .map_err(|source| ReportError::Folder { path, source })
        };
        let mut pages = Vec::new();
        let mut bytes = 0;
        for path in paths {
            let html = read(&path)?;
            bytes += html.len();
            if bytes > copies::MOST_BYTES {
                break;
            }
            pages.push((path, html));
        }
        let mut file = SingleFile::new(folder::STYLE, pages.iter().map(|(path, _)| path.clone()));
        for (path, html) in &pages {
            file.add(path, html);
        }
        Ok(file.finish())
    }

    fn write_page(&self, path: &str, page: &impl Template) -> Result<(), ReportError> {
        folder::write_page(self.replacement.path(), path, page)
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        self.replacement.path().join(name)
    }
}

fn case_ids(evaluation: &Evaluation) -> Vec<CaseId> {
    evaluation.cases.iter().map(|case| case.case_id.clone()).collect()
}

/// The link to the page of the history in a folder, which may not exist yet. `None` if it cannot be next to the report.
fn history_in(folder: &Utf8Path, report: &Utf8Path) -> Option<String> {
    if folder.exists() && !folder.is_dir() {
        return None;
    }
    // Both paths without symbolic links, because the browser resolves the link by the names of the folders.
    let there = folder.ancestors().find_map(|there| {
        let named = if there.as_str().is_empty() { Utf8Path::new(".") } else { there };
        Some(named.canonicalize_utf8().ok()?.join(folder.strip_prefix(there).ok()?))
    });
    let path = relative_path(report, &there?)?;
    // A folder within the report would be in the way of the next report.
    if !path.starts_with("..") {
        return None;
    }
    Some(encode_path(path.join(INDEX_FILE).as_str()))
}

fn is_inside(folder: &Utf8Path, out: &Utf8Path) -> bool {
    match (folder.canonicalize_utf8(), out.canonicalize_utf8()) {
        (Ok(folder), Ok(out)) => folder.starts_with(out),
        _ => false,
    }
}

/// The path of a copy next to the folder: `report.html`.
fn copy_path(out: &Utf8Path, extension: &str) -> Utf8PathBuf {
    Utf8PathBuf::from(format!("{}.{extension}", out.as_str().trim_end_matches('/')))
}
