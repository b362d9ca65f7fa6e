//! Names of the folders and files of a report, and the paths of its pages.

use counterproof_artifact::evaluation::Verdict;

use super::view::verdict;

/// The folder of the case pages.
pub(crate) const CASES_FOLDER: &str = "cases";
/// The folder of the case lists.
pub(crate) const LISTS_FOLDER: &str = "lists";
/// The folder of the copied run files.
pub(crate) const ARTIFACTS_FOLDER: &str = "artifacts";
/// The folder of the case data for the search.
pub(crate) const SEARCH_FOLDER: &str = "static/search";
/// The Markdown summary.
pub(crate) const SUMMARY_FILE: &str = "summary.md";
/// The JUnit test results.
pub(crate) const JUNIT_FILE: &str = "junit.xml";
pub(crate) const SARIF_FILE: &str = "results.sarif";

/// Static files of every page, the history page included: name and content.
pub(crate) const COMMON_FILES: [(&str, &str); 2] = [
    ("style.css", include_str!("../../templates/static/style.css")),
    ("icon.svg", include_str!("../../templates/static/icon.svg")),
];

/// The path of a case page, given its name without the extension.
pub(crate) fn case_page(stem: &str) -> String {
    format!("{CASES_FOLDER}/{stem}.html")
}

/// The path of a page of the list of a verdict. Pages count from 1.
pub(crate) fn verdict_list(verdict: Verdict, page: usize) -> String {
    format!("{LISTS_FOLDER}/{}-{page}.html", verdict::show(verdict).class)
}

/// The path of a page of the list of a root cause, given its index among all root causes. Pages count from 1.
pub(crate) fn root_cause_list(index: usize, page: usize) -> String {
    format!("{LISTS_FOLDER}/cause-{}-{page}.html", index + 1)
}
