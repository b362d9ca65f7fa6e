//! All cases: the lists by verdict and by root cause, split into pages, through which every case is reachable without scripts,
//! and the data of the search.

use std::collections::{BTreeMap, HashMap};

use askama::Template;
use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, SeverityLevel, Verdict};
use counterproof_evaluator::{evaluation_text, text, worst_first};
use serde_json::{Value, json};

use super::gate::{self, Group};
use super::page::{UsageCell, UsageColumns};
use crate::folder::{self, LISTS_FOLDER, SEARCH_FOLDER};
use crate::site::Site;
use crate::view::display;
use crate::view::verdict::{self, VerdictView};

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
pub(crate) fn list_pages<'a>(
    site: &'a Site<'_>,
    evaluation: &'a Evaluation,
    groups: &'a [Group<'_>],
) -> impl Iterator<Item = (String, ListPage)> {
    let sorted: Vec<_> = worst_first(evaluation).iter().map(|ranked| ranked.case).collect();
    let columns = UsageColumns::new(evaluation);
    // Two closures need the columns, and the iterator that they make outlives this call.
    let columns_of_verdicts = columns.clone();
    let of_verdict = move |verdict: Verdict| {
        let cases: Vec<_> = sorted.iter().copied().filter(|case| case.verdict == verdict).collect();
        let unconfirmed = evaluation_text::unconfirmed(cases.iter().copied(), verdict);
        let title = format!("{} {}{unconfirmed}", display::number(cases.len() as u64), verdict::show(verdict).word);
        let path = move |page| folder::verdict_list(verdict, page);
        List { title, subtitle: String::new(), cases, path }.pages(site, &columns_of_verdicts)
    };
    let of_group = move |(index, group): (usize, &Group<'a>)| {
        let path = move |page| folder::root_cause_list(index, page);
        List { title: group.message(), subtitle: group.count(), cases: group.cases.clone(), path }.pages(site, &columns)
    };
    let groups = groups.iter().enumerate().filter(|(_, group)| group.has_list());
    Verdict::WORST_FIRST.into_iter().flat_map(of_verdict).chain(groups.flat_map(of_group))
}

impl<P: Fn(usize) -> String> List<'_, P> {
    fn pages(self, site: &Site<'_>, columns: &UsageColumns) -> Vec<(String, ListPage)> {
        // Pages, because browsers are slow with tables of many thousand rows.
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

#[derive(Debug, Clone)]
pub(crate) struct CaseRow {
    /// The link to the case page, relative to the report folder; `None` for a case without a page.
    pub(crate) href: Option<String>,
    pub(crate) case_id: String,
    pub(crate) title: Option<String>,
    pub(crate) verdict: VerdictView,
    /// The risk; empty for an unknown one.
    pub(crate) risk: &'static str,
    /// The level of the severity; empty if nothing counts.
    pub(crate) severity: &'static str,
    /// The first reason, which decided the verdict.
    pub(crate) reason: String,
    /// The number of further reasons as text; empty where there are none.
    pub(crate) more: String,
}

impl CaseRow {
    pub(crate) fn new(site: &Site<'_>, case: &CaseEvaluation) -> Self {
        let more = case.reasons.len().saturating_sub(1);
        Self {
            href: site.case_href(case),
            case_id: case.case_id.to_string(),
            title: case.title.as_deref().map(display::visible),
            verdict: verdict::of_case(case),
            risk: verdict::risk(case.risk_level).unwrap_or(""),
            severity: severity(case),
            reason: first_reason(case),
            more: match more {
                0 => String::new(),
                more => format!("and {}", text::count(more, "more reason", "more reasons")),
            },
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct CaseTable {
    pub(crate) columns: Vec<&'static str>,
    /// The cases, each with a cell for each of these columns.
    pub(crate) rows: Vec<(CaseRow, Vec<UsageCell>)>,
}

impl CaseTable {
    pub(crate) fn new<'a>(
        site: &Site<'_>,
        columns: &UsageColumns,
        cases: impl Iterator<Item = &'a CaseEvaluation>,
    ) -> Self {
        let rows = cases.map(|case| (CaseRow::new(site, case), columns.cells(case))).collect();
        Self { columns: columns.names(), rows }
    }
}

/// The level of a case's severity: `high`, `medium`, `low`, or nothing.
pub(crate) fn severity(case: &CaseEvaluation) -> &'static str {
    case.severity_level().map_or("", SeverityLevel::as_str)
}

pub(crate) fn first_reason(case: &CaseEvaluation) -> String {
    case.reasons.first().map(|reason| display::visible(&reason.message)).unwrap_or_default()
}

/// The number of cases per script, which makes a script about a megabyte long.
const CASES_PER_SHARD: usize = 3_000;

/// The maximum number of choices of a filter. The choices with the most cases are kept.
const MOST_CHOICES: usize = 200;

#[derive(Debug, Clone)]
pub(crate) struct Choice {
    /// The value in the data and in the address.
    pub(crate) value: String,
    pub(crate) label: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Filter {
    /// The name in the address.
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) choices: Vec<Choice>,
}

/// The filters of a comparison. Filters without choices are omitted.
pub(crate) fn filters(evaluation: &Evaluation) -> Vec<Filter> {
    let cases = &evaluation.cases;
    let verdicts = gate::bar(evaluation).into_iter().map(|part| Choice {
        value: part.verdict.class.to_owned(),
        label: format!("{} ({})", part.verdict.word, part.count),
    });
    let all = [
        Filter { name: "verdict", label: "Verdict", choices: verdicts.collect() },
        filter("risk", "Risk", cases, |case| verdict::risk(case.risk_level).into_iter().collect()),
        filter("tool", "Tool", cases, |case| case.tools.iter().map(String::as_str).collect()),
        filter("tag", "Tag", cases, |case| case.tags.iter().map(String::as_str).collect()),
        filter("suite", "Suite", cases, |case| case.suite.as_deref().into_iter().collect()),
        filter("reason", "Reason", cases, reason_codes),
    ];
    all.into_iter().filter(|filter| !filter.choices.is_empty()).collect()
}

fn filter<'a>(
    name: &'static str,
    label: &'static str,
    cases: &'a [CaseEvaluation],
    of: impl Fn(&'a CaseEvaluation) -> Vec<&'a str>,
) -> Filter {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for case in cases {
        for value in of(case) {
            *counts.entry(value).or_default() += 1;
        }
    }
    let mut counted: Vec<_> = counts.into_iter().collect();
    // By count to keep the most frequent values, then by name to make each easy to find.
    counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counted.truncate(MOST_CHOICES);
    counted.sort_unstable();
    let choice = |(value, count): (&str, u64)| {
        let value = display::visible(value);
        Choice { label: format!("{value} ({})", display::number(count)), value }
    };
    Filter { name, label, choices: counted.into_iter().map(choice).collect() }
}

fn reason_codes(case: &CaseEvaluation) -> Vec<&str> {
    let mut codes: Vec<_> = case.reasons.iter().map(|reason| reason.code.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

pub(crate) fn shard_count(evaluation: &Evaluation) -> usize {
    evaluation.cases.len().div_ceil(CASES_PER_SHARD)
}

/// The scripts with their paths. Cases are sorted worst first.
pub(crate) fn search_scripts<'a>(
    site: &'a Site<'_>,
    evaluation: &'a Evaluation,
) -> impl Iterator<Item = (String, String)> + use<'a> {
    let sorted: Vec<_> = worst_first(evaluation).iter().map(|ranked| ranked.case).collect();
    let columns = UsageColumns::new(evaluation);
    (0..shard_count(evaluation)).map(move |index| {
        let start = index * CASES_PER_SHARD;
        let cases = &sorted[start..sorted.len().min(start + CASES_PER_SHARD)];
        (format!("{SEARCH_FOLDER}/{index}.js"), script(site, &columns, index, cases))
    })
}

fn script(site: &Site<'_>, columns: &UsageColumns, index: usize, cases: &[&CaseEvaluation]) -> String {
    // The same codes, tools and tags occur in most cases.
    let mut strings = StringTable::default();
    let cases: Vec<Value> = cases.iter().map(|case| case_data(site, columns, case, &mut strings)).collect();
    // A script that calls a function, because a page that is opened from disk may not fetch files.
    let data = json!({"strings": strings.list, "cases": cases}).to_string();
    format!("counterproof.addCases({index}, {});\n", escape(&data))
}

/// The data of a case: id, name of the page (0 without a page, 1 if it equals the id), title, verdict, risk, severity, reason,
/// suite, the reason codes, tools and tags as indexes into the string table, the cells about time, size and cost, and 1 for an
/// unconfirmed verdict.
fn case_data(site: &Site<'_>, columns: &UsageColumns, case: &CaseEvaluation, strings: &mut StringTable) -> Value {
    let stem = site.pages.stem(&case.case_id);
    // Numbers for the usual cases, because every byte occurs once per case.
    let page = match site.selection.includes(case.verdict) {
        false => json!(0),
        true if stem == case.case_id.as_str() => json!(1),
        true => json!(stem),
    };
    json!([
        case.case_id,
        page,
        case.title.as_deref().map(display::visible).unwrap_or_default(),
        verdict::show(case.verdict).class,
        verdict::risk(case.risk_level).unwrap_or_default(),
        severity(case),
        first_reason(case),
        case.suite.as_deref().map(display::visible).unwrap_or_default(),
        strings.indexes(reason_codes(case)),
        strings.indexes(case.tools.iter().map(String::as_str)),
        strings.indexes(case.tags.iter().map(String::as_str)),
        columns.cells(case).iter().map(cell_data).collect::<Vec<_>>(),
        u8::from(case.unconfirmed),
    ])
}

/// A cell: its value, or the value with its change.
fn cell_data(cell: &UsageCell) -> Value {
    if cell.change.is_empty() { json!(cell.value) } else { json!([cell.value, cell.change]) }
}

/// Escapes JSON for a script.
fn escape(json: &str) -> String {
    // `<` could end the script, and older JavaScript does not allow the two line separators in a string.
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// Strings that many cases share, each stored once.
#[derive(Debug, Default)]
struct StringTable {
    list: Vec<String>,
    indexes: HashMap<String, usize>,
}

impl StringTable {
    fn indexes<'a>(&mut self, strings: impl IntoIterator<Item = &'a str>) -> Vec<usize> {
        strings.into_iter().map(|string| self.index(string)).collect()
    }

    fn index(&mut self, string: &str) -> usize {
        let string = display::visible(string);
        *self.indexes.entry(string.clone()).or_insert_with(|| {
            self.list.push(string);
            self.list.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_contain_no_markup_and_keep_their_value() {
        let value = json!({"a": "</script><!-- \u{2028}"});
        let script = escape(&value.to_string());
        assert!(!script.contains('<') && !script.contains('\u{2028}'), "{script}");
        assert_eq!(serde_json::from_str::<Value>(&script).unwrap(), value);
    }
}
