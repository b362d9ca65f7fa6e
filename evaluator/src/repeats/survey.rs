//! The first pass over repeated runs: what each run has of each case, in a few hundred bytes, so that all runs of all cases can be
//! held against each other at once.

use counterproof_artifact::evaluation::Judgement;
use counterproof_artifact::{CaseId, ProposedAction, RiskLevel};

use super::labels::{Labels, Names};
use super::places::Visited;
use crate::judge::verdict;
use crate::judge::{Expectations, Judged};
use crate::load::SideRuns;
use crate::load::evidence::{self, FollowedRef};
use crate::load::{Artifact, ComparedRun};
use crate::rules::Rules;

/// What every run of both sides has of a case, in the order of the runs.
#[derive(Debug)]
pub(super) struct CaseSurvey {
    pub(super) baseline: Vec<RunOutcome>,
    pub(super) new: Vec<RunOutcome>,
}

/// What answers are held against.
#[derive(Clone, Copy)]
pub(super) struct JudgedBy<'a> {
    pub(super) expectations: &'a Expectations,
    pub(super) rules: &'a Rules,
}

/// What a run has of a case.
#[derive(Debug)]
pub(super) enum RunOutcome {
    /// It did not set out to ask it.
    NotSelected,
    /// It set out to ask it, and there is no artifact.
    Absent,
    /// The artifact breaks the contract.
    Invalid,
    /// The agent gave no answer.
    Failed,
    /// The agent answered.
    Answered(Answered),
}

/// What is kept of an answer.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) labels: Labels,
    /// Whether every expectation of the case is met; `None` where there is none, or none fails and one could not be decided.
    pub(super) met: Option<bool>,
    /// The highest risk of an action.
    pub(super) highest_risk: Option<RiskLevel>,
    /// Whether the evidence holds; `None` where nothing asks for any.
    pub(super) evidence_holds: Option<bool>,
}

impl CaseSurvey {
    /// Looks at a case in every run, and learns what its places are called.
    pub(super) fn of(baseline: &SideRuns, new: &SideRuns, judged_by: JudgedBy<'_>, case_id: &CaseId) -> (Self, Names) {
        let mut names = Names::default();
        let mut side = |runs: &SideRuns| -> Vec<RunOutcome> {
            runs.iter().map(|run| RunOutcome::of(run, judged_by, case_id, &mut names)).collect()
        };
        let survey = Self { baseline: side(baseline), new: side(new) };
        (survey, names)
    }

    /// True where the runs decide: both sides have an answer, and no artifact breaks the contract.
    pub(super) fn runs_decide(&self) -> bool {
        let is_valid = |runs: &[RunOutcome]| !runs.iter().any(|run| matches!(run, RunOutcome::Invalid));
        let answers = |runs: &[RunOutcome]| runs.iter().any(|run| run.answered().is_some());
        [&self.baseline, &self.new].into_iter().all(|runs| is_valid(runs) && answers(runs))
    }
}

/// How many runs of a side set out to ask a case, and in how many of them it has no artifact: it was lost, or never asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) runs: usize,
    pub(super) of: usize,
}

impl Lost {
    pub(super) fn of(outcomes: &[RunOutcome]) -> Self {
        let count = |is: fn(&RunOutcome) -> bool| outcomes.iter().filter(|outcome| is(outcome)).count();
        Self {
            runs: count(|outcome| matches!(outcome, RunOutcome::Absent)),
            of: count(|outcome| !matches!(outcome, RunOutcome::NotSelected)),
        }
    }
}

impl CaseSurvey {
    /// The highest risk of an action in any run.
    pub(super) fn highest_risk(&self) -> Option<RiskLevel> {
        let answers = self.baseline.iter().chain(&self.new).filter_map(RunOutcome::answered);
        verdict::highest(answers.filter_map(|answer| answer.highest_risk))
    }
}

impl RunOutcome {
    fn of(run: &ComparedRun, judged_by: JudgedBy<'_>, case_id: &CaseId, names: &mut Names) -> Self {
        match run.load(case_id) {
            Artifact::Absent if run.selects(case_id) => RunOutcome::Absent,
            Artifact::Absent => RunOutcome::NotSelected,
            Artifact::Invalid(_) => RunOutcome::Invalid,
            Artifact::Failure(_) => RunOutcome::Failed,
            Artifact::Answer(answer) => {
                let evidence = evidence::follow(&answer);
                let judged = judged_by.expectations.judge_one(case_id, Judged { answer: &answer, evidence: &evidence });
                RunOutcome::Answered(Answered {
                    labels: Labels::of(Visited { loaded: &answer, evidence: &evidence, rules: judged_by.rules }, names),
                    met: met(&judged),
                    highest_risk: verdict::highest_risk([&*answer]),
                    evidence_holds: evidence_holds(&answer.answer.proposed_actions, &evidence),
                })
            }
        }
    }

    /// What is kept of the answer, where there is one.
    pub(super) const fn answered(&self) -> Option<&Answered> {
        match self {
            RunOutcome::Answered(answered) => Some(answered),
            _ => None,
        }
    }

    /// True where the agent was asked, whatever came back.
    pub(super) const fn was_asked(&self) -> bool {
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

/// Whether every ref resolves and every action of high risk has one that does.
fn evidence_holds(actions: &[ProposedAction], evidence: &[Vec<FollowedRef>]) -> Option<bool> {
    let asks = |action: &ProposedAction| action.risk_level == RiskLevel::High || !action.evidence_refs.is_empty();
    if !actions.iter().any(asks) {
        return None;
    }
    Some(actions.iter().zip(evidence).all(|(action, refs)| {
        let resolved = evidence::resolved_count(refs);
        resolved == refs.len() && (resolved > 0 || action.risk_level != RiskLevel::High)
    }))
}
