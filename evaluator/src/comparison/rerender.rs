//! Re-renders a finished comparison. Verdicts and reasons come from its evaluation and are not judged again. Only what
//! a page shows of the two sides is read and aligned again.

use std::collections::HashMap;

use camino::Utf8PathBuf;
use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, Verdict};
use counterproof_artifact::{RunId, Side, Sides};
use counterproof_cases::CaseSpec;
use rayon::prelude::*;

use super::case::{CaseComparison, LoadedPair, have_different_records};
use super::request::Request;
use crate::diff::{Differences, WithEvidence};
use crate::gate::is_alone;
use crate::grounding::{self, Origins, arguments};
use crate::judge::ReasonCode;
use crate::load::case_input::CaseInput;
use crate::load::{ComparedRun, SideRuns};
use crate::repeats::RunResult;
use crate::values::meaning::HashedSet;
use crate::values::text;

/// Folders that are not the runs of which an evaluation speaks.
#[derive(Debug, thiserror::Error)]
pub enum RunMismatch {
    /// A folder of another run.
    #[error("`{folder}` contains the run {run_id}, but the {side} of the evaluation is {expected}")]
    NotCompared {
        /// The folder.
        folder: Utf8PathBuf,
        /// The run that it holds.
        run_id: RunId,
        /// The side as which it was named.
        side: Side,
        /// The runs of that side, in words.
        expected: String,
    },
    /// A run that no folder holds.
    #[error("the evaluation's {side} has the run {run_id} too, and no folder of it is named")]
    NotNamed {
        /// The side.
        side: Side,
        /// The run.
        run_id: RunId,
    },
}

/// The runs of one side in the evaluation's order, whatever order their folders were named in.
pub fn runs_of(evaluation: &Evaluation, side: Side, named: Vec<ComparedRun>) -> Result<SideRuns, RunMismatch> {
    let (first, repeats) = match side {
        Side::Baseline => (&evaluation.baseline, evaluation.repeats.as_ref().map(|repeats| &repeats.baseline)),
        Side::New => (&evaluation.new, evaluation.repeats.as_ref().map(|repeats| &repeats.new)),
    };
    let compared: Vec<_> = repeats.map_or_else(|| vec![first], |runs| runs.iter().collect());
    let expected: Vec<_> = compared.iter().map(|run| run.run_id.as_str()).collect();
    let (mut named, mut runs) = (named, Vec::new());
    for run in &compared {
        match named.iter().position(|named| named.reader().run().run_id == run.run_id) {
            Some(place) => runs.push(named.swap_remove(place)),
            None if named.is_empty() => return Err(RunMismatch::NotNamed { side, run_id: run.run_id.clone() }),
            None => break,
        }
    }
    if let Some(other) = named.first() {
        return Err(RunMismatch::NotCompared {
            folder: other.reader().folder().to_owned(),
            run_id: other.reader().run().run_id.clone(),
            side,
            expected: text::list(&expected),
        });
    }
    SideRuns::new(runs).ok_or_else(|| RunMismatch::NotNamed { side, run_id: first.run_id.clone() })
}

/// Hands every case of a wanted verdict to the sink, with what the evaluation says of it; on several threads and in no order.
pub fn show<E: Send>(
    request: &Request<'_>,
    evaluation: &Evaluation,
    wanted: impl Fn(Verdict) -> bool + Sync,
    sink: impl Fn(&CaseComparison<'_>) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let specs: HashMap<_, _> = request.cases.iter().map(|spec| (&spec.id, spec)).collect();
    evaluation
        .cases
        .par_iter()
        .enumerate()
        .filter(|(_, row)| wanted(row.verdict))
        .try_for_each(|(index, row)| sink(&show_case(request, evaluation, index, specs.get(&row.case_id).copied())))
}

fn show_case<'a>(
    request: &Request<'_>,
    evaluation: &Evaluation,
    index: usize,
    spec: Option<&'a CaseSpec>,
) -> CaseComparison<'a> {
    let row = &evaluation.cases[index];
    // The evaluation is a file and may name a run that does not exist. The last run is then shown instead.
    let index_of =
        |index: u64, runs: &SideRuns| usize::try_from(index).unwrap_or(usize::MAX).min(runs.iter().len() - 1);
    let stored = row.repeats.as_ref().map(|repeats| repeats.shown);
    let shown = stored.map_or_else(Sides::default, |stored| Sides {
        baseline: index_of(stored.baseline, &request.baseline),
        new: index_of(stored.new, &request.new),
    });
    let mut pair = LoadedPair::load(Sides::new(&request.baseline, &request.new), shown, &row.case_id);
    // Only a comparison of all cases recognises an outage; the stored reason says what it decided.
    if row.reasons.iter().any(|reason| ReasonCode::AnswerOutage.is_code_of(reason)) {
        pair.count_as_outage();
    }
    let mut comparison = of_pair(request, pair, spec, row.clone());
    comparison.index = index;
    comparison.is_alone = is_alone(evaluation);
    comparison.is_deterministic = evaluation.deterministic;
    comparison
}

/// A pair as a page shows it: aligned, with what its arguments are from. Nothing is judged.
pub(super) fn of_pair<'a>(
    request: &Request<'_>,
    pair: LoadedPair,
    spec: Option<&'a CaseSpec>,
    row: CaseEvaluation,
) -> CaseComparison<'a> {
    let answers = pair.answers().both();
    let differences = answers.map(|sides| Differences::between(sides.baseline, sides.new, &request.rules));
    let compared = answers.zip(differences.as_ref());
    let inputs = pair.inputs(request, &row.case_id, spec);
    let has_different_records =
        compared.and_then(|(sides, differences)| have_different_records(sides, differences, inputs.as_ref()));
    let traced = compared.filter(|(_, differences)| !differences.is_empty());
    let traced = traced.filter(|(sides, _)| !grounding::is_unchanged_transcript(*sides));
    let arguments = traced.map(|(sides, _)| {
        let of_side = |(side, input): (WithEvidence<'_>, &CaseInput<'_>)| {
            arguments::of_side(side.loaded, &Origins::trace(side.loaded, input))
        };
        sides.zip(inputs.as_ref()).map(of_side)
    });
    let arguments = arguments.unwrap_or_default();
    let LoadedPair { shown, artifacts, evidence } = pair;
    CaseComparison {
        index: 0,
        spec,
        shown,
        is_alone: request.is_alone,
        is_deterministic: request.is_deterministic,
        baseline: artifacts.baseline,
        new: artifacts.new,
        baseline_evidence: evidence.baseline,
        new_evidence: evidence.new,
        differences,
        row,
        arguments,
        review: Vec::new(),
        results: Sides { baseline: RunResult::Unknown, new: RunResult::Unknown },
        has_different_records,
        undecided: false,
        unsourced: HashedSet::default(),
        outage_candidate: None,
        outage: None,
    }
}
