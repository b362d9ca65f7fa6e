//! The rows of a comparison: what is known of it, of each case, and of each side and run of a case.

use std::collections::HashMap;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::{
    CaseEvaluation, ComparedRun as RunSummary, Evaluation, GateOutcome, Judgement, SideUsage, Verdict,
};
use counterproof_artifact::{RunId, Side, Sides, point_in_time};
use counterproof_evaluator::{Artifact, ComparedRun, DecisionKind, is_alone, usage_of_answer, worst_first};
use counterproof_store::{RUN_ARCHIVE, RunReader};

use crate::folder::ARTIFACTS_FOLDER;
use crate::history::{CaseResult, CaseStatus, Night};

/// Where the run folders of an evaluation may be.
#[derive(Debug, Clone)]
pub struct RunFolders {
    /// The folder of the evaluation: a report, or a run folder.
    pub evaluation: Utf8PathBuf,
    /// The folder that holds the sides.
    pub runs: Utf8PathBuf,
}

impl RunFolders {
    /// The run with this id, or else the copy of its documents in the report, which may have no artifacts.
    fn find(&self, side: Side, index: usize, run_id: &RunId) -> Option<FoundRun> {
        let is_it = |run: &RunReader| run.run().run_id == *run_id;
        let below = |folder: &Utf8Path| folder.join(side.as_str()).join(run_id.as_str());
        let sides = self.evaluation.parent().and_then(Utf8Path::parent).map(below);
        let folders = [Some(self.evaluation.clone()), sides, Some(below(&self.runs))];
        let whole = folders.into_iter().flatten().find_map(|folder| RunReader::open(&folder).ok().filter(is_it));
        if let Some(reader) = whole {
            // The artifacts of a packed run are in its archive.
            let is_whole = !reader.folder().join(RUN_ARCHIVE).exists();
            return Some(FoundRun { reader, is_whole });
        }
        let names = [side.to_string(), format!("{side}-{}", index + 1)];
        let copies = names.iter().map(|name| self.evaluation.join(ARTIFACTS_FOLDER).join(name));
        let copy = copies.filter_map(|folder| RunReader::open(&folder).ok()).find(is_it);
        copy.map(|reader| FoundRun { reader, is_whole: false })
    }
}

/// A run folder, or a copy of its documents.
struct FoundRun {
    reader: RunReader,
    is_whole: bool,
}

/// A comparison as rows.
#[derive(Debug)]
pub struct Facts<'e> {
    pub(super) comparison: Comparison,
    cases: Vec<CaseFacts<'e>>,
    sides: Sides<SideFacts>,
    /// The runs of which only the medians are known, because their folders were not found.
    pub missing: Vec<RunId>,
}

/// What is known of the whole comparison.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) night: Night,
    /// The days from 1970-01-01 to the date of the start, as the run states it.
    pub(super) day: Option<i32>,
    /// The microseconds from 1970-01-01T00:00:00Z to the start.
    pub(super) started: Option<i64>,
    pub(super) evaluator: String,
    /// Whether there was no baseline, so that new was compared with itself.
    pub(super) is_alone: bool,
}

/// What is known of a case.
#[derive(Debug)]
pub(super) struct CaseFacts<'e> {
    pub(super) evaluation: &'e CaseEvaluation,
    pub(super) result: CaseResult,
    /// The position of the case in all outputs, from 1.
    pub(super) rank: i64,
}

/// The runs of a side.
#[derive(Debug)]
struct SideFacts {
    runs: Vec<RunFacts>,
    /// Whether there are artifacts of each run, so that a row is about one run.
    is_by_run: bool,
    commit: Option<String>,
    model: Option<String>,
}

#[derive(Debug)]
struct RunFacts {
    run_id: RunId,
    commit: Option<String>,
    model: Option<String>,
    /// The run, if several runs make it necessary.
    artifacts: Option<ComparedRun>,
}

/// One row: a case on one side, in one run or over all runs of the side.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) comparison: &'a Comparison,
    pub(super) case: &'a CaseFacts<'a>,
    pub(super) side: Side,
    /// `None` over all runs.
    pub(super) run_id: Option<&'a RunId>,
    pub(super) run_index: Option<i64>,
    pub(super) runs: i64,
    pub(super) commit: Option<&'a str>,
    pub(super) model: Option<&'a str>,
    pub(super) is_answered: Option<bool>,
    pub(super) usage: Option<SideUsage>,
    /// The number of expectations that are met, and of those that are not.
    pub(super) expectations: Option<(i64, i64)>,
    pub(super) writes: Option<i64>,
}

impl<'e> Facts<'e> {
    /// Collects the facts of an evaluation. With several runs per side, the values of each run are read from its artifacts.
    pub fn new(evaluation: &'e Evaluation, folders: &RunFolders) -> Self {
        let is_alone = is_alone(evaluation);
        let mut cases: Vec<_> = evaluation
            .cases
            .iter()
            .map(|case| CaseFacts { evaluation: case, result: CaseResult::new(case, is_alone), rank: 0 })
            .collect();
        let ranked = worst_first(evaluation);
        let ranks: HashMap<_, _> = ranked.iter().zip(1..).map(|(ranked, rank)| (&ranked.case.case_id, rank)).collect();
        for case in &mut cases {
            case.rank = ranks.get(&case.evaluation.case_id).copied().unwrap_or_default();
        }
        let mut missing = Vec::new();
        let sides = Sides::from_fn(|side| SideFacts::new(evaluation, side, folders, &mut missing));
        let night = Night::new(evaluation);
        let started = point_in_time(&night.time);
        let date = night.time.get(..10).and_then(|date| date.parse::<jiff::civil::Date>().ok());
        let comparison = Comparison {
            day: date.and_then(days_since_1970),
            started: started.map(jiff::Timestamp::as_microsecond),
            evaluator: evaluation.evaluator_version.clone(),
            is_alone,
            night,
        };
        Self { comparison, cases, sides, missing }
    }

    /// The model that the first new run names.
    pub(super) fn model(&self) -> Option<&str> {
        self.sides.get(Side::New).model.as_deref()
    }

    /// The rows in the order of the evaluation; those of a case follow one another.
    pub(super) fn rows(&self) -> Vec<Row<'_>> {
        let sides_of = |case: &CaseFacts<'_>| match case.evaluation.verdict {
            _ if self.comparison.is_alone => &[Side::New][..],
            Verdict::Missing => &[Side::Baseline][..],
            Verdict::Added => &[Side::New][..],
            _ => &[Side::Baseline, Side::New][..],
        };
        let of_case = |case| sides_of(case).iter().flat_map(|side| self.of_side(case, *side));
        self.cases.iter().flat_map(of_case).collect()
    }

    fn of_side<'a>(&'a self, case: &'a CaseFacts<'a>, side: Side) -> Vec<Row<'a>> {
        let known = self.sides.get(side);
        let evaluated = case.evaluation;
        let usage = evaluated.usage.as_ref().and_then(|usage| match side {
            Side::Baseline => usage.baseline.clone(),
            Side::New => usage.new.clone(),
        });
        let writes = match side {
            Side::Baseline => evaluated.story.baseline_writes,
            Side::New => evaluated.story.new_writes,
        };
        let shared = Row {
            comparison: &self.comparison,
            case,
            side,
            run_id: None,
            run_index: None,
            runs: whole(known.runs.len()),
            commit: known.commit.as_deref(),
            model: known.model.as_deref(),
            is_answered: Some(usage.is_some()),
            writes: usage.is_some().then(|| i64::try_from(writes).unwrap_or(i64::MAX)),
            expectations: usage.is_some().then(|| expectations(evaluated, side)).flatten(),
            usage,
        };
        match &known.runs[..] {
            [only] => vec![Row { run_id: Some(&only.run_id), run_index: Some(0), ..shared }],
            // Expectations and writes are those of the displayed run only.
            _ if !known.is_by_run => vec![Row { is_answered: None, expectations: None, writes: None, ..shared }],
            runs => {
                let shown = evaluated.repeats.as_ref().map(|repeats| match side {
                    Side::Baseline => repeats.shown.baseline,
                    Side::New => repeats.shown.new,
                });
                let of_run = |(index, run)| of_run(&shared, shown == Some(index as u64), index, run);
                runs.iter().enumerate().filter_map(of_run).collect()
            }
        }
    }
}

/// The row of one of several runs; `None` if the run does not have the case.
fn of_run<'a>(shared: &Row<'a>, is_shown: bool, index: usize, run: &'a RunFacts) -> Option<Row<'a>> {
    let artifact = run.artifacts.as_ref()?.load(&shared.case.evaluation.case_id);
    if matches!(artifact, Artifact::Absent) {
        return None;
    }
    let usage = artifact.answer().map(usage_of_answer);
    Some(Row {
        run_id: Some(&run.run_id),
        run_index: Some(whole(index)),
        commit: run.commit.as_deref(),
        model: run.model.as_deref(),
        is_answered: Some(usage.is_some()),
        expectations: shared.expectations.filter(|_| is_shown),
        writes: shared.writes.filter(|_| is_shown),
        usage,
        ..*shared
    })
}

impl SideFacts {
    fn new(evaluation: &Evaluation, side: Side, folders: &RunFolders, missing: &mut Vec<RunId>) -> Self {
        let runs: &[RunSummary] = match (&evaluation.repeats, side) {
            (Some(repeats), Side::Baseline) => &repeats.baseline,
            (Some(repeats), Side::New) => &repeats.new,
            (None, Side::Baseline) => std::slice::from_ref(&evaluation.baseline),
            (None, Side::New) => std::slice::from_ref(&evaluation.new),
        };
        let is_single = runs.len() == 1;
        let of_run = |(index, run): (usize, &RunSummary)| {
            let found = folders.find(side, index, &run.run_id);
            let model = found.as_ref().and_then(|found| found.reader.run().model().map(str::to_owned));
            let artifacts =
                found.filter(|found| found.is_whole && !is_single).map(|found| ComparedRun::new(found.reader));
            RunFacts { run_id: run.run_id.clone(), commit: run.repo_commit.clone(), model, artifacts }
        };
        let runs: Vec<RunFacts> = runs.iter().enumerate().map(of_run).collect();
        let lost = runs.iter().filter(|run| !is_single && run.artifacts.is_none()).map(|run| run.run_id.clone());
        let lost: Vec<_> = lost.collect();
        let is_by_run = lost.is_empty();
        missing.extend(lost);
        let first = runs.first();
        Self {
            commit: first.and_then(|run| run.commit.clone()),
            model: first.and_then(|run| run.model.clone()),
            is_by_run,
            runs,
        }
    }
}

/// The number of expectations that a side meets, and of those that it does not meet; `None` if none could be evaluated.
fn expectations(case: &CaseEvaluation, side: Side) -> Option<(i64, i64)> {
    let results = case.expectations.iter().filter_map(|result| match side {
        Side::Baseline => result.baseline.as_ref(),
        Side::New => result.new.as_ref(),
    });
    let (mut met, mut unmet) = (0, 0);
    for result in results {
        match result {
            Judgement::Met(_) => met += 1,
            Judgement::Unmet(_) => unmet += 1,
            Judgement::Undecided(_) => {}
        }
    }
    (met + unmet > 0).then_some((met, unmet))
}

fn days_since_1970(date: jiff::civil::Date) -> Option<i32> {
    let epoch = jiff::civil::date(1970, 1, 1);
    epoch.until(date).ok().map(|span| span.get_days())
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) const fn gate(outcome: GateOutcome) -> &'static str {
    match outcome {
        GateOutcome::Passed => "passed",
        GateOutcome::Failed => "failed",
        GateOutcome::NotEnoughData => "not_enough_data",
        GateOutcome::NotJudged => "not_judged",
    }
}

pub(super) const fn decision(kind: DecisionKind) -> &'static str {
    match kind {
        DecisionKind::Stop => "stop",
        DecisionKind::Open => "open",
        DecisionKind::Go => "go",
    }
}

pub(super) fn is_failing(status: Option<CaseStatus>) -> Option<bool> {
    status.map(|status| status == CaseStatus::Failing)
}
