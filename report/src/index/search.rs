//! The filters of the index, and the data that they search.

use std::collections::{BTreeMap, HashMap};

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation};
use counterproof_evaluator::worst_first;
use serde_json::json;

use super::case_lists::CaseLists;
use super::rows::Rows;
use crate::folder::{CASES_PER_SHARD, SEARCH_FOLDER, shard_count};
use crate::site::Site;
use crate::view::display;
use crate::view::verdict;

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

/// The filters besides the chips. Filters without choices are omitted.
pub(crate) fn filters(evaluation: &Evaluation) -> Vec<Filter> {
    let cases = &evaluation.cases;
    let all = [
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

/// The scripts with their paths. Cases are sorted worst first.
pub(crate) fn scripts<'a>(
    site: &'a Site<'_>,
    evaluation: &'a Evaluation,
    lists: &'a CaseLists<'a>,
    rows: &'a Rows<'a>,
) -> impl Iterator<Item = (String, String)> + use<'a> {
    let sorted: Vec<_> = worst_first(evaluation).iter().map(|ranked| ranked.case).collect();
    let (slugs, of_case) = lists.by_case();
    (0..shard_count(sorted.len())).map(move |index| {
        let start = index * CASES_PER_SHARD;
        let cases = &sorted[start..sorted.len().min(start + CASES_PER_SHARD)];
        // The same codes, tools and tags occur in most cases.
        let mut strings = StringTable::default();
        let data = |case: &&CaseEvaluation| {
            let lists = of_case.get(&case.case_id).map(Vec::as_slice).unwrap_or_default();
            case_data(site, rows, case, lists, &mut strings)
        };
        // As text: values of thousands of cases would be the most memory that a report takes.
        let cases = cases.iter().map(data).collect::<Vec<_>>().join(",");
        let (lists, strings) = (json!(slugs), json!(strings.list));
        let data = format!(r#"{{"lists":{lists},"strings":{strings},"cases":[{cases}]}}"#);
        // A script that calls a function, because a page that is opened from disk may not fetch files.
        (format!("{SEARCH_FOLDER}/{index}.js"), format!("counterproof.addCases({index}, {});\n", escape(&data)))
    })
}

/// The data of a case as JSON: id, name of the page (0 without a page, 1 if it equals the id), request, class and text of its label, effects,
/// note, in how many runs it is seen (text, squares of new and baseline), duration, risk, suite, the indexes of its lists, and the
/// reason codes, tools and tags as indexes into the string table, and 1 if it is unconfirmed.
fn case_data(
    site: &Site<'_>,
    rows: &Rows<'_>,
    case: &CaseEvaluation,
    lists: &[usize],
    strings: &mut StringTable,
) -> String {
    let stem = site.pages.stem(&case.case_id);
    // Numbers for the usual cases, because every byte occurs once per case.
    let page = match site.selection.includes(case.verdict) {
        false => json!(0),
        true if stem == case.case_id.as_str() => json!(1),
        true => json!(stem),
    };
    let row = rows.row(case);
    let squares = |squares: &[bool]| squares.iter().map(|failed| if *failed { 'x' } else { '.' }).collect::<String>();
    json!([
        case.case_id,
        page,
        row.asked,
        row.label.class(),
        row.label.text(),
        row.effects,
        row.note,
        [row.seen.text.as_str(), squares(&row.seen.new).as_str(), squares(&row.seen.baseline).as_str()],
        row.duration,
        verdict::risk(case.risk_level).unwrap_or_default(),
        case.suite.as_deref().map(display::visible).unwrap_or_default(),
        lists,
        strings.indexes(reason_codes(case)),
        strings.indexes(case.tools.iter().map(String::as_str)),
        strings.indexes(case.tags.iter().map(String::as_str)),
        u8::from(row.label.is_unconfirmed),
    ])
    .to_string()
}

/// JSON for a script.
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
    use serde_json::Value;

    use super::*;

    #[test]
    fn data_contain_no_markup_and_keep_their_value() {
        let value = json!({"a": "</script><!-- \u{2028}"});
        let script = escape(&value.to_string());
        assert!(!script.contains('<') && !script.contains('\u{2028}'), "{script}");
        assert_eq!(serde_json::from_str::<Value>(&script).unwrap(), value);
    }
}
