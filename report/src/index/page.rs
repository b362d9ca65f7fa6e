//! The index page: the gate, the changes by root cause, the compared runs with their different settings, and the columns of usage.

use std::collections::BTreeMap;

use askama::Template;
use counterproof_artifact::evaluation::{CaseEvaluation, ComparedRun, Evaluation, UsageCode, Verdict};
use counterproof_artifact::{Count, Run, Sides, Stats};
use counterproof_evaluator::evaluation_text::{self, TableRow};
use counterproof_evaluator::{Standing, is_alone, messages::usage, text};

use super::gate::{
    self, BarPart, CASES_SHOWN, ComparisonRuleView, GateHeadlineView, GateRuleView, Group, GroupsView, ReviewView,
    Section,
};
use super::lists::{self, CaseRow, Filter};
use crate::files::FileLink;
use crate::folder;
use crate::site::Site;
use crate::view::changes::{self, ChangesView};
use crate::view::display::{self, Budget};

#[derive(Debug, Template)]
#[template(path = "index/page.html")]
pub(crate) struct IndexPage {
    root: &'static str,
    baseline_id: String,
    new_id: String,
    compared: String,
    facts: Vec<FactView>,
    /// The settings that differ; `None` where the run documents are unknown.
    settings: Option<ChangesView>,
    comparison_rules: Vec<ComparisonRuleView>,
    runs: Vec<(&'static str, FileLink)>,
    evaluator: String,
    headline: GateHeadlineView,
    convicted: Vec<ReviewView>,
    unconfirmed: Vec<ReviewView>,
    review: Vec<ReviewView>,
    table: Vec<TableRow>,
    rules: Vec<GateRuleView>,
    met_rules: Option<String>,
    bar: Vec<BarPart>,
    bar_text: String,
    /// The sentences below the gate.
    notes: Vec<String>,
    filters: Vec<Filter>,
    shards: usize,
    columns: Vec<&'static str>,
    changes: GroupsView,
    noise: GroupsView,
    noise_summary: String,
    unchanged: Vec<CaseRow>,
    unchanged_summary: String,
    unchanged_list: String,
}

impl IndexPage {
    pub(crate) fn new(site: &Site<'_>, evaluation: &Evaluation, groups: &[Group<'_>]) -> Self {
        let documents = site.documents();
        let settings = documents.map(different_settings);
        let bar = gate::bar(evaluation);
        let counts: Vec<_> =
            bar.iter().map(|part| format!("{} {}{}", part.count, part.verdict.word, part.unconfirmed)).collect();
        let count = |verdict| display::number(evaluation.counts.get(&verdict).copied().unwrap_or(0));
        let columns = UsageColumns::new(evaluation);
        let unchanged = evaluation.cases.iter().filter(|case| case.verdict == Verdict::Unchanged);
        Self {
            root: "",
            baseline_id: if is_alone(evaluation) {
                "no baseline".to_owned()
            } else {
                evaluation.baseline.run_id.to_string()
            },
            new_id: evaluation.new.run_id.to_string(),
            compared: compared(evaluation, settings.as_ref()),
            facts: facts(evaluation, documents),
            settings,
            comparison_rules: gate::comparison_rules(evaluation),
            runs: site.run_files().into_iter().map(|(side, file)| (side.as_str(), file.link)).collect(),
            evaluator: evaluation.evaluator_version.clone(),
            headline: gate::headline(evaluation),
            convicted: gate::cases(site, evaluation, Standing::Convicted),
            unconfirmed: gate::cases(site, evaluation, Standing::Unconfirmed),
            // Without a baseline, both columns would be the same run.
            table: if is_alone(evaluation) { Vec::new() } else { evaluation_text::table(evaluation) },
            met_rules: evaluation_text::met_rules(&evaluation.gate),
            review: gate::review(site, evaluation),
            rules: gate::rules(evaluation),
            bar,
            bar_text: text::list(&counts),
            notes: notes(evaluation),
            filters: lists::filters(evaluation),
            shards: lists::shard_count(evaluation),
            columns: columns.names(),
            changes: gate::root_causes(site, &columns, groups, Section::Changes),
            noise: gate::root_causes(site, &columns, groups, Section::Noise),
            noise_summary: format!("{} noisy: within the variation between baseline runs", count(Verdict::Noisy)),
            unchanged: unchanged.take(CASES_SHOWN).map(|case| CaseRow::new(site, case)).collect(),
            unchanged_summary: format!("{} unchanged", count(Verdict::Unchanged)),
            unchanged_list: folder::verdict_list(Verdict::Unchanged, 1),
        }
    }
}

fn notes(evaluation: &Evaluation) -> Vec<String> {
    if is_alone(evaluation) {
        return Vec::new();
    }
    let mut notes = vec![evaluation_text::case_summary(evaluation), evaluation_text::repeats(evaluation)];
    notes.extend(evaluation_text::suite(evaluation));
    notes
}

/// One line about the comparison: the number of cases and runs, and whether the settings differ.
fn compared(evaluation: &Evaluation, settings: Option<&ChangesView>) -> String {
    let cases = display::number(evaluation.cases.len() as u64);
    let cases = format!("{cases} {}", if evaluation.cases.len() == 1 { "case" } else { "cases" });
    let runs = evaluation.repeats.as_ref().map(|repeats| {
        let count = |runs: usize, side: &str| {
            format!("{} {side} {}", display::number(runs as u64), if runs == 1 { "run" } else { "runs" })
        };
        format!("{}, {}", count(repeats.baseline.len(), "baseline"), count(repeats.new.len(), "new"))
    });
    let settings = match settings.map(|settings| settings.list.len()) {
        _ if is_alone(evaluation) => return cases,
        None => "settings unknown without the run folders".to_owned(),
        Some(0) => "same settings".to_owned(),
        Some(1) => "1 setting differs".to_owned(),
        Some(count) => format!("{count} settings differ"),
    };
    [Some(cases), runs, Some(settings)].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// The field of the stats with the number of cases by status.
const STATUSES: &str = "statuses";

/// Fields that identify a run or describe its course. Every other field is a setting.
const NOT_SETTINGS: [&str; 14] = [
    "schema_version",
    "run_id",
    "group_id",
    "repeat",
    "version",
    "generated_at",
    "out_dir",
    "selected_case_ids",
    "expectation_digests",
    "runner_version",
    "repo_commit",
    "dirty",
    "stats",
    "accepted",
];

#[derive(Debug, Clone)]
pub(crate) struct FactView {
    pub(crate) name: &'static str,
    pub(crate) baseline: String,
    pub(crate) new: String,
}

/// The facts of both runs, from the evaluation and from the run documents if they are known.
pub(crate) fn facts(evaluation: &Evaluation, documents: Option<Sides<&Run>>) -> Vec<FactView> {
    let compared = Sides { baseline: &evaluation.baseline, new: &evaluation.new };
    let fact = |name, value: fn(&ComparedRun) -> String| fact_view(name, compared.map(value));
    let mut facts = vec![
        fact("Run", |run| run.run_id.to_string()),
        fact("Started", |run| run.generated_at.clone()),
        fact("Commit", commit),
        fact("Runner", |run| run.runner_version.clone()),
        fact("Cases selected", |run| display::number(run.cases_selected)),
    ];
    if let Some(documents) = documents {
        facts.push(fact_view("Result", documents.map(stats)));
        if documents.iter().any(|(_, run)| run.accepted.is_some()) {
            facts.push(fact_view("Accepted", documents.map(accepted)));
        }
    }
    facts
}

fn fact_view(name: &'static str, Sides { baseline, new }: Sides<String>) -> FactView {
    FactView { name, baseline: display::visible(&baseline), new: display::visible(&new) }
}

/// When and why a run was accepted as the baseline.
fn accepted(run: &Run) -> String {
    let Some(accepted) = &run.accepted else { return "no".to_owned() };
    let by = accepted.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    format!("{}{by}: {}", accepted.at, accepted.reason)
}

fn commit(run: &ComparedRun) -> String {
    match (&run.repo_commit, run.dirty) {
        (None, _) => "not recorded".to_owned(),
        (Some(commit), Some(true)) => format!("{commit}, with uncommitted changes"),
        (Some(commit), Some(false) | None) => commit.clone(),
    }
}

fn stats(run: &Run) -> String {
    let Some(stats) = &run.stats else { return "not finished".to_owned() };
    let count = |count: &Count, word: &str| format!("{} {}", display::number(count.get()), display::visible(word));
    // Recorded runs have a status for each case instead of counts of answers.
    let mut parts: Vec<_> = if let Some(statuses) = statuses(stats) {
        statuses.iter().map(|(status, number)| count(number, status)).collect()
    } else {
        let counted = [(stats.cases_completed, "answered"), (stats.cases_failed, "failed")];
        counted.into_iter().filter_map(|(number, word)| Some(count(&number?, word))).collect()
    };
    parts.extend(stats.duration_ms.as_ref().map(|millis| format!("in {}", display::duration(millis.as_f64()))));
    parts.join(", ")
}

/// How many cases ended with each status, for recorded runs.
fn statuses(stats: &Stats) -> Option<BTreeMap<String, Count>> {
    serde_json::from_value(stats.extra.get(STATUSES)?.clone()).ok()
}

pub(crate) fn different_settings(documents: Sides<&Run>) -> ChangesView {
    let comparable = |run: &Run| Run { base_url: without_local_port(&run.base_url), ..run.clone() };
    let documents = documents.map(comparable);
    let documents = Sides::new(&documents.baseline, &documents.new);
    let changes = counterproof_evaluator::different_settings(documents, |field| !NOT_SETTINGS.contains(&field));
    changes::changes_view(&changes, &Budget::for_page())
}

/// Returns a base URL without its port if the host is this machine. The port of an agent that was started is any free one.
fn without_local_port(url: &str) -> String {
    for host in ["http://127.0.0.1", "http://localhost", "http://[::1]"] {
        if let Some(rest) = url.strip_prefix(host).and_then(|rest| rest.strip_prefix(':')) {
            return format!("{host}{}", rest.trim_start_matches(|digit: char| digit.is_ascii_digit()));
        }
    }
    url.to_owned()
}

/// The quantities that lists can show. Tool time is a part of the duration, and only on the page of the case.
const LISTED: [UsageCode; 4] = [UsageCode::Duration, UsageCode::Steps, UsageCode::Tokens, UsageCode::Cost];

/// The quantities that the lists of a comparison show: those that new has in some case.
#[derive(Debug, Clone)]
pub(crate) struct UsageColumns {
    codes: Vec<UsageCode>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsageCell {
    /// The name of the quantity, for lists without columns.
    pub(crate) name: &'static str,
    /// The value; empty where new does not have it.
    pub(crate) value: String,
    /// The change against baseline if it is notable; otherwise empty.
    pub(crate) change: String,
}

impl UsageColumns {
    /// The columns of a comparison. A quantity that is 0 in every case has none.
    pub(crate) fn new(evaluation: &Evaluation) -> Self {
        let on_new = |case: &CaseEvaluation, code| case.usage.as_ref()?.new.as_ref()?.get(code);
        // A quantity that new never has would be an empty column.
        let is_shown =
            |code: &UsageCode| evaluation.cases.iter().any(|case| on_new(case, *code).is_some_and(|value| value > 0.0));
        Self { codes: LISTED.into_iter().filter(is_shown).collect() }
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.codes.iter().map(|code| usage::quantity(*code)).collect()
    }

    pub(crate) fn cells(&self, case: &CaseEvaluation) -> Vec<UsageCell> {
        self.codes.iter().map(|code| usage_cell(*code, case)).collect()
    }
}

fn usage_cell(code: UsageCode, case: &CaseEvaluation) -> UsageCell {
    let new = case.usage.as_ref().and_then(|sides| sides.new.as_ref());
    let value = new.and_then(|side| Some(usage::amount(code, side.get(code)?, side.currency_of(code))));
    let change = case.usage.as_ref().and_then(|sides| sides.compared(code));
    UsageCell {
        name: usage::quantity(code),
        value: value.unwrap_or_default(),
        change: change.and_then(|(baseline, new)| usage::notable_change(code, baseline, new)).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn run(id: &str, repeat: u32, repeats: u32) -> Run {
        serde_json::from_value(json!({
            "schema_version": "run.v1", "run_id": format!("{id}-r{repeat}"), "version": "new",
            "generated_at": "2026-01-01T00:00:00Z", "base_url": "http://a", "cases_path": "c.json", "out_dir": "..",
            "selected_case_ids": [], "runner_version": "v", "group_id": id, "repeat": repeat, "repeats": repeats,
        }))
        .unwrap()
    }

    #[test]
    fn the_port_of_this_machine_is_not_a_setting() {
        let at = |url: &str| Run { base_url: url.to_owned(), ..run("a", 1, 1) };
        let changes =
            |baseline: &str, new: &str| different_settings(Sides { baseline: &at(baseline), new: &at(new) }).list.len();
        assert_eq!(changes("http://127.0.0.1:4001/v1", "http://127.0.0.1:4002/v1"), 0);
        assert_eq!(changes("http://127.0.0.1:4001/v1", "http://127.0.0.1:4002/v2"), 1);
        assert_eq!(changes("http://agent:4001", "http://agent:4002"), 1);
    }

    #[test]
    fn recorded_runs_have_their_statuses_instead_of_answers() {
        let result = |value: Value| stats(&Run { stats: serde_json::from_value(value).unwrap(), ..run("a", 1, 1) });
        let counted = json!({"cases_completed": 3, "cases_failed": 0});
        assert_eq!(result(counted), "3 answered, 0 failed");
        let recorded = json!({"cases_completed": 3, "cases_failed": 0, "statuses": {"SUCCEEDED": 1, "FAILED": 2}});
        assert_eq!(result(recorded), "2 FAILED, 1 SUCCEEDED");
    }

    #[test]
    fn the_identity_of_a_run_or_group_is_not_a_setting() {
        assert!(different_settings(Sides { baseline: &run("a", 1, 3), new: &run("b", 2, 3) }).list.is_empty());
        assert_eq!(different_settings(Sides { baseline: &run("a", 1, 3), new: &run("b", 1, 5) }).list.len(), 1);
    }

    fn case(usage: &serde_json::Value) -> CaseEvaluation {
        let case = json!({"case_id": "c", "verdict": "changed", "reasons": [], "usage": usage});
        serde_json::from_value(case).unwrap()
    }

    #[test]
    fn a_cell_has_the_value_of_new_and_a_notable_change() {
        let both =
            |baseline: serde_json::Value, new: serde_json::Value| case(&json!({"baseline": baseline, "new": new}));
        let text = |code, case: &CaseEvaluation| {
            let cell = usage_cell(code, case);
            (cell.value, cell.change)
        };
        let strings = |value: &str, change: &str| (value.to_owned(), change.to_owned());
        let grown =
            both(json!({"steps": 5, "cost": 1, "currency": "USD"}), json!({"steps": 95, "cost": 3, "currency": "EUR"}));
        assert_eq!(text(UsageCode::Steps, &grown), strings("95", "×19"));
        assert_eq!(text(UsageCode::Cost, &grown), strings("3 EUR", ""), "other currencies are not compared");
        assert_eq!(text(UsageCode::Duration, &grown), strings("", ""));
        assert_eq!(text(UsageCode::Steps, &case(&json!({"new": {"steps": 3}}))), strings("3", ""));
        assert_eq!(text(UsageCode::Steps, &case(&json!({"baseline": {"steps": 3}}))), strings("", ""));
    }
}
