//! The first page: whether it may go out, what moved, and what was compared.

use askama::Template;
use counterproof_artifact::evaluation::{Evaluation, Verdict};

use super::case_rows::CaseRow;
use super::changes::ChangesShown;
use super::files::FileLink;
use super::lists;
use super::moved::{self, CASES_SHOWN, Group, GroupsShown};
use super::overview::{self, BarPart, ComparingShown, OutcomeShown, RuleShown};
use super::runs::{self, FactShown};
use super::search::{self, Filter};
use super::shown;
use super::writer::{ReportError, ReportWriter};
use crate::comparison::evaluation_text;
use crate::values::text;

/// The page, ready to be shown.
#[derive(Debug, Template)]
#[template(path = "index/page.html")]
pub(super) struct IndexPage {
    root: &'static str,
    baseline_id: String,
    new_id: String,
    compared: String,
    besides: String,
    repeats: String,
    suite: Vec<String>,
    outcome: OutcomeShown,
    rules: Vec<RuleShown>,
    facts: Vec<FactShown>,
    /// `None` where the run documents are not there to tell.
    settings: Option<ChangesShown>,
    evaluator: String,
    comparing: Vec<ComparingShown>,
    runs: Vec<(&'static str, FileLink)>,
    bar: Vec<BarPart>,
    bar_words: String,
    filters: Vec<Filter>,
    shards: usize,
    moved: GroupsShown,
    noise: GroupsShown,
    noise_words: String,
    unchanged: Vec<CaseRow>,
    unchanged_words: String,
    unchanged_list: String,
}

impl IndexPage {
    /// The first page of a finished comparison.
    pub(super) fn of(
        report: &ReportWriter<'_>,
        evaluation: &Evaluation,
        groups: &[Group<'_>],
    ) -> Result<Self, ReportError> {
        let documents = report.documents();
        let settings = documents.map(|[baseline, new]| runs::settings_that_differ(baseline, new));
        let bar = overview::bar(evaluation);
        let bar_words: Vec<_> = bar.iter().map(|part| format!("{} {}", part.count, part.verdict.word)).collect();
        let of_verdict = |verdict| evaluation.counts.get(&verdict).copied().unwrap_or(0);
        let unchanged = evaluation.cases.iter().filter(|case| case.verdict == Verdict::Unchanged);
        Ok(Self {
            root: "",
            baseline_id: evaluation.baseline.run_id.to_string(),
            new_id: evaluation.new.run_id.to_string(),
            compared: compared(evaluation, settings.as_ref()),
            outcome: overview::outcome(evaluation),
            besides: evaluation_text::besides(evaluation),
            repeats: evaluation_text::repeats(evaluation),
            suite: evaluation_text::suite(evaluation),
            rules: overview::rules(evaluation),
            facts: runs::facts(evaluation, documents),
            settings,
            evaluator: evaluation.evaluator_version.clone(),
            comparing: overview::comparing(evaluation),
            runs: report.run_links()?,
            bar,
            bar_words: text::list(&bar_words),
            filters: search::filters(evaluation),
            shards: search::shard_count(evaluation),
            moved: moved::show(report, groups, false),
            noise: moved::show(report, groups, true),
            noise_words: format!("{} noisy: no more than baseline differs from itself", of_verdict(Verdict::Noisy)),
            unchanged: unchanged.take(CASES_SHOWN).map(|case| CaseRow::of(report, case)).collect(),
            unchanged_words: format!("{} unchanged", shown::number(of_verdict(Verdict::Unchanged))),
            unchanged_list: lists::of_verdict(Verdict::Unchanged, 1),
        })
    }
}

/// What was compared, in one line: how many cases, in how many runs, and whether with the same settings.
fn compared(evaluation: &Evaluation, settings: Option<&ChangesShown>) -> String {
    let cases = shown::number(evaluation.cases.len() as u64);
    let cases = format!("{cases} {}", if evaluation.cases.len() == 1 { "case" } else { "cases" });
    let runs = evaluation.repeats.as_ref().map(|repeats| {
        format!("{} and {} runs", shown::number(repeats.baseline.len() as u64), shown::number(repeats.new.len() as u64))
    });
    let settings = match settings.map(|settings| settings.places.len()) {
        None => "without the run folders, which tell the settings".to_owned(),
        Some(0) => "the same settings".to_owned(),
        Some(1) => "1 setting differs".to_owned(),
        Some(count) => format!("{count} settings differ"),
    };
    [Some(cases), runs, Some(settings)].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
