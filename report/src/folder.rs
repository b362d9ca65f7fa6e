//! The output folders of this crate, the entries of a report and the paths of its pages, and what can go wrong. A new version is
//! written next to the folder and replaces it as a whole; a folder with other content is never changed.

use std::io;

use askama::Template;
use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::{self, INDEX_FILE, STATIC_FOLDER, SiteError, SiteKind, StagedFolder, WriteError};
use counterproof_store::{EVALUATION_FILE, ReadError};

/// The number of cases per script of the search, which makes a script about a megabyte long.
pub(crate) const CASES_PER_SHARD: usize = 3_000;

/// The number of scripts of the search.
pub(crate) const fn shard_count(cases: usize) -> usize {
    cases.div_ceil(CASES_PER_SHARD)
}

/// The content of the marker file, which identifies a report.
const MARKER: &str = "A report of Counterproof. The next report that is written here replaces it. Open index.html.\n";

const FILES: [(&str, &str); 7] = [
    COMMON_FILES[0],
    COMMON_FILES[1],
    ("report.js", include_str!("../../templates/static/report.js")),
    ("cases.js", include_str!("../../templates/static/cases.js")),
    ("review.js", include_str!("../../templates/static/review.js")),
    ("find.js", include_str!("../../templates/static/find.js")),
    ("case.js", include_str!("../../templates/static/case.js")),
];

/// The entries of a report folder. All others are the user's, and stay.
const ENTRIES: [&str; 10] = [
    INDEX_FILE,
    EVALUATION_FILE,
    SUMMARY_FILE,
    JUNIT_FILE,
    CTRF_FILE,
    SARIF_FILE,
    CASES_FOLDER,
    LISTS_FOLDER,
    ARTIFACTS_FOLDER,
    STATIC_FOLDER,
];

/// A kind of folder that this crate writes as a whole.
pub(crate) struct FolderKind {
    /// The name in messages, with its article.
    pub(crate) name: &'static str,
    pub(crate) site: SiteKind<'static>,
}

const REPORT: FolderKind =
    FolderKind { name: "a report", site: SiteKind { marker: MARKER, entries: &ENTRIES, files: &FILES } };

impl FolderKind {
    /// A folder with one page and its static files.
    pub(crate) const fn of_page(
        name: &'static str,
        marker: &'static str,
        files: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self { name, site: SiteKind { marker, entries: &[INDEX_FILE, STATIC_FOLDER], files } }
    }

    /// Starts a new version that will replace the one in `out`: its static files, and no page.
    pub(crate) fn begin(&self, out: &Utf8Path) -> Result<StagedFolder, ReportError> {
        self.site.begin(out).map_err(|error| match error {
            SiteError::Foreign(out) => ReportError::Foreign { out, kind: self.name },
            SiteError::Read { path, source } => ReportError::Folder { path, source },
            SiteError::Busy(out) => ReportError::Busy { out, kind: self.name },
            SiteError::Write(error) => ReportError::Write(error),
        })
    }
}

/// Starts a new report that will replace the one in `out`: its folders and static files, and no page.
pub(crate) fn begin(out: &Utf8Path) -> Result<StagedFolder, ReportError> {
    let replacement = REPORT.begin(out)?;
    // Created before the workers start, which write pages at the same time.
    for name in [CASES_FOLDER, LISTS_FOLDER, SEARCH_FOLDER] {
        write::create_folder(&replacement.path().join(name))?;
    }
    Ok(replacement)
}

/// Removes the content of the report in `out`, if it has one. Files of the user stay.
pub fn clear(out: &Utf8Path) -> Result<(), ReportError> {
    if !out.join(INDEX_FILE).exists() {
        return Ok(());
    }
    // A version without a page.
    Ok(REPORT.begin(out)?.publish()?)
}

/// Renders a page into the folder that is under construction.
pub(crate) fn write_page(folder: &Utf8Path, path: &str, page: &impl Template) -> Result<(), ReportError> {
    // Growing a text to the size of a page copies it several times.
    let mut html = String::with_capacity(PAGE_BYTES);
    page.render_into(&mut html).map_err(|source| ReportError::Render { page: path.to_owned(), source })?;
    Ok(write::write_new(&folder.join(path), html.as_bytes())?)
}

/// Finishes a folder with only one page. Returns the path of the page.
pub(crate) fn publish_page(
    replacement: StagedFolder,
    out: &Utf8Path,
    page: &impl Template,
) -> Result<Utf8PathBuf, ReportError> {
    write_page(replacement.path(), INDEX_FILE, page)?;
    replacement.publish()?;
    // The path as the caller named it, and not the one without symbolic links that the folder was replaced at.
    Ok(out.join(INDEX_FILE))
}

/// Most pages are smaller.
const PAGE_BYTES: usize = 32 * 1024;

pub(crate) const CASES_FOLDER: &str = "cases";
pub(crate) const LISTS_FOLDER: &str = "lists";
pub(crate) const ARTIFACTS_FOLDER: &str = "artifacts";
/// The folder of the case data for the search.
pub(crate) const SEARCH_FOLDER: &str = "static/search";
pub(crate) const SUMMARY_FILE: &str = "summary.md";
pub(crate) const JUNIT_FILE: &str = "junit.xml";
pub(crate) const CTRF_FILE: &str = "ctrf.json";
pub(crate) const SARIF_FILE: &str = "results.sarif";

/// The style sheet of every page.
pub(crate) const STYLE: &str = include_str!("../../templates/static/style.css");

/// Static files of every page, the history page included: name and content.
pub(crate) const COMMON_FILES: [(&str, &str); 2] =
    [("style.css", STYLE), ("icon.svg", include_str!("../../templates/static/icon.svg"))];

/// The page of suites.
pub(crate) const SUITES_PAGE: &str = "lists/suites.html";

/// The path of a case page, given its name without the extension.
pub(crate) fn case_page(stem: &str) -> String {
    format!("{CASES_FOLDER}/{stem}.html")
}

/// The path of a page of a list. Pages count from 1.
pub(crate) fn list(slug: &str, page: usize) -> String {
    format!("{LISTS_FOLDER}/{}", list_file(slug, page))
}

/// The name of the file of a page of a list, by which other lists link to it.
pub(crate) fn list_file(slug: &str, page: usize) -> String {
    format!("{slug}-{page}.html")
}

/// Why a folder of pages could not be written: a report, a history, or a page of contracts.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A run folder could not be listed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output folder holds files that this program did not write.
    #[error("`{out}` exists and is not {kind}; nothing was written")]
    Foreign {
        out: Utf8PathBuf,
        /// What the folder should be, such as `a report`.
        kind: &'static str,
    },
    /// A compared run is inside the output folder, which the report replaces.
    #[error("the run `{run}` is inside the report folder `{out}`, which would be replaced")]
    RunInside { run: Utf8PathBuf, out: Utf8PathBuf },
    /// A folder that is given for the history cannot have it.
    #[error("`{folder}` cannot be the folder of the history of the report `{out}`")]
    History { folder: Utf8PathBuf, out: Utf8PathBuf },
    /// The output folder could not be read.
    #[error("failed to read `{path}`")]
    Folder { path: Utf8PathBuf, source: io::Error },
    /// Another process writes into the folder.
    #[error("another process is writing {kind} to `{out}`")]
    Busy { out: Utf8PathBuf, kind: &'static str },
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("failed to render `{page}`")]
    Render {
        /// The path of the page within its folder.
        page: String,
        source: askama::Error,
    },
}
