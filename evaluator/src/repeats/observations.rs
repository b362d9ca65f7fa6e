//! The first pass over repeated runs: reduces each artifact to a few hundred bytes, so that all runs of all cases fit in memory
//! and can be compared with each other.

use counterproof_artifact::evaluation::{CaseUsage, SideUsage};
use counterproof_artifact::{CaseId, RiskLevel, Side, Sides};
use serde::{Deserialize, Serialize};

use super::measures::{CaseResults, ConfirmationRuns, RunResult};
use super::place::AnswerPlaces;
use super::place::Place;
use super::place::{Names, PlaceHashes};
use super::unseen::{CaseValues, HighRiskValues};
use crate::diff::WithEvidence;
use crate::grounding::Coverage;
use crate::judge::Expectations;
use crate::judge::answer_texts::AnswerStyle;
use crate::judge::hand_over::{self, HandOver};
use crate::judge::outage::{AnswerFeatures, Candidate, OutageDecision, ShortTexts};
use crate::judge::{signals, usage, verdict};
use crate::load::SideRuns;
use crate::load::evidence;
use crate::load::{Artifact, ComparedRun};
use crate::rules::Rules;

/// The outcomes of a case in every run of both sides, in the order of the runs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CaseObservations {
    pub(super) baseline: Vec<RunOutcome>,
    pub(super) new: Vec<RunOutcome>,
    /// The runs of new whose answer is an outage. Their outcome is [`RunOutcome::Failed`].
    pub(super) outages: Vec<usize>,
}

#[derive(Clone, Copy)]
pub(super) struct Criteria<'a> {
    pub(super) expectations: &'a Expectations,
    pub(super) rules: &'a Rules,
    /// The side of the runs that are judged.
    pub(super) side: Side,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum RunOutcome {
    NotSelected,
    /// The run selected the case and has no artifact of it.
    Absent,
    Invalid,
    Failed,
    Answered(Box<Answered>),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answered {
    pub(super) hashes: PlaceHashes,
    pub(super) result: RunResult,
    /// The first hard expectation that the answer does not meet.
    pub(super) must_unmet: Option<String>,
    /// The values at the places of its high-risk actions.
    pub(super) high_risk: HighRiskValues,
    /// The ids, recipients and amounts of its high-risk actions and calls.
    pub(super) facts: HighRiskValues,
    pub(super) highest_risk: Option<RiskLevel>,
    pub(super) usage: SideUsage,
    pub(super) repetition: usize,
    pub(super) features: AnswerFeatures,
    pub(super) style: AnswerStyle,
    pub(super) hand_over: Option<HandOver>,
    /// Whether it is an answer of new and has anything that can be a signal.
    pub(super) may_have_signals: bool,
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
        let mut outcomes = |runs: &SideRuns, side: Side| -> Vec<RunOutcome> {
            let criteria = Criteria { side, ..criteria };
            runs.iter().map(|run| RunOutcome::from_run(run, criteria, case_id, &mut names)).collect()
        };
        let (baseline, new) = (outcomes(baseline, Side::Baseline), outcomes(new, Side::New));
        (Self { baseline, new, outages: Vec::new() }, names)
    }

    /// A case that the runs of the two sides were asked with different inputs: as if no run had selected it.
    pub(super) fn not_comparable(baseline: &SideRuns, new: &SideRuns) -> Self {
        let runs = |side: &SideRuns| side.iter().map(|_| RunOutcome::NotSelected).collect();
        Self { baseline: runs(baseline), new: runs(new), outages: Vec::new() }
    }

    /// The number of runs of each side.
    pub(crate) const fn runs(&self) -> Sides<usize> {
        Sides { baseline: self.baseline.len(), new: self.new.len() }
    }

    /// The features of the texts of all answers.
    pub(super) fn styles(&self) -> Sides<Vec<AnswerStyle>> {
        Sides::new(&self.baseline, &self.new)
            .map(|runs| runs.iter().filter_map(RunOutcome::answered).map(|answer| answer.style.clone()).collect())
    }

    /// The hand-overs of all answers.
    pub(super) fn hand_overs(&self) -> Sides<Vec<Option<HandOver>>> {
        Sides::new(&self.baseline, &self.new)
            .map(|runs| runs.iter().filter_map(RunOutcome::answered).map(|answer| answer.hand_over.clone()).collect())
    }

    /// The answers of new that may be outages, by run.
    fn outage_candidates(&self) -> Vec<(usize, Candidate)> {
        let baseline = self.baseline.iter().filter_map(RunOutcome::answered);
        let baseline: Vec<_> = baseline.map(|answer| &answer.features).collect();
        let candidate = |(run, outcome): (usize, &RunOutcome)| {
            Some((run, Candidate::new(&baseline, &outcome.answered()?.features)?))
        };
        self.new.iter().enumerate().filter_map(candidate).collect()
    }

    /// Counts the outages among the answers of new as not answered. They are known only from all cases together.
    pub(super) fn without_outages(mut all: Vec<Self>) -> Vec<Self> {
        let texts = ShortTexts::default();
        let candidates: Vec<_> = all.iter().map(Self::outage_candidates).collect();
        for (index, (case, candidates)) in all.iter().zip(&candidates).enumerate() {
            let baseline = case.baseline.iter().filter_map(RunOutcome::answered);
            baseline.for_each(|answer| texts.note_baseline(&answer.features));
            for (_, candidate) in candidates {
                texts.note_new(index, *candidate);
            }
        }
        for (case, candidates) in all.iter_mut().zip(candidates) {
            let outages = candidates
                .into_iter()
                .filter(|(_, candidate)| texts.decide(*candidate, Coverage::Complete) == OutageDecision::Outage);
            case.outages = outages.map(|(run, _)| run).collect();
            for run in &case.outages {
                case.new[*run] = RunOutcome::Failed;
            }
        }
        all
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

    /// The runs of new whose answer has anything that can be a signal.
    pub(super) fn runs_with_signals(&self) -> Vec<usize> {
        let may_have = |run: &RunOutcome| run.answered().is_some_and(|answer| answer.may_have_signals);
        (0..self.new.len()).filter(|index| may_have(&self.new[*index])).collect()
    }

    pub(super) fn results(&self) -> CaseResults {
        let results = |runs: &[RunOutcome]| runs.iter().map(RunOutcome::result).collect();
        CaseResults { baseline: results(&self.baseline), new: results(&self.new) }
    }

    pub(super) fn selected_runs(&self) -> Sides<u32> {
        #[expect(clippy::cast_possible_truncation, reason = "a side has far fewer runs")]
        let selected =
            |runs: &Vec<RunOutcome>| runs.iter().filter(|run| !matches!(run, RunOutcome::NotSelected)).count() as u32;
        Sides::new(selected(&self.baseline), selected(&self.new))
    }

    /// Whether the runs of each side that selected the case did the same.
    pub(super) fn agrees_with_itself(&self) -> bool {
        [&self.baseline, &self.new].into_iter().all(|runs| {
            // A run that did not select the case says nothing about the agent.
            let mut selected = runs.iter().filter(|run| !matches!(run, RunOutcome::NotSelected));
            selected.next().is_none_or(|first| selected.all(|other| first.agrees(other)))
        })
    }

    /// Whether the runs of each side that selected the case have the same result.
    pub(super) fn has_constant_results(&self) -> bool {
        [&self.baseline, &self.new].into_iter().all(|runs| {
            let mut known = runs.iter().map(RunOutcome::result).filter(|result| *result != RunResult::Unknown);
            known.next().is_none_or(|first| known.all(|other| first == other))
        })
    }

    /// True if the runs decide the verdict: both sides have an answer, one side has several, and no artifact violates the
    /// contract.
    pub(super) fn runs_decide(&self) -> bool {
        let selected = |runs: &[RunOutcome]| runs.iter().filter(|run| !matches!(run, RunOutcome::NotSelected)).count();
        // One run per side is decided by its pair, as in a comparison without repeats.
        if selected(&self.baseline) < 2 && selected(&self.new) < 2 {
            return false;
        }
        let is_valid = |runs: &[RunOutcome]| !runs.iter().any(|run| matches!(run, RunOutcome::Invalid));
        let answers = |runs: &[RunOutcome]| runs.iter().any(|run| run.answered().is_some());
        [&self.baseline, &self.new].into_iter().all(|runs| is_valid(runs) && answers(runs))
    }
}

/// The runs of a side that selected a case but have no artifact of it: the artifact was lost, or the case never ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct MissingArtifacts {
    pub(super) runs: usize,
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

/// The values at the places of the high-risk actions of an answer: which tools they name, and their params.
fn high_risk_values(places: AnswerPlaces<'_>) -> HighRiskValues {
    let actions = &places.loaded.answer.proposed_actions;
    let is_high = |tool: &str| actions.iter().any(|it| it.tool_name == tool && it.risk_level == RiskLevel::High);
    let mut values = Vec::new();
    if actions.iter().any(|action| action.risk_level == RiskLevel::High) {
        places.visit_all(&mut |place, value| match place {
            Place::Param { tool, .. } if is_high(tool) => values.push((place.key(), value)),
            // How often an action is proposed is not a new action.
            Place::Proposed { tool } if is_high(tool) => values.push((place.key(), 0)),
            _ => {}
        });
    }
    values
}

impl CaseObservations {
    /// The values of all answers at the places of high-risk actions.
    pub(super) fn high_risk_values(&self, confirms: &ConfirmationRuns) -> CaseValues {
        let values = |runs: &[RunOutcome]| -> Vec<_> {
            runs.iter().filter_map(RunOutcome::answered).map(|answer| answer.high_risk.clone()).collect()
        };
        CaseValues {
            baseline: values(&self.baseline),
            new: values(&self.new),
            initial: confirms.initial_answers(self),
            is_confirmed: confirms.ran_again(self),
        }
    }

    pub(super) fn highest_risk(&self) -> Option<RiskLevel> {
        let answers = self.baseline.iter().chain(&self.new).filter_map(RunOutcome::answered);
        verdict::highest(answers.filter_map(|answer| answer.highest_risk))
    }
}

impl RunOutcome {
    pub(super) fn from_run(run: &ComparedRun, criteria: Criteria<'_>, case_id: &CaseId, names: &mut Names) -> Self {
        let artifact = run.load(case_id);
        match artifact {
            // A selected case without an artifact is missing data; a case that was not selected is not.
            Artifact::Absent if run.selects(case_id) => RunOutcome::Absent,
            Artifact::Absent => RunOutcome::NotSelected,
            Artifact::Invalid(_) => RunOutcome::Invalid,
            Artifact::Failure(_) | Artifact::Outage(_) => RunOutcome::Failed,
            Artifact::Answer(ref answer) => {
                // Everything that needs the artifact is computed here, so that the artifact can be dropped.
                let evidence = evidence::follow(answer);
                let judged =
                    criteria.expectations.judge_one(case_id, WithEvidence { loaded: answer, evidence: &evidence });
                let result = RunResult::new(&artifact, judged.iter(), &evidence);
                let places = AnswerPlaces { loaded: answer, evidence: &evidence, rules: criteria.rules };
                let mut facts = Vec::new();
                places.visit_high_risk_facts(&mut |place, value| facts.push((place.key(), value)));
                RunOutcome::Answered(Box::new(Answered {
                    hashes: PlaceHashes::from_answer(places, names),
                    result,
                    high_risk: high_risk_values(places),
                    facts,
                    must_unmet: criteria.expectations.must_unmet(case_id, &judged),
                    highest_risk: verdict::highest_risk([&**answer]),
                    usage: usage::of_answer(answer),
                    features: AnswerFeatures::new(answer),
                    style: AnswerStyle::new(answer),
                    hand_over: hand_over::of_answer(answer),
                    repetition: usage::longest(answer).map_or(0, |repetition| repetition.times),
                    may_have_signals: criteria.side == Side::New && signals::may_have_signals(answer),
                }))
            }
        }
    }

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

    pub(super) const fn result(&self) -> RunResult {
        match self {
            RunOutcome::NotSelected | RunOutcome::Absent | RunOutcome::Invalid => RunResult::Unknown,
            RunOutcome::Failed => RunResult::Failed,
            RunOutcome::Answered(answered) => answered.result,
        }
    }

    /// Whether two runs of a case did the same: the same state, and for answers the same value at every place.
    fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (RunOutcome::Answered(one), RunOutcome::Answered(other)) => {
                one.hashes == other.hashes && one.result == other.result
            }
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        }
    }
}
