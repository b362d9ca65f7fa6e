//! The first pass over repeated runs: reduces each artifact to a few hundred bytes, so that all runs of all cases fit in memory
//! and can be compared with each other.

use counterproof_artifact::evaluation::{CaseUsage, Judgement, SideUsage};
use counterproof_artifact::{CaseId, ProposedAction, RiskLevel};

use super::answer_places::AnswerPlaces;
use super::labels::{Labels, Names};
use crate::judge::verdict;
use crate::judge::{Expectations, Judged};
use crate::load::SideRuns;
use crate::load::evidence::{self, FollowedRef};
use crate::load::{Artifact, ComparedRun};
use crate::rules::Rules;
use crate::usage;

/// The outcomes of a case in every run of both sides, in the order of the runs.
#[derive(Debug)]
pub(super) struct CaseObservations {
    pub(super) baseline: Vec<RunOutcome>,
    pub(super) new: Vec<RunOutcome>,
}

/// The expectations and the rules by which answers are judged.
#[derive(Clone, Copy)]
pub(super) struct Criteria<'a> {
    pub(super) expectations: &'a Expectations,
    pub(super) rules: &'a Rules,
}

/// The outcome of a case in a run.
#[derive(Debug)]
pub(super) enum RunOutcome {
    /// The run did not select the case.
    NotSelected,
    /// The run selected the case and has no artifact of it.
    Absent,
    /// The artifact violates the contract.
    Invalid,
    /// The agent gave no answer.
    Failed,
    /// The agent answered.
    Answered(Answered),
}

/// The summary of an answer that the analysis needs.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) labels: Labels,
    /// Whether every expectation of the case is met; `None` without expectations, or where none is unmet but one is undecided.
    pub(super) met: Option<bool>,
    /// The first hard expectation that the answer does not meet.
    pub(super) must_unmet: Option<String>,
    /// The highest risk of an action.
    pub(super) highest_risk: Option<RiskLevel>,
    /// Whether all required evidence resolves; `None` where none is required.
    pub(super) evidence_holds: Option<bool>,
    /// Its time, size and cost.
    pub(super) usage: SideUsage,
    /// The length of its longest repetition of one call.
    pub(super) repetition: usize,
}

impl CaseObservations {
    /// Loads a case in every run, and collects the names of its places.
    pub(super) fn from_runs(
        baseline: &SideRuns,
        new: &SideRuns,
        criteria: Criteria<'_>,
        case_id: &CaseId,
    ) -> (Self, Names) {
        let mut names = Names::default();
        let mut side = |runs: &SideRuns| -> Vec<RunOutcome> {
            runs.iter().map(|run| RunOutcome::from_run(run, criteria, case_id, &mut names)).collect()
        };
        let survey = Self { baseline: side(baseline), new: side(new) };
        (survey, names)
    }

    /// The median time, size and cost of the answers of each side.
    pub(super) fn usage(&self) -> CaseUsage {
        let typical = |runs: &[RunOutcome]| {
            let answers = runs.iter().filter_map(RunOutcome::answered);
            usage::typical(&answers.map(|answer| answer.usage.clone()).collect::<Vec<_>>())
        };
        CaseUsage { baseline: typical(&self.baseline), new: typical(&self.new) }
    }

    /// The length of the longest repetition of one call in any run of baseline.
    pub(super) fn longest_repetition(&self) -> usize {
        let answers = self.baseline.iter().filter_map(RunOutcome::answered);
        answers.map(|answer| answer.repetition).max().unwrap_or(0)
    }

    /// True if the runs decide the verdict: both sides have an answer, and no artifact violates the contract.
    pub(super) fn runs_decide(&self) -> bool {
        let is_valid = |runs: &[RunOutcome]| !runs.iter().any(|run| matches!(run, RunOutcome::Invalid));
        let answers = |runs: &[RunOutcome]| runs.iter().any(|run| run.answered().is_some());
        [&self.baseline, &self.new].into_iter().all(|runs| is_valid(runs) && answers(runs))
    }
}

/// The runs of a side that selected a case but have no artifact of it: the artifact was lost, or the case never ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct MissingArtifacts {
    /// The number of runs without an artifact.
    pub(super) runs: usize,
    /// The number of runs that selected the case.
    pub(super) of: usize,
}

impl MissingArtifacts {
    pub(super) fn count(outcomes: &[RunOutcome]) -> Self {
        let count = |is: fn(&RunOutcome) -> bool| outcomes.iter().filter(|outcome| is(outcome)).count();
        Self {
            runs: count(|outcome| matches!(outcome, RunOutcome::Absent)),
            of: count(|outcome| !matches!(outcome, RunOutcome::NotSelected)),
        }
    }
}

impl CaseObservations {
    /// The highest risk of an action in any run.
    pub(super) fn highest_risk(&self) -> Option<RiskLevel> {
        let answers = self.baseline.iter().chain(&self.new).filter_map(RunOutcome::answered);
        verdict::highest(answers.filter_map(|answer| answer.highest_risk))
    }
}

impl RunOutcome {
    fn from_run(run: &ComparedRun, criteria: Criteria<'_>, case_id: &CaseId, names: &mut Names) -> Self {
        match run.load(case_id) {
            // A selected case without an artifact is missing data; a case that was not selected is not.
            Artifact::Absent if run.selects(case_id) => RunOutcome::Absent,
            Artifact::Absent => RunOutcome::NotSelected,
            Artifact::Invalid(_) => RunOutcome::Invalid,
            Artifact::Failure(_) => RunOutcome::Failed,
            Artifact::Answer(answer) => {
                // Everything that needs the artifact is computed here, so that the artifact can be dropped.
                let evidence = evidence::follow(&answer);
                let judged = criteria.expectations.judge_one(case_id, Judged { answer: &answer, evidence: &evidence });
                RunOutcome::Answered(Answered {
                    labels: Labels::from_answer(
                        AnswerPlaces { loaded: &answer, evidence: &evidence, rules: criteria.rules },
                        names,
                    ),
                    met: met(&judged),
                    must_unmet: criteria.expectations.must_unmet(case_id, &judged),
                    highest_risk: verdict::highest_risk([&*answer]),
                    evidence_holds: evidence_holds(&answer.answer.proposed_actions, &evidence),
                    usage: usage::of_answer(&answer),
                    repetition: usage::longest(&answer).map_or(0, |repetition| repetition.times),
                })
            }
        }
    }

    /// The summary of the answer, if there is one.
    /// The first hard expectation that the answer does not meet.
    pub(super) fn must_unmet(&self) -> Option<&str> {
        self.answered()?.must_unmet.as_deref()
    }

    pub(super) const fn answered(&self) -> Option<&Answered> {
        match self {
            RunOutcome::Answered(answered) => Some(answered),
            _ => None,
        }
    }

    /// Whether the case was sent to the agent.
    pub(super) const fn was_sent(&self) -> bool {
        matches!(self, RunOutcome::Failed | RunOutcome::Answered(_))
    }
}

fn met(judged: &[Judgement]) -> Option<bool> {
    match judged {
        [] => None,
        judged if judged.iter().any(Judgement::is_unmet) => Some(false),
        judged => judged.iter().all(Judgement::is_met).then_some(true),
    }
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
