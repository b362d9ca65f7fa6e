//! Search on the index page: the choices of each filter, and the data of all cases.
//!
//! The data are scripts that call a function, because a page that was opened from disk may load scripts of its folder but may
//! not fetch files.

use std::collections::{BTreeMap, HashMap};

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation};
use serde_json::{Value, json};

use super::usage_columns::{UsageCell, UsageColumns};
use super::{case_row, gate};
use crate::layout::SEARCH_FOLDER;
use crate::site::Site;
use crate::view::display;
use crate::view::verdict;

/// The number of cases per script, which makes a script about a megabyte long.
const CASES_PER_SHARD: usize = 3_000;

/// The maximum number of choices of a filter. The choices with the most cases are kept.
const MOST_CHOICES: usize = 200;

/// A choice of a filter.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    /// The value in the data and in the address.
    pub(crate) value: String,
    /// The visible text.
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
    counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counted.truncate(MOST_CHOICES);
    counted.sort_unstable();
    let choice = |(value, count): (&str, u64)| {
        let value = display::visible(value);
        Choice { label: format!("{value} ({})", display::number(count)), value }
    };
    Filter { name, label, choices: counted.into_iter().map(choice).collect() }
}

/// The distinct reason codes of a case.
fn reason_codes(case: &CaseEvaluation) -> Vec<&str> {
    let mut codes: Vec<_> = case.reasons.iter().map(|reason| reason.code.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// The number of scripts.
pub(crate) fn shard_count(evaluation: &Evaluation) -> usize {
    evaluation.cases.len().div_ceil(CASES_PER_SHARD)
}

/// The scripts with their paths. Cases are sorted worst first.
pub(crate) fn scripts<'a>(
    site: &'a Site<'_>,
    evaluation: &'a Evaluation,
) -> impl Iterator<Item = (String, String)> + use<'a> {
    let sorted = evaluation.worst_first();
    let columns = UsageColumns::new(evaluation);
    (0..shard_count(evaluation)).map(move |index| {
        let start = index * CASES_PER_SHARD;
        let cases = &sorted[start..sorted.len().min(start + CASES_PER_SHARD)];
        (format!("{SEARCH_FOLDER}/{index}.js"), script(site, &columns, index, cases))
    })
}

fn script(site: &Site<'_>, columns: &UsageColumns, index: usize, cases: &[&CaseEvaluation]) -> String {
    let mut strings = StringTable::default();
    let cases: Vec<Value> = cases.iter().map(|case| case_data(site, columns, case, &mut strings)).collect();
    let data = json!({"strings": strings.list, "cases": cases}).to_string();
    format!("counterproof.addCases({index}, {});\n", escape(&data))
}

/// The data of a case: id, name of the page (0 without a page, 1 if it equals the id), title, verdict, risk, severity, reason,
/// suite, the reason codes, tools and tags as indexes into the string table, and the cells about time, size and cost.
fn case_data(site: &Site<'_>, columns: &UsageColumns, case: &CaseEvaluation, strings: &mut StringTable) -> Value {
    let stem = site.pages.stem(&case.case_id);
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
        case_row::severity(case),
        case_row::reason(case),
        case.suite.as_deref().map(display::visible).unwrap_or_default(),
        strings.indexes(reason_codes(case)),
        strings.indexes(case.tools.iter().map(String::as_str)),
        strings.indexes(case.tags.iter().map(String::as_str)),
        columns.cells(case).iter().map(cell_data).collect::<Vec<_>>(),
    ])
}

/// A cell: its value, or the value with its change.
fn cell_data(cell: &UsageCell) -> Value {
    if cell.change.is_empty() { json!(cell.value) } else { json!([cell.value, cell.change]) }
}

/// Escapes JSON for a script: no markup, and no line separator that JSON allows but older JavaScript does not.
fn escape(json: &str) -> String {
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
