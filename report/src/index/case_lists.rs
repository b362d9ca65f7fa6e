//! The lists of cases that chips, counts, notices and violated rules lead to, each split into pages, so that every case is reached
//! without scripts.

use std::collections::{BTreeMap, HashMap, HashSet};

use askama::Template;
use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, UsageCode};
use counterproof_artifact::{CaseId, RiskLevel};
use counterproof_evaluator::{Decision, is_alone, messages, text, worst_first};

use super::groups::Group;
use super::rows::{CaseRow, Rows};
use crate::folder;
use crate::site::encode_path;
use crate::view::display;
use crate::view::word::Word;

const CASES_PER_PAGE: usize = 500;

/// The slug of the list of all cases.
pub(crate) const ALL: &str = "all";

/// Cases with something in common, worst first.
#[derive(Debug)]
pub(crate) struct CaseList<'a> {
    /// The name in paths and in the address.
    pub(crate) slug: String,
    /// What the cases have in common.
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) cases: Vec<&'a CaseEvaluation>,
    /// Whether the list has a chip above the rows.
    pub(crate) has_chip: bool,
    /// Whether the list has pages. Others are only filters of the first page.
    pub(crate) has_pages: bool,
}

/// All lists of a comparison. None of them is empty.
#[derive(Debug)]
pub(crate) struct CaseLists<'a> {
    lists: Vec<CaseList<'a>>,
    /// The slug of the list of each suite.
    suite_slugs: HashMap<&'a str, String>,
}

impl<'a> CaseLists<'a> {
    pub(crate) fn new(evaluation: &'a Evaluation, decision: &Decision, groups: &[Group<'a>], rows: &Rows<'_>) -> Self {
        let sorted: Vec<_> = worst_first(evaluation).iter().map(|ranked| ranked.case).collect();
        let chip = |slug: String, title: String, cases: Vec<&'a CaseEvaluation>| CaseList {
            slug,
            title,
            subtitle: String::new(),
            cases,
            has_chip: true,
            has_pages: true,
        };
        let among = |ids: &[CaseId]| {
            let ids: HashSet<_> = ids.iter().collect();
            sorted.iter().copied().filter(|case| ids.contains(&case.case_id)).collect::<Vec<_>>()
        };
        let filtered =
            |is: &dyn Fn(&CaseEvaluation) -> bool| sorted.iter().copied().filter(|case| is(case)).collect::<Vec<_>>();
        let alone = is_alone(evaluation);
        let of_word = |word: Word| {
            let cases = filtered(&|case| Word::of_case(case, alone) == word);
            // How many of a part are unconfirmed is next to the bar, and each row has it.
            let all_unconfirmed = !cases.is_empty() && cases.iter().all(|case| case.unconfirmed);
            let unconfirmed = if all_unconfirmed { " (unconfirmed)" } else { "" };
            chip(word.class().to_owned(), text::first_upper(word.as_str()) + unconfirmed, cases)
        };
        let mut lists = vec![chip(ALL.to_owned(), "All".to_owned(), sorted.clone())];
        lists.extend(Word::ALL.into_iter().filter(|word| *word != Word::Same).map(of_word));
        lists.push(chip("high-risk".to_owned(), "High risk".to_owned(), filtered(&is_high_risk)));
        lists.push(chip("review".to_owned(), "To review".to_owned(), filtered(&|case| rows.has_review(case))));
        for notice in &evaluation.notices {
            let title = text::first_upper(&notice.code.replace('-', " "));
            lists.push(chip(notice_slug(&notice.code), title, among(&notice.case_ids)));
        }
        lists.push(chip("slower".to_owned(), "Slower".to_owned(), filtered(&is_slower)));
        lists.push(of_word(Word::Same));
        for (index, rule) in decision.violated.iter().enumerate() {
            let title = text::first_upper(&display::visible(&rule.sentence));
            lists.push(CaseList { has_chip: false, ..chip(rule_slug(index), title, among(&rule.case_ids)) });
        }
        let title = "Look worse, not confirmed".to_owned();
        lists.push(CaseList { has_chip: false, ..chip(UNCONFIRMED.to_owned(), title, among(&decision.unconfirmed)) });
        let mut suites: BTreeMap<&str, Vec<&'a CaseEvaluation>> = BTreeMap::new();
        for case in &sorted {
            if let Some(suite) = case.suite.as_deref() {
                suites.entry(suite).or_default().push(case);
            }
        }
        let mut suite_slugs = HashMap::new();
        for (index, (suite, cases)) in suites.into_iter().enumerate() {
            let slug = format!("{SUITE}{}", index + 1);
            suite_slugs.insert(suite, slug.clone());
            lists.push(CaseList { has_chip: false, ..chip(slug, display::visible(suite), cases) });
        }
        for (index, group) in groups.iter().enumerate().filter(|(_, group)| group.is_filter()) {
            lists.push(CaseList {
                has_chip: false,
                has_pages: group.has_list(),
                subtitle: group.count(),
                ..chip(group_slug(index), group.title(), group.cases.clone())
            });
        }
        lists.retain(|list| !list.cases.is_empty());
        Self { lists, suite_slugs }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &CaseList<'a>> {
        self.lists.iter()
    }

    pub(crate) fn get(&self, slug: &str) -> Option<&CaseList<'a>> {
        self.lists.iter().find(|list| list.slug == slug)
    }

    /// The slug of the list of a suite.
    pub(crate) fn suite(&self, name: &str) -> Option<&str> {
        self.suite_slugs.get(name).map(String::as_str)
    }

    /// The lists that a case is in, by their indexes. A suite is another field of the filter.
    pub(crate) fn by_case(&self) -> (Vec<&str>, HashMap<&CaseId, Vec<usize>>) {
        let filters = self.lists.iter().filter(|list| list.slug != ALL && !list.slug.starts_with(SUITE));
        let mut slugs = Vec::new();
        let mut of_case: HashMap<&CaseId, Vec<usize>> = HashMap::new();
        for (index, list) in filters.enumerate() {
            slugs.push(list.slug.as_str());
            for case in &list.cases {
                of_case.entry(&case.case_id).or_default().push(index);
            }
        }
        (slugs, of_case)
    }

    /// The pages of all lists with their paths. Each page is built when it is requested.
    pub(crate) fn pages<'s>(&'s self, rows: &'s Rows<'_>) -> impl Iterator<Item = (String, ListPage)> + 's {
        self.lists.iter().filter(|list| list.has_pages).flat_map(move |list| list.pages(rows))
    }
}

/// The slug of the cases that look worse, where no violated rule counts cases.
pub(crate) const UNCONFIRMED: &str = "unconfirmed";

const GROUP: &str = "pattern-";
const SUITE: &str = "suite-";

pub(crate) fn group_slug(index: usize) -> String {
    format!("{GROUP}{}", index + 1)
}

pub(crate) fn rule_slug(index: usize) -> String {
    format!("rule-{}", index + 1)
}

/// A code of another producer may have characters that are not safe in a path.
pub(crate) fn notice_slug(code: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    format!("notice-{}", code.chars().map(safe).collect::<String>())
}

fn is_high_risk(case: &CaseEvaluation) -> bool {
    case.risk_level == Some(RiskLevel::High)
}

fn is_slower(case: &CaseEvaluation) -> bool {
    let duration = case.usage.as_ref().and_then(|usage| usage.compared(UsageCode::Duration));
    duration.is_some_and(|(baseline, new)| {
        new > baseline && messages::usage::notable_change(UsageCode::Duration, baseline, new).is_some()
    })
}

impl CaseList<'_> {
    /// The path of the first page.
    pub(crate) fn path(&self) -> String {
        folder::list(&self.slug, 1)
    }

    /// The filter of the first page that shows the same cases; empty for all.
    fn filter(&self) -> String {
        match self.slug.as_str() {
            ALL => String::new(),
            slug if slug.starts_with(SUITE) => format!("suite={}", encode_path(&self.title)),
            slug => format!("show={slug}"),
        }
    }

    /// The number of cases, and how many of them are unconfirmed.
    pub(crate) fn heading(&self) -> String {
        format!("{}: {}{}", self.title, text::count(self.cases.len(), "case", "cases"), unconfirmed(&self.cases))
    }

    fn pages(&self, rows: &Rows<'_>) -> Vec<(String, ListPage)> {
        // Pages, because browsers are slow with tables of many thousand rows.
        let count = self.cases.len().div_ceil(CASES_PER_PAGE);
        let page = |number| (folder::list(&self.slug, number), self.page(rows, number, count));
        (1..=count).map(page).collect()
    }

    /// A page of the list. Pages count from 1.
    fn page(&self, rows: &Rows<'_>, number: usize, count: usize) -> ListPage {
        let cases = self.cases.iter().skip((number - 1) * CASES_PER_PAGE).take(CASES_PER_PAGE);
        let href = |page: usize| folder::list_file(&self.slug, page);
        let link = |page: usize| PageLink { number: page.to_string(), href: href(page), is_this: page == number };
        ListPage {
            root: "../",
            report: rows.site.name.clone(),
            filter: self.filter(),
            title: self.heading(),
            subtitle: self.subtitle.clone(),
            rows: cases.map(|case| rows.row(case)).collect(),
            pages: if count > 1 { (1..=count).map(link).collect() } else { Vec::new() },
            previous: (number > 1).then(|| href(number - 1)),
            next: (number < count).then(|| href(number + 1)),
        }
    }
}

/// The view of a page of a list.
#[derive(Debug, Template)]
#[template(path = "lists/page.html")]
pub(crate) struct ListPage {
    root: &'static str,
    /// The name under which the browser stores marks.
    report: String,
    filter: String,
    title: String,
    subtitle: String,
    rows: Vec<CaseRow>,
    /// Links to all pages of the list; empty where there is only one.
    pages: Vec<PageLink>,
    previous: Option<String>,
    next: Option<String>,
}

#[derive(Debug, Clone)]
struct PageLink {
    number: String,
    href: String,
    is_this: bool,
}

impl ListPage {
    /// The position of the page in its list; empty for an only page.
    fn position(&self) -> String {
        let this = self.pages.iter().find(|page| page.is_this);
        this.map(|page| format!("page {} of {}", page.number, self.pages.len())).unwrap_or_default()
    }
}

/// How many of the cases are unconfirmed, after their number; empty if none is.
pub(crate) fn unconfirmed(cases: &[&CaseEvaluation]) -> String {
    match cases.iter().filter(|case| case.unconfirmed).count() {
        0 => String::new(),
        all if all == cases.len() => " (unconfirmed)".to_owned(),
        some => format!(" ({some} unconfirmed)"),
    }
}
