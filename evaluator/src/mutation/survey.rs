//! Compares each answer with a fault with the original, under the cases and the gate of the user.

use counterproof_artifact::evaluation::{Evaluation, Gate, Judgement};
use counterproof_artifact::{Case, CaseId, Outcome};
use counterproof_cases::draft::{CaseDraft, DraftExpect, DraftExpected};
use counterproof_cases::{Expect, VARIABLES};
use counterproof_expression::Expression;
use counterproof_store::ReadError;
use rayon::prelude::*;
use serde::Serialize;

use super::fault::{Draft, Fault};
use crate::comparison::{Request, compare_confirmed};
use crate::diff::WithEvidence;
use crate::judge::Expectations;
use crate::load::{Artifact, ComparedRun, SideRuns, evidence, pair};

/// The runs that confirm a case at most, as `run --confirm` makes them: a fault shows in every run.
const CONFIRMATIONS: usize = 8;

/// What became of the mutants of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FaultReport {
    /// The kind of fault.
    #[serde(rename = "kind", serialize_with = "as_code")]
    pub fault: Fault,
    /// The number of cases whose answers got the fault.
    pub mutants: usize,
    /// The number of these in which a rule of the gate is violated that the original meets.
    pub killed: usize,
    /// The other cases.
    pub survived: Vec<CaseId>,
    /// Expectations that would kill them, in the form of a cases file; none for a case where no drafted expectation does.
    pub draft: Vec<CaseDraft>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn as_code<S: serde::Serializer>(fault: &Fault, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(fault.as_str())
}

/// Puts each kind of fault into the answers of the baseline, one case at a time, and compares the result with the baseline.
/// `request.new` is not used. Of each kind, at most `per_kind` cases are changed, spread evenly over all.
///
/// A fault is in all runs of new. If the agent is not deterministic, a case that looks worse is also confirmed, by as many runs
/// with the same fault as `run --confirm` makes at most.
pub fn survey(request: Request<'_>, per_kind: usize) -> Result<Vec<FaultReport>, ReadError> {
    let runs = request.baseline.iter().map(|run| run.clone().into_memory()).collect::<Result<Vec<_>, _>>()?;
    let Some(baseline) = SideRuns::new(runs) else { return Ok(Vec::new()) };
    let ids = pair(&baseline, &baseline)?;
    let request = Request { new: baseline.clone(), baseline, ..request };
    let control = compare_confirmed(request.clone(), [])?;
    let survey = Survey { request: &request, control: &control };
    let answers: Vec<_> = ids.iter().filter_map(|id| survey.answers(id)).collect();
    Fault::ALL.par_iter().map(|fault| survey.report(*fault, &answers, per_kind)).collect()
}

struct Survey<'a> {
    request: &'a Request<'a>,
    /// The comparison of the baseline with itself.
    control: &'a Evaluation,
}

/// The artifacts of a case that has an answer, one for each run; `None` for a run without one.
struct Answers {
    case_id: CaseId,
    runs: Vec<Option<Case>>,
}

impl Answers {
    /// Conditions that the fault breaks in the first answer. `None` unless each answer offers something to change.
    fn drafts(&self, fault: Fault) -> Option<Vec<Draft>> {
        let mut drafts = None;
        for case in self.runs.iter().flatten() {
            let Outcome::Ok(answer) = &case.outcome else { return None };
            let mutant = fault.mutate(answer)?;
            // A draft that the other answers do not meet is rejected when it is tried.
            drafts.get_or_insert(mutant.drafts);
        }
        drafts
    }
}

impl Survey<'_> {
    fn answers(&self, case_id: &CaseId) -> Option<Answers> {
        let read = |run: &ComparedRun| match run.load(case_id) {
            // An artifact that is loaded as an answer can be read once more.
            Artifact::Answer(_) => run.reader().read_case(case_id).ok(),
            _ => None,
        };
        let runs: Vec<_> = self.request.baseline.iter().map(read).collect();
        runs.iter().any(Option::is_some).then(|| Answers { case_id: case_id.clone(), runs })
    }

    fn report(&self, fault: Fault, answers: &[Answers], per_kind: usize) -> Result<FaultReport, ReadError> {
        // Chosen before the runs are changed, since each changed case has copies of the lists of its runs.
        let is_changed = |answers: &&Answers| answers.drafts(fault).is_some();
        let chosen = spread(answers.iter().filter(is_changed).collect(), per_kind);
        let mut report =
            FaultReport { fault, mutants: chosen.len(), killed: 0, survived: Vec::new(), draft: Vec::new() };
        let judged: Vec<_> = chosen.par_iter().map(|case| self.judge(fault, case)).collect::<Result<_, _>>()?;
        for (case, fate) in chosen.iter().zip(judged) {
            match fate {
                Fate::Killed => report.killed += 1,
                Fate::Survived(draft) => {
                    report.survived.push(case.case_id.clone());
                    report.draft.extend(draft.map(|expect| CaseDraft {
                        id: case.case_id.clone(),
                        expected: DraftExpected { expect: vec![expect] },
                    }));
                }
            }
        }
        Ok(report)
    }

    fn judge(&self, fault: Fault, answers: &Answers) -> Result<Fate, ReadError> {
        let case_id = &answers.case_id;
        let runs = self.mutated_runs(fault, answers);
        if self.kills(self.request, &runs)? {
            return Ok(Fate::Killed);
        }
        // Over one run of an agent that varies, a comparing expectation fails no gate.
        let can_compare = self.request.declares_deterministic() || self.request.baseline.is_repeated();
        let drafts = answers.drafts(fault).unwrap_or_default();
        for must in [false, true].into_iter().filter(|must| *must || can_compare) {
            for draft in &drafts {
                let Ok(expression) = Expression::compile(&draft.expr, &VARIABLES) else { continue };
                let expect = Expect { name: Some(draft.name.clone()), expression, must, draft: false };
                let expectations = self.request.expectations.with(case_id, expect);
                // An expectation that the original does not meet would fail the gate without a fault.
                let is_met = self.request.baseline.iter().all(|run| meets_last(run, &expectations, case_id));
                let request = Request { expectations, ..self.request.clone() };
                if is_met && self.kills(&request, &runs)? {
                    let (name, expr) = (draft.name.clone(), draft.expr.clone());
                    return Ok(Fate::Survived(Some(DraftExpect { name, expr, must, draft: false })));
                }
            }
        }
        Ok(Fate::Survived(None))
    }

    /// The runs of the baseline with a fault in every answer of a case.
    fn mutated_runs(&self, fault: Fault, answers: &Answers) -> Vec<ComparedRun> {
        let mutate = |(run, case): (&ComparedRun, &Option<Case>)| {
            let mutant = case.as_ref().and_then(|case| {
                let Outcome::Ok(answer) = &case.outcome else { return None };
                Some(Case { outcome: Outcome::Ok(fault.mutate(answer)?.answer), ..case.clone() })
            });
            mutant.map_or_else(|| run.clone(), |case| run.with_case(&case))
        };
        self.request.baseline.iter().zip(&answers.runs).map(mutate).collect()
    }

    /// Whether the gate fails for the fault.
    fn kills(&self, request: &Request<'_>, runs: &[ComparedRun]) -> Result<bool, ReadError> {
        let Some(new) = SideRuns::new(runs.to_vec()) else { return Ok(false) };
        let further = runs.iter().cycle().take(CONFIRMATIONS).cloned();
        let evaluation = compare_confirmed(Request { new, ..request.clone() }, further)?;
        Ok(violates_more(&self.control.gate, &evaluation.gate))
    }
}

/// Whether an answer of the run meets the last expectation of the case; true without an answer.
fn meets_last(run: &ComparedRun, expectations: &Expectations, case_id: &CaseId) -> bool {
    let artifact = run.load(case_id);
    let Some(loaded) = artifact.answer() else { return true };
    let evidence = evidence::follow(loaded);
    let judged = expectations.judge_one(case_id, WithEvidence { loaded, evidence: &evidence });
    judged.last().is_some_and(Judgement::is_met)
}

enum Fate {
    Killed,
    /// With an expectation that would kill it.
    Survived(Option<DraftExpect>),
}

/// Whether a gate violates a rule that the control meets, or violates it by another number.
fn violates_more(control: &Gate, gate: &Gate) -> bool {
    gate.rules.iter().filter(|rule| !rule.passed).any(|rule| {
        let known = control.rules.iter().find(|known| known.code == rule.code && known.scope == rule.scope);
        known.is_none_or(|known| known.passed || known.actual != rule.actual)
    })
}

/// At most `most` of the values, evenly spread.
fn spread<T>(values: Vec<T>, most: usize) -> Vec<T> {
    let all = values.len();
    let is_chosen = |at: usize| all <= most || (at * most) / all != ((at + 1) * most) / all;
    values.into_iter().enumerate().filter(|(at, _)| is_chosen(*at)).map(|(_, value)| value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_of_cases_is_spread_over_all() {
        assert_eq!(spread((0..9).collect(), 3), [2, 5, 8]);
        assert_eq!(spread((0..3).collect(), 3), [0, 1, 2]);
        assert_eq!(spread((0..50).collect::<Vec<_>>(), 20).len(), 20);
    }
}
