//! The lists of all cases, split into pages: one list per verdict, and one per root cause with more cases than the index
//! shows. Without scripts, every case is reachable through these lists.

use askama::Template;
use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, Verdict};

use super::case_row::CaseTable;
use super::root_causes::Group;
use super::usage_columns::UsageColumns;
use crate::layout::{self, LISTS_FOLDER};
use crate::site::Site;
use crate::view::display;
use crate::view::verdict;

/// The number of cases per page.
const CASES_PER_PAGE: usize = 500;

/// The view of a page of a list.
#[derive(Debug, Template)]
#[template(path = "lists/page.html")]
pub(crate) struct ListPage {
    root: &'static str,
    title: String,
    subtitle: String,
    cases: CaseTable,
    /// Links to all pages of the list; empty where there is only one.
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

/// A list with the path of each of its pages.
struct List<'a, P> {
    title: String,
    subtitle: String,
    cases: Vec<&'a CaseEvaluation>,
    path: P,
}

/// The pages of all lists with their paths. Each page is built when it is requested.
pub(crate) fn pages<'a>(
    site: &'a Site<'_>,
    evaluation: &'a Evaluation,
    groups: &'a [Group<'_>],
) -> impl Iterator<Item = (String, ListPage)> {
    let sorted = evaluation.worst_first();
    let columns = UsageColumns::new(evaluation);
    let columns_of_verdicts = columns.clone();
    let of_verdict = move |verdict: Verdict| {
        let cases: Vec<_> = sorted.iter().copied().filter(|case| case.verdict == verdict).collect();
        let title = format!("{} {}", display::number(cases.len() as u64), verdict::show(verdict).word);
        let path = move |page| layout::verdict_list(verdict, page);
        List { title, subtitle: String::new(), cases, path }.pages(site, &columns_of_verdicts)
    };
    let of_group = move |(index, group): (usize, &Group<'a>)| {
        let path = move |page| layout::root_cause_list(index, page);
        List { title: group.message(), subtitle: group.count(), cases: group.cases.clone(), path }.pages(site, &columns)
    };
    let groups = groups.iter().enumerate().filter(|(_, group)| group.has_list());
    Verdict::WORST_FIRST.into_iter().flat_map(of_verdict).chain(groups.flat_map(of_group))
}

impl<P: Fn(usize) -> String> List<'_, P> {
    fn pages(self, site: &Site<'_>, columns: &UsageColumns) -> Vec<(String, ListPage)> {
        let count = self.cases.len().div_ceil(CASES_PER_PAGE);
        (1..=count).map(|number| ((self.path)(number), self.page(site, columns, number, count))).collect()
    }

    /// A page of the list. Pages count from 1.
    fn page(&self, site: &Site<'_>, columns: &UsageColumns, number: usize, count: usize) -> ListPage {
        let cases = self.cases.iter().skip((number - 1) * CASES_PER_PAGE).take(CASES_PER_PAGE);
        let href = |page: usize| name(&(self.path)(page)).to_owned();
        let link = |page: usize| PageLink { number: page.to_string(), href: href(page), is_this: page == number };
        ListPage {
            root: "../",
            title: self.title.clone(),
            subtitle: self.subtitle.clone(),
            cases: CaseTable::new(site, columns, cases.copied()),
            pages: if count > 1 { (1..=count).map(link).collect() } else { Vec::new() },
            previous: (number > 1).then(|| href(number - 1)),
            next: (number < count).then(|| href(number + 1)),
        }
    }
}

/// The file name of a list, by which other lists link to it.
fn name(path: &str) -> &str {
    path.strip_prefix(LISTS_FOLDER).map_or(path, |rest| rest.trim_start_matches('/'))
}

impl ListPage {
    /// The position of the page in its list; empty for an only page.
    fn position(&self) -> String {
        let this = self.pages.iter().find(|page| page.is_this);
        this.map(|page| format!("page {} of {}", page.number, self.pages.len())).unwrap_or_default()
    }
}
