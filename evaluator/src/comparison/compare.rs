//! Compares two sides case by case, judges the gate, and finds the cases that flipped.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use counterproof_artifact::evaluation::{
    CaseEvaluation, ComparedRun as RunFacts, Evaluation, EvaluationSchema, MeasureCode, Repeats, ReviewItem, Verdict,
};
use counterproof_artifact::{CaseId, Extra, Run, Sides};
use counterproof_cases::CaseSpec;
use counterproof_store::ReadError;
use rayon::prelude::*;

use super::case::{CaseComparison, CaseContext, CaseRepeats, compare_case};
use super::notices;
use super::request::Request;
use crate::cause;
use crate::gate::{self, GateCase, GateInput, Limit, ReviewSet};
use crate::grounding::{Coverage, UsualValues};
use crate::judge::answer_texts::BaselineEndings;
use crate::judge::findings::BaselineValues;
use crate::judge::outage::{AnswerFeatures, ShortTexts};
use crate::judge::signals::BaselineContacts;
use crate::judge::usage::BaselineRepetition;
use crate::load::{self, ComparedRun};
use crate::repeats::{self, CaseResults, RepeatAnalysis, RepeatInputs, RunResult, SuiteAnalysis, suite_rules};
use crate::statistics::usage;

/// An error of [`compare`].
#[derive(Debug, thiserror::Error)]
pub enum CompareError<E> {
    /// A run folder could not be listed.
    #[error(transparent)]
    Read(ReadError),
    /// The sink failed.
    #[error(transparent)]
    Sink(E),
}

/// Compares two runs. The sink receives every case once, from several threads and in no order; the evaluation is in case
/// order.
pub fn compare<E: Send>(
    request: &Request<'_>,
    sink: impl Fn(&CaseComparison<'_>) -> Result<(), E> + Sync,
) -> Result<Evaluation, CompareError<E>> {
    let ids = load::pair(&request.baseline, &request.new).map_err(CompareError::Read)?;
    let specs: BTreeMap<_, _> = request.cases.iter().map(|spec| (&spec.id, spec)).collect();
    let is_repeated = request.baseline.is_repeated() || request.new.is_repeated();
    let suites: Vec<_> = ids.iter().map(|id| specs.get(id).and_then(|spec| spec.suite.as_deref())).collect();
    let changed_inputs = load::case_input::changed_inputs(&request.baseline, &request.new);
    let inputs = RepeatInputs {
        baseline: &request.baseline,
        new: &request.new,
        expectations: &request.expectations,
        rules: &request.rules,
        thresholds: &request.thresholds,
        is_declared_deterministic: request.declares_deterministic(),
        convicts_lost: request.limits.lost != Limit::None,
        changed_inputs: &changed_inputs,
        suites: &suites,
    };
    // All runs are analysed before any pair is shown: which pair shows the deciding difference follows from all cases together.
    let repeated = is_repeated.then(|| RepeatAnalysis::new(&inputs, &ids));
    // Of several runs, the comparison loads the shown one of each case only; the analysis has seen all of them.
    let repetition = BaselineRepetition::new(repeated.as_ref().map_or(0, RepeatAnalysis::longest_repetition));
    let endings = BaselineEndings::default();
    repeated.iter().flat_map(RepeatAnalysis::baseline_styles).for_each(|style| endings.note_style(style));
    let is_deterministic = request.is_deterministic_over(repeated.as_ref());
    let pass = Pass {
        request,
        ids: &ids,
        specs: &specs,
        repeated: repeated.as_ref(),
        values: &UsualValues::default(),
        contacts: &BaselineContacts::default(),
        short_texts: &ShortTexts::default(),
        endings: &endings,
        repetition: &repetition,
        is_deterministic,
        changed_inputs: &changed_inputs,
    };
    let rows = pass.compare_all(sink).map_err(CompareError::Sink)?;
    Ok(evaluation(request, &specs, repeated.as_ref(), &suites, rows))
}

fn evaluation(
    request: &Request<'_>,
    specs: &BTreeMap<&CaseId, &CaseSpec>,
    repeated: Option<&RepeatAnalysis>,
    suites: &[Option<&str>],
    rows: Vec<ComparedRow>,
) -> Evaluation {
    let suite = match repeated {
        Some(repeated) => repeated.suite().clone(),
        None => SuiteAnalysis::of_one_run(&pair_results(&rows), suites, &request.thresholds),
    };
    let notices = notices::all(request, &rows, suite.deviating);
    let outage_cases = rows.iter().filter(|row| row.outage.is_some()).count();
    let (mut cases, mut matched, mut review) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        cases.push(row.evaluation);
        matched.push(row.matched);
        review.extend(row.review);
    }
    // After the items of the cases, since these look at all cases; `sort_review` puts them in order.
    review.extend(incomplete_baseline(&cases, repeated).filter(|_| !request.is_alone));
    let measures = usage::compare_all(&cases);
    let is_deterministic = request.is_deterministic_over(repeated);
    let agent = if is_deterministic { gate::Repeatability::Deterministic } else { gate::Repeatability::Variable };
    review.extend(gate::usage_review(&cases, &measures, agent));
    // Several rules count cases by their review items, so that the gate and the list for people cannot disagree.
    let sets = ReviewSet::by_case(&review);
    let judged = cases.iter().map(|case| {
        let set = sets.get(&case.case_id).copied().unwrap_or_default();
        GateCase::new(case, specs.get(&case.case_id).copied(), set)
    });
    let judged: Vec<_> = judged.collect();
    let limits = &request.limits.for_agent(is_deterministic);
    let mut tested = suite_rules(&suite, limits);
    tested.extend(repeated.and_then(|repeated| repeated.lost_rule(limits)));
    tested.extend(repeated.and_then(|repeated| repeated.undecided_rule(limits)));
    tested.extend(repeated.and_then(|repeated| repeated.unseen_rule(limits)));
    tested.extend(gate::usage_rules(&cases, &measures, &limits.usage, request.thresholds.alpha.value()));
    let (is_repeated, unmet) = (repeated.is_some(), gate::unmet_test(&suite.measures, suite.level));
    let gate = gate::judge(GateInput { cases: &judged, tested, limits, is_repeated, outage_cases, unmet, review });
    let mut evaluation = Evaluation {
        schema_version: EvaluationSchema::V1,
        evaluator_version: concat!("counterproof/", env!("CARGO_PKG_VERSION")).to_owned(),
        baseline: facts(request.baseline.first().reader().run()),
        new: facts(request.new.first().reader().run()),
        repeats: repeated.map(|_| Repeats {
            baseline: request.baseline.iter().map(|run| facts(run.reader().run())).collect(),
            new: request.new.iter().map(|run| facts(run.reader().run())).collect(),
            suite: suite.measures.clone(),
        }),
        deterministic: is_deterministic,
        notices,
        suite: suite.measures,
        counts: count_verdicts(&cases),
        usage: measures,
        gate,
        rules: request.rules.used(&matched),
        clusters: cause::clusters(&cases),
        cases,
        extra: Extra::new(),
    };
    // Last, since the order of the cases depends on the violated rules.
    let order: Vec<_> = gate::worst_first(&evaluation).iter().map(|ranked| ranked.case.case_id.clone()).collect();
    gate::sort_review(&mut evaluation.gate.review, &order);
    evaluation
}

/// The results of one run per side, in the form of several.
fn pair_results(rows: &[ComparedRow]) -> Vec<CaseResults> {
    let results = |row: &ComparedRow| {
        let Sides { baseline, new } = row.results.map(|result| vec![result]);
        CaseResults { baseline, new }
    };
    rows.iter().map(results).collect()
}

/// What remains of the comparison of a case.
pub(super) struct ComparedRow {
    pub(super) evaluation: CaseEvaluation,
    /// The number of matches of each rule of comparison.
    matched: Vec<u64>,
    review: Vec<ReviewItem>,
    results: Sides<RunResult>,
    /// The text of the outage that new gave instead of an answer.
    pub(super) outage: Option<String>,
    pub(super) is_answered: bool,
    /// Whether the agents received different records, if the runs do not record what they asked.
    pub(super) has_different_records: Option<bool>,
}

/// What the comparisons of all cases share.
#[derive(Clone, Copy)]
struct Pass<'a> {
    request: &'a Request<'a>,
    ids: &'a [CaseId],
    specs: &'a BTreeMap<&'a CaseId, &'a CaseSpec>,
    repeated: Option<&'a RepeatAnalysis>,
    values: &'a UsualValues,
    is_deterministic: bool,
    changed_inputs: &'a BTreeSet<CaseId>,
    contacts: &'a BaselineContacts,
    repetition: &'a BaselineRepetition,
    short_texts: &'a ShortTexts,
    endings: &'a BaselineEndings,
}

impl Pass<'_> {
    /// Compares all cases in parallel. A case whose result depends on the values that baseline usually has in other cases is
    /// compared a second time, once all of them are loaded; there are few of these.
    fn compare_all<E: Send>(
        self,
        sink: impl Fn(&CaseComparison<'_>) -> Result<(), E> + Sync,
    ) -> Result<Vec<ComparedRow>, E> {
        let first = |index: usize| {
            let comparison = self.compare_one(index, Coverage::Partial);
            // Noted while the artifact is in memory. The order of the threads does not matter, because a case that needs the
            // complete notes is undecided and compared again.
            if let Some(answer) = comparison.baseline.answer() {
                self.values.note(answer, &comparison.unsourced);
                self.contacts.note(answer);
                self.repetition.note(answer);
                self.short_texts.note_baseline(&AnswerFeatures::new(answer));
                self.endings.note(answer);
            }
            if let Some(candidate) = comparison.outage_candidate {
                self.short_texts.note_new(index, candidate);
            }
            if comparison.undecided { Ok(None) } else { finish(comparison, &sink).map(Some) }
        };
        let rows = (0..self.ids.len()).into_par_iter().map(first).collect::<Result<Vec<_>, E>>()?;
        let second = |(index, row): (usize, Option<ComparedRow>)| match row {
            Some(row) => Ok(row),
            None => finish(self.compare_one(index, Coverage::Complete), &sink),
        };
        // `collect` keeps the order of the cases, whichever thread finishes first.
        rows.into_par_iter().enumerate().map(second).collect()
    }

    fn compare_one(&self, index: usize, coverage: Coverage) -> CaseComparison<'_> {
        let case_id = &self.ids[index];
        let repeats = self.repeated.and_then(|all| Some(CaseRepeats { all, case: all.case(index)? }));
        compare_case(CaseContext {
            request: self.request,
            index,
            case_id,
            spec: self.specs.get(case_id).copied(),
            repeats,
            baseline_values: BaselineValues { usual: self.values, repetition: self.repetition, coverage },
            is_deterministic: self.is_deterministic,
            has_changed_input: self.changed_inputs.contains(case_id),
            baseline_contacts: self.contacts,
            short_texts: self.short_texts,
            baseline_endings: self.endings,
        })
    }
}

/// Passes a comparison to the sink, and drops everything but its row.
fn finish<E>(
    comparison: CaseComparison<'_>,
    sink: impl Fn(&CaseComparison<'_>) -> Result<(), E>,
) -> Result<ComparedRow, E> {
    // The artifacts are dropped here, so that memory grows with the number of cases and not with their size.
    sink(&comparison)?;
    let matched = comparison.differences.map(|found| found.rules_matched).unwrap_or_default();
    let is_answered = comparison.new.answer().is_some() || comparison.outage.is_some();
    let CaseComparison { row: evaluation, review, results, outage, has_different_records, .. } = comparison;
    Ok(ComparedRow { evaluation, matched, review, results, outage, is_answered, has_different_records })
}

/// The review item for a baseline with too few answers. Several runs are counted by run, one by case.
fn incomplete_baseline(cases: &[CaseEvaluation], repeated: Option<&RepeatAnalysis>) -> Option<ReviewItem> {
    if let Some(repeated) = repeated {
        let answered = repeated.suite().measures.iter().find(|measure| measure.code == MeasureCode::Answered)?;
        return gate::incomplete_baseline(answered.baseline.passed, answered.baseline.runs, "runs of cases");
    }
    let count = |is: fn(Verdict) -> bool| cases.iter().filter(|case| is(case.verdict)).count() as u64;
    let failed = count(|verdict| matches!(verdict, Verdict::Recovered | Verdict::StillBroken));
    // A case without a valid artifact on one side says nothing about how often the baseline answers.
    let unknown = count(|verdict| {
        matches!(verdict, Verdict::Invalid | Verdict::Missing | Verdict::Added | Verdict::NotComparable)
    });
    let asked = cases.len() as u64 - unknown;
    gate::incomplete_baseline(asked - failed, asked, "cases")
}

/// The number of cases of each verdict, including those with none.
fn count_verdicts(cases: &[CaseEvaluation]) -> BTreeMap<Verdict, u64> {
    let mut counts: BTreeMap<_, _> = Verdict::ALL.into_iter().map(|verdict| (verdict, 0)).collect();
    for case in cases {
        *counts.entry(case.verdict).or_default() += 1;
    }
    counts
}

fn facts(run: &Run) -> RunFacts {
    RunFacts {
        run_id: run.run_id.clone(),
        generated_at: run.generated_at.clone(),
        runner_version: run.runner_version.clone(),
        repo_commit: run.repo_commit.clone(),
        dirty: run.dirty,
        cases_selected: run.selected_case_ids.len() as u64,
        extra: Extra::new(),
    }
}

/// Compares two runs as `run --confirm` and `compare` do together: if cases look worse, further runs of new judge these cases.
pub(crate) fn compare_confirmed(
    request: Request<'_>,
    further: impl IntoIterator<Item = ComparedRun>,
) -> Result<Evaluation, ReadError> {
    let mut further = further.into_iter().peekable();
    // One run decides if the agent is declared deterministic, so that nothing is confirmed.
    if further.peek().is_none() || request.declares_deterministic() {
        return evaluate(&request);
    }
    let flipped: Vec<CaseId> = flipped_cases(&request)?.into_iter().map(|flipped| flipped.case_id).collect();
    if flipped.is_empty() {
        return evaluate(&request);
    }
    let of = request.new.first().reader().run().run_id.clone();
    let confirmations = further.map(|run| run.as_confirmation(&of, &flipped));
    evaluate(&Request { new: request.new.clone().with_more(confirmations), ..request })
}

fn evaluate(request: &Request<'_>) -> Result<Evaluation, ReadError> {
    match compare(request, |_| Ok::<_, Infallible>(())) {
        Ok(evaluation) => Ok(evaluation),
        Err(CompareError::Read(error)) => Err(error),
        Err(CompareError::Sink(never)) => match never {},
    }
}

/// A case that looks worse on new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlippedCase {
    /// The case.
    pub case_id: CaseId,
    /// What is worse.
    pub reason: String,
}

/// Returns the flipped cases, in the order of the comparison.
///
/// With one run per side, these are the cases with the verdict `regressed` or `broken`: the ones that [`compare`] calls
/// unconfirmed. With more runs, these are the cases with a measure that looks worse, or with a high-risk action or argument that no
/// run of the baseline shows.
pub fn flipped_cases(request: &Request<'_>) -> Result<Vec<FlippedCase>, ReadError> {
    if request.baseline.is_repeated() || request.new.is_repeated() {
        let ids = load::case_input::comparable(&request.baseline, &request.new)?;
        let hints = repeats::hints(&request.baseline, &request.new, &ids, &request.expectations, &request.thresholds);
        return Ok(hints.into_iter().map(|(case_id, reason)| FlippedCase { case_id, reason }).collect());
    }
    let evaluation = evaluate(request)?;
    let is_flipped = |verdict| matches!(verdict, Verdict::Regressed | Verdict::Broken);
    let flipped = evaluation.cases.into_iter().filter(|case| is_flipped(case.verdict)).map(|case| FlippedCase {
        reason: case.reasons.first().map(|reason| reason.message.clone()).unwrap_or_default(),
        case_id: case.case_id,
    });
    Ok(flipped.collect())
}
