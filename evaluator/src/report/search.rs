//! What the first page finds cases by: the choices of each filter, and all cases as data, in scripts that call a function.
//! A page that was opened from disk may not fetch anything, but it may load scripts of its folder.

use std::collections::{BTreeMap, HashMap};

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation};
use counterproof_store::write::{self, Durability};
use serde_json::{Value, json};

use super::case_rows;
use super::folder::SEARCH_FOLDER;
use super::shown;
use super::verdicts;
use super::writer::{ReportError, ReportWriter};

/// Cases of one script: about a megabyte.
const CASES_OF_A_SHARD: usize = 3_000;

/// Choices of one filter: those of most cases.
const MOST_CHOICES: usize = 200;

/// A choice of a filter.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    /// What stands in the data and in the address.
    pub(super) value: String,
    /// What the reader sees.
    pub(super) label: String,
}

/// A filter and its choices.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    /// Its name in the address.
    pub(super) name: &'static str,
    /// Its label.
    pub(super) label: &'static str,
    /// What can be chosen.
    pub(super) choices: Vec<Choice>,
}

/// The filters of a comparison; those in which nothing could be chosen are left out.
pub(super) fn filters(evaluation: &Evaluation) -> Vec<Filter> {
    let cases = &evaluation.cases;
    let verdicts = super::overview::bar(evaluation).into_iter().map(|part| Choice {
        value: part.verdict.class.to_owned(),
        label: format!("{} ({})", part.verdict.word, part.count),
    });
    let all = [
        Filter { name: "verdict", label: "Verdict", choices: verdicts.collect() },
        filter("risk", "Risk", cases, |case| verdicts::risk(case.risk_level).into_iter().collect()),
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
        let value = shown::visible(value);
        Choice { label: format!("{value} ({})", shown::number(count)), value }
    };
    Filter { name, label, choices: counted.into_iter().map(choice).collect() }
}

/// The codes of a case's reasons, each once.
fn reason_codes(case: &CaseEvaluation) -> Vec<&str> {
    let mut codes: Vec<_> = case.reasons.iter().map(|reason| reason.code.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// Into how many scripts the cases are divided.
pub(super) fn shard_count(evaluation: &Evaluation) -> usize {
    evaluation.cases.len().div_ceil(CASES_OF_A_SHARD)
}

/// Writes the cases as data, the worst first.
pub(super) fn write(report: &ReportWriter<'_>, evaluation: &Evaluation) -> Result<(), ReportError> {
    for (index, cases) in evaluation.worst_first().chunks(CASES_OF_A_SHARD).enumerate() {
        let script = script(report, index, cases);
        let path = report.out().join(SEARCH_FOLDER).join(format!("{index}.js"));
        write::write(&path, script.as_bytes(), Durability::Cached)?;
    }
    Ok(())
}

/// One script. A case is a list: its id, its page's name (0 without a page, 1 where it is the id), its title, verdict, risk,
/// severity, reason, suite, and the lists of its reasons' codes, its tools and its tags as places in `words`.
fn script(report: &ReportWriter<'_>, index: usize, cases: &[&CaseEvaluation]) -> String {
    let mut words = Words::default();
    let rows: Vec<Value> = cases
        .iter()
        .map(|case| {
            let stem = report.pages.stem(&case.case_id);
            let page = match report.selection.includes(case.verdict) {
                false => json!(0),
                true if stem == case.case_id.as_str() => json!(1),
                true => json!(stem),
            };
            let mut places = |list: Vec<&str>| list.into_iter().map(|word| words.place(word)).collect::<Vec<_>>();
            json!([
                case.case_id,
                page,
                case.title.as_deref().map(shown::visible).unwrap_or_default(),
                verdicts::show(case.verdict).class,
                verdicts::risk(case.risk_level).unwrap_or_default(),
                case_rows::severity(case),
                case_rows::reason(case),
                case.suite.as_deref().map(shown::visible).unwrap_or_default(),
                places(reason_codes(case)),
                places(case.tools.iter().map(String::as_str).collect()),
                places(case.tags.iter().map(String::as_str).collect()),
            ])
        })
        .collect();
    let data = json!({"strings": words.list, "cases": rows}).to_string();
    format!("counterproof.addCases({index}, {});\n", harmless(&data))
}

/// JSON as it may stand in a script, whatever reads that script: no markup, and no end of a line that JSON does not know.
fn harmless(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// Words that many cases have, each told once.
#[derive(Debug, Default)]
struct Words {
    list: Vec<String>,
    places: HashMap<String, usize>,
}

impl Words {
    fn place(&mut self, word: &str) -> usize {
        let word = shown::visible(word);
        *self.places.entry(word.clone()).or_insert_with(|| {
            self.list.push(word);
            self.list.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_holds_no_markup_and_stays_the_same_data() {
        let value = json!({"a": "</script><!-- \u{2028}"});
        let script = harmless(&value.to_string());
        assert!(!script.contains('<') && !script.contains('\u{2028}'), "{script}");
        assert_eq!(serde_json::from_str::<Value>(&script).unwrap(), value);
    }
}
