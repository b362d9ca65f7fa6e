//! The lists of all cases, page by page: by verdict, and by shared cause where the first page does not list all of its
//! cases. They are what a reader without scripts finds every case by.

use askama::Template;
use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, Verdict};

use super::case_rows::CaseRow;
use super::moved::Group;
use super::shown;
use super::verdicts;
use super::writer::{ReportError, ReportWriter};

/// The folder of the lists.
pub(super) const LISTS_FOLDER: &str = "lists";

/// Cases of one page.
const CASES_OF_A_PAGE: usize = 500;

/// A page of a list, ready to be shown.
#[derive(Debug, Template)]
#[template(path = "lists/page.html")]
struct ListPage {
    root: &'static str,
    title: String,
    besides: String,
    rows: Vec<CaseRow>,
    pages: Vec<PageLink>,
    previous: Option<String>,
    next: Option<String>,
}

/// A link to a page of the same list.
#[derive(Debug, Clone)]
struct PageLink {
    number: String,
    href: String,
    is_this: bool,
}

/// A page of the cases with a verdict, counted from 1, relative to the report's folder.
pub(super) fn of_verdict(verdict: Verdict, page: usize) -> String {
    format!("{LISTS_FOLDER}/{}-{page}.html", verdicts::show(verdict).class)
}

/// A page of the cases that share a cause: its place among all groups, and the page counted from 1.
pub(super) fn of_group(index: usize, page: usize) -> String {
    format!("{LISTS_FOLDER}/cause-{}-{page}.html", index + 1)
}

/// Writes all lists.
pub(super) fn write(
    report: &ReportWriter<'_>,
    evaluation: &Evaluation,
    groups: &[Group<'_>],
) -> Result<(), ReportError> {
    let sorted = evaluation.worst_first();
    for verdict in Verdict::WORST_FIRST {
        let cases: Vec<_> = sorted.iter().copied().filter(|case| case.verdict == verdict).collect();
        let title = format!("{} {}", shown::number(cases.len() as u64), verdicts::show(verdict).word);
        write_list(report, &cases, &title, "", |page| of_verdict(verdict, page))?;
    }
    for (index, group) in groups.iter().enumerate().filter(|(_, group)| group.has_pages()) {
        write_list(report, &group.cases, &group.sentence(), &group.count(), |page| of_group(index, page))?;
    }
    Ok(())
}

fn write_list(
    report: &ReportWriter<'_>,
    cases: &[&CaseEvaluation],
    title: &str,
    besides: &str,
    path: impl Fn(usize) -> String,
) -> Result<(), ReportError> {
    let count = cases.len().div_ceil(CASES_OF_A_PAGE);
    for (index, part) in cases.chunks(CASES_OF_A_PAGE).enumerate() {
        let number = index + 1;
        let link = |page: usize| within(&path(page)).to_owned();
        let page = ListPage {
            root: "../",
            title: title.to_owned(),
            besides: besides.to_owned(),
            rows: part.iter().map(|case| CaseRow::of(report, case)).collect(),
            pages: if count > 1 {
                let link =
                    |page: usize| PageLink { number: page.to_string(), href: link(page), is_this: page == number };
                (1..=count).map(link).collect()
            } else {
                Vec::new()
            },
            previous: (number > 1).then(|| link(number - 1)),
            next: (number < count).then(|| link(number + 1)),
        };
        report.write_page(&path(number), &page)?;
    }
    Ok(())
}

/// The name of a list as another list links to it.
fn within(path: &str) -> &str {
    path.strip_prefix(LISTS_FOLDER).map_or(path, |rest| rest.trim_start_matches('/'))
}

impl ListPage {
    /// Which page this is, in words; empty where there is only one.
    fn place(&self) -> String {
        let this = self.pages.iter().find(|page| page.is_this);
        this.map(|page| format!("page {} of {}", page.number, self.pages.len())).unwrap_or_default()
    }
}
