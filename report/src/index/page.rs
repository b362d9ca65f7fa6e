//! The index page: the first screen, the rows of all cases, and the facts about the runs and the gate.

use askama::Template;
use counterproof_artifact::evaluation::Evaluation;
use counterproof_evaluator::evaluation_text::{self, TableRow};
use counterproof_evaluator::{Decision, gate_headline, is_alone, text};

use super::case_lists::CaseLists;
use super::first_screen::{self, BarPart, Chip, NoticeView, VerdictCard, WorstView};
use super::groups::{self, Group, GroupView};
use super::rows::Rows;
use super::runs::{self, FactView};
use super::search::{self, Filter};
use crate::files::FileLink;
use crate::site::{Site, night_anchor};
use crate::view::changes::ChangesView;
use crate::view::display;

#[derive(Debug, Template)]
#[template(path = "index/page.html")]
pub(crate) struct IndexPage {
    root: &'static str,
    /// The name under which the browser stores marks.
    report: String,
    /// The links to the history, and to the row of this night in it; `None` without a history.
    history: Option<(String, String)>,
    baseline: RunLine,
    new: RunLine,
    compared: String,
    is_alone: bool,
    card: VerdictCard,
    notices: Vec<NoticeView>,
    worst: Option<WorstView>,
    all: String,
    bar: Vec<BarPart>,
    bar_text: String,
    numbers: Vec<TableRow>,
    chips: Vec<Chip>,
    filters: Vec<Filter>,
    shards: usize,
    groups: Vec<GroupView>,
    more_groups: String,
    has_suites: bool,
    facts: Vec<FactView>,
    /// The settings that differ; `None` where the run documents are unknown.
    settings: Option<ChangesView>,
    comparison_rules: Vec<ComparisonRuleView>,
    runs: Vec<(&'static str, FileLink)>,
    gate: String,
    rules: Vec<GateRuleView>,
    notes: Vec<String>,
    evaluator: String,
}

/// A run in the first line.
#[derive(Debug)]
struct RunLine {
    id: String,
    /// The date, the commit and the model, where they are recorded.
    caption: String,
}

#[derive(Debug, Clone)]
pub(crate) struct ComparisonRuleView {
    pub(crate) rule: String,
    pub(crate) matches: String,
}

#[derive(Debug, Clone)]
pub(crate) struct GateRuleView {
    pub(crate) name: String,
    pub(crate) actual: String,
    pub(crate) limit: String,
    /// `met` or `violated`; `for information` for a rule without a limit.
    pub(crate) result: &'static str,
}

impl IndexPage {
    pub(crate) fn new(
        site: &Site<'_>,
        evaluation: &Evaluation,
        decision: &Decision,
        groups: &[Group<'_>],
        lists: &CaseLists<'_>,
        rows: &Rows<'_>,
    ) -> Self {
        let documents = site.documents();
        let bar = first_screen::bar(lists);
        let counts: Vec<_> =
            bar.iter().map(|part| format!("{} {}{}", part.count, part.word.as_str(), part.unconfirmed)).collect();
        let (group_views, more_groups) = groups::views(rows, groups);
        let line = |run: &counterproof_artifact::evaluation::ComparedRun, document| RunLine {
            id: run.run_id.to_string(),
            caption: runs::caption(run, document),
        };
        Self {
            root: "",
            report: site.name.clone(),
            history: site.history.clone().zip(site.in_history(&night_anchor(evaluation.new.run_id.as_str()))),
            baseline: line(&evaluation.baseline, documents.map(|runs| runs.baseline)),
            new: line(&evaluation.new, documents.map(|runs| runs.new)),
            compared: compared(evaluation),
            is_alone: is_alone(evaluation),
            card: first_screen::verdict_card(site, evaluation, decision, lists),
            notices: first_screen::notices(evaluation, lists),
            worst: first_screen::worst(site, evaluation, decision),
            all: format!("All {}", text::count(evaluation.cases.len(), "case", "cases")),
            bar_text: text::list(&counts),
            bar,
            numbers: first_screen::numbers(evaluation),
            chips: first_screen::chips(lists),
            filters: search::filters(evaluation),
            shards: crate::folder::shard_count(evaluation.cases.len()),
            groups: group_views,
            more_groups,
            has_suites: evaluation.cases.iter().any(|case| case.suite.is_some()),
            facts: runs::facts(evaluation, documents),
            settings: documents.map(runs::different_settings),
            comparison_rules: comparison_rules(evaluation),
            runs: site.run_files().into_iter().map(|(side, file)| (side.as_str(), file.link)).collect(),
            gate: display::visible(&gate_headline(evaluation)),
            rules: gate_rules(evaluation),
            notes: notes(evaluation),
            evaluator: evaluation.evaluator_version.clone(),
        }
    }
}

/// The number of cases, and of runs per side.
fn compared(evaluation: &Evaluation) -> String {
    let cases = text::count(evaluation.cases.len(), "case", "cases");
    let runs = match &evaluation.repeats {
        _ if is_alone(evaluation) => return cases,
        None => "1 run per side".to_owned(),
        Some(repeats) if repeats.baseline.len() == repeats.new.len() => format!("{} runs per side", repeats.new.len()),
        Some(repeats) => {
            format!(
                "{} and {}",
                text::count(repeats.baseline.len(), "run", "runs"),
                text::count(repeats.new.len(), "run", "runs")
            )
        }
    };
    format!("{cases}, {runs}")
}

fn notes(evaluation: &Evaluation) -> Vec<String> {
    if is_alone(evaluation) {
        return Vec::new();
    }
    let mut notes = vec![evaluation_text::case_summary(evaluation), evaluation_text::repeats(evaluation)];
    notes.extend(evaluation_text::suite(evaluation));
    notes.into_iter().map(|note| display::visible(&note)).collect()
}

fn gate_rules(evaluation: &Evaluation) -> Vec<GateRuleView> {
    let rules = evaluation.gate.rules.iter().map(|rule| GateRuleView {
        name: display::visible(&evaluation_text::rule(rule)),
        actual: display::number(rule.actual),
        limit: display::visible(&evaluation_text::tested(rule, evaluation)),
        result: match (rule.passed, rule.is_limited()) {
            (true, false) => "for information",
            (true, true) => "met",
            (false, _) => "violated",
        },
    });
    rules.collect()
}

fn comparison_rules(evaluation: &Evaluation) -> Vec<ComparisonRuleView> {
    let rules = evaluation
        .rules
        .iter()
        .map(|used| ComparisonRuleView { rule: display::visible(&used.rule), matches: display::number(used.matched) });
    rules.collect()
}
