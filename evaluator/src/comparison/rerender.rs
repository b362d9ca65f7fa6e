//! What was compared before, once more for its pages: what is said of a case comes from the evaluation, and is never worked
//! out request. Only what a page shows of the two sides is read and aligned anew.

use std::collections::HashMap;

use camino::Utf8PathBuf;
use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, Verdict};
use counterproof_artifact::{RunId, Side, Sides};
use counterproof_cases::CaseSpec;
use rayon::prelude::*;

use super::case::CaseComparison;
use crate::diff::{Differences, WithEvidence};
use crate::load::SideRuns;
use crate::load::evidence;
use crate::load::{Artifact, ComparedRun};
use crate::repeats::RunResult;
use crate::rules::Rules;
use crate::values::meaning::HashedSet;
use crate::values::text;

/// What an evaluation was made of.
#[derive(Debug)]
pub struct RerenderRequest<'a> {
    /// The runs of the version that is known to be good.
    pub baseline: SideRuns,
    /// The runs of the version under test.
    pub new: SideRuns,
    /// The cases, where they are known.
    pub cases: &'a [CaseSpec],
    /// What is not compared to the letter.
    pub rules: Rules,
}

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
    request: &RerenderRequest<'_>,
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
        .try_for_each(|(index, row)| sink(&show_case(request, index, row, specs.get(&row.case_id).copied())))
}

fn show_case<'a>(
    request: &RerenderRequest<'_>,
    index: usize,
    row: &CaseEvaluation,
    spec: Option<&'a CaseSpec>,
) -> CaseComparison<'a> {
    // The evaluation is a file and may name a run that does not exist. The last run is then shown instead.
    let index_of =
        |index: u64, runs: &SideRuns| usize::try_from(index).unwrap_or(usize::MAX).min(runs.iter().len() - 1);
    let stored = row.repeats.as_ref().map(|repeats| repeats.shown);
    let shown = stored.map_or_else(Sides::default, |stored| Sides {
        baseline: index_of(stored.baseline, &request.baseline),
        new: index_of(stored.new, &request.new),
    });
    let load =
        |runs: &SideRuns, side| runs.get(*shown.get(side)).map_or(Artifact::Absent, |run| run.load(&row.case_id));
    let (baseline, new) = (load(&request.baseline, Side::Baseline), load(&request.new, Side::New));
    let follow = |artifact: &Artifact| artifact.answer().map(evidence::follow).unwrap_or_default();
    let (baseline_evidence, new_evidence) = (follow(&baseline), follow(&new));
    let differences = match (baseline.answer(), new.answer()) {
        (Some(old), Some(other)) => Some(Differences::between(
            WithEvidence { loaded: old, evidence: &baseline_evidence },
            WithEvidence { loaded: other, evidence: &new_evidence },
            &request.rules,
        )),
        _ => None,
    };
    let row = row.clone();
    CaseComparison {
        index,
        spec,
        shown,
        baseline,
        new,
        baseline_evidence,
        new_evidence,
        differences,
        row,
        review: Vec::new(),
        results: Sides { baseline: RunResult::Unknown, new: RunResult::Unknown },
        undecided: false,
        unsourced: HashedSet::default(),
    }
}
