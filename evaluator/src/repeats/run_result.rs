//! What the measures count in one run of a case.

use counterproof_artifact::evaluation::{Judgement, MeasureCode};
use counterproof_artifact::{ProposedAction, RiskLevel};

use crate::load::Artifact;
use crate::load::evidence::{self, FollowedRef};

/// The result of one run of a case, as far as the measures count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunResult {
    /// The run did not select the case, or has no valid artifact of it.
    Unknown,
    /// The agent gave no answer.
    Failed,
    /// The agent answered.
    Answered {
        /// Whether every expectation of the case is met; `None` without expectations, or where none is unmet but one is
        /// undecided.
        met: Option<bool>,
        /// Whether all required evidence resolves; `None` where none is required.
        evidence_holds: Option<bool>,
    },
}

/// The results of a case in every run of both sides, in the order of the runs.
#[derive(Debug, Clone)]
pub(crate) struct CaseResults {
    pub(crate) baseline: Vec<RunResult>,
    pub(crate) new: Vec<RunResult>,
}

impl CaseResults {
    /// Whether new fails in most of its runs, and the baseline has one run, which passes.
    pub(super) fn fell_from_one_run(&self) -> bool {
        let solved = |runs: &[RunResult]| -> Vec<bool> {
            runs.iter().filter_map(|run| run.passes(MeasureCode::Solved)).collect()
        };
        let (baseline, new) = (solved(&self.baseline), solved(&self.new));
        let failed = new.iter().filter(|passes| !**passes).count();
        baseline == [true] && new.len() > 1 && 2 * failed > new.len()
    }
}

impl RunResult {
    /// The result of an artifact, with its judged expectations and its evidence.
    pub(crate) fn new<'j>(
        artifact: &Artifact,
        judged: impl Iterator<Item = &'j Judgement>,
        evidence: &[Vec<FollowedRef>],
    ) -> Self {
        match artifact {
            Artifact::Absent | Artifact::Invalid(_) => RunResult::Unknown,
            Artifact::Failure(_) => RunResult::Failed,
            Artifact::Answer(answer) => RunResult::Answered {
                met: met(judged),
                evidence_holds: evidence_holds(&answer.answer.proposed_actions, evidence),
            },
        }
    }

    /// Whether the run passes the measure; `None` if the measure does not apply to the run.
    pub(super) fn passes(self, code: MeasureCode) -> Option<bool> {
        match (self, code) {
            (RunResult::Unknown, _) | (RunResult::Failed, MeasureCode::Expectations | MeasureCode::Evidence) => None,
            (RunResult::Failed, MeasureCode::Solved | MeasureCode::Answered) => Some(false),
            (RunResult::Answered { .. }, MeasureCode::Answered) => Some(true),
            (RunResult::Answered { met, .. }, MeasureCode::Expectations) => met,
            (RunResult::Answered { evidence_holds, .. }, MeasureCode::Evidence) => evidence_holds,
            // What is not required, or could not be decided, does not count against the run. The measure is a function of the run
            // alone, so its tests stay valid.
            (RunResult::Answered { met, evidence_holds }, MeasureCode::Solved) => {
                Some(met != Some(false) && evidence_holds != Some(false))
            }
        }
    }
}

fn met<'j>(judged: impl Iterator<Item = &'j Judgement>) -> Option<bool> {
    let mut all = None;
    let mut is_undecided = false;
    for judgement in judged {
        if judgement.is_unmet() {
            return Some(false);
        }
        is_undecided |= !judgement.is_met();
        all = Some(true);
    }
    all.filter(|_| !is_undecided)
}

/// Whether every ref resolves and every high-risk action has a ref. `None` if no action needs evidence.
fn evidence_holds(actions: &[ProposedAction], evidence: &[Vec<FollowedRef>]) -> Option<bool> {
    let needs_evidence =
        |action: &ProposedAction| action.risk_level == RiskLevel::High || !action.evidence_refs.is_empty();
    if !actions.iter().any(needs_evidence) {
        return None;
    }
    Some(actions.iter().zip(evidence).all(|(action, refs)| {
        let resolved = evidence::resolved_count(refs);
        // Two conditions: no ref is broken, and a high-risk action has at least one.
        resolved == refs.len() && (resolved > 0 || action.risk_level != RiskLevel::High)
    }))
}
