//! The index page: the gate, the changes by root cause, and the compared runs.

use askama::Template;
use counterproof_artifact::evaluation::{Evaluation, Verdict};

use super::case_row::CaseRow;
use super::gate::{self, BarPart, ComparisonRuleView, GateHeadlineView, GateRuleView, ReviewView};
use super::root_causes::{self, CASES_SHOWN, Group, GroupsView, Section};
use super::runs::{self, FactView};
use super::search::{self, Filter};
use super::usage_columns::UsageColumns;
use crate::files::FileLink;
use crate::layout;
use crate::site::Site;
use crate::view::changes::ChangesView;
use crate::view::display;
use counterproof_evaluator::evaluation_text;
use counterproof_evaluator::text;

/// The view of the page.
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
    review: Vec<ReviewView>,
    rules: Vec<GateRuleView>,
    bar: Vec<BarPart>,
    /// The text alternative of the bar.
    bar_text: String,
    /// The sentences below the gate.
    notes: Vec<String>,
    filters: Vec<Filter>,
    /// The number of scripts with case data.
    shards: usize,
    /// The names of the columns about time, size and cost.
    columns: Vec<&'static str>,
    changes: GroupsView,
    noise: GroupsView,
    noise_summary: String,
    unchanged: Vec<CaseRow>,
    unchanged_summary: String,
    unchanged_list: String,
}

impl IndexPage {
    /// The index page of a finished comparison.
    pub(crate) fn new(site: &Site<'_>, evaluation: &Evaluation, groups: &[Group<'_>]) -> Self {
        let documents = site.documents();
        let settings = documents.map(runs::different_settings);
        let bar = gate::bar(evaluation);
        let counts: Vec<_> = bar.iter().map(|part| format!("{} {}", part.count, part.verdict.word)).collect();
        let count = |verdict| display::number(evaluation.counts.get(&verdict).copied().unwrap_or(0));
        let columns = UsageColumns::new(evaluation);
        let unchanged = evaluation.cases.iter().filter(|case| case.verdict == Verdict::Unchanged);
        Self {
            root: "",
            baseline_id: evaluation.baseline.run_id.to_string(),
            new_id: evaluation.new.run_id.to_string(),
            compared: compared(evaluation, settings.as_ref()),
            facts: runs::facts(evaluation, documents),
            settings,
            comparison_rules: gate::comparison_rules(evaluation),
            runs: site.run_files().into_iter().map(|(side, file)| (side.as_str(), file.link)).collect(),
            evaluator: evaluation.evaluator_version.clone(),
            headline: gate::headline(evaluation),
            review: gate::review(site, evaluation),
            rules: gate::rules(evaluation),
            bar,
            bar_text: text::list(&counts),
            notes: notes(evaluation),
            filters: search::filters(evaluation),
            shards: search::shard_count(evaluation),
            columns: columns.names(),
            changes: root_causes::view(site, &columns, groups, Section::Changes),
            noise: root_causes::view(site, &columns, groups, Section::Noise),
            noise_summary: format!("{} noisy: within the variation between baseline runs", count(Verdict::Noisy)),
            unchanged: unchanged.take(CASES_SHOWN).map(|case| CaseRow::new(site, case)).collect(),
            unchanged_summary: format!("{} unchanged", count(Verdict::Unchanged)),
            unchanged_list: layout::verdict_list(Verdict::Unchanged, 1),
        }
    }
}

fn notes(evaluation: &Evaluation) -> Vec<String> {
    let mut notes = vec![evaluation_text::case_summary(evaluation), evaluation_text::repeats(evaluation)];
    notes.extend(evaluation_text::suite(evaluation));
    notes.extend(evaluation_text::usage(evaluation));
    notes
}

/// One line about the comparison: the number of cases and runs, and whether the settings differ.
fn compared(evaluation: &Evaluation, settings: Option<&ChangesView>) -> String {
    let cases = display::number(evaluation.cases.len() as u64);
    let cases = format!("{cases} {}", if evaluation.cases.len() == 1 { "case" } else { "cases" });
    let runs = evaluation.repeats.as_ref().map(|repeats| {
        let count = |runs: usize| display::number(runs as u64);
        format!("{} baseline runs, {} new runs", count(repeats.baseline.len()), count(repeats.new.len()))
    });
    let settings = match settings.map(|settings| settings.list.len()) {
        None => "settings unknown without the run folders".to_owned(),
        Some(0) => "same settings".to_owned(),
        Some(1) => "1 setting differs".to_owned(),
        Some(count) => format!("{count} settings differ"),
    };
    [Some(cases), runs, Some(settings)].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
