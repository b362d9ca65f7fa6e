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
use serde::{Deserialize, Serialize};

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
use crate::repeats::{
    self, CaseResults, Observations, RepeatAnalysis, RepeatInputs, RunResult, SuiteAnalysis, suite_rules,
};
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
    let comparison = Comparison::new(request).map_err(CompareError::Read)?;
    // All runs are read before any pair is shown: which pair shows the deciding difference follows from all cases together.
    let observed = comparison.is_repeated().then(|| Observations::new(&comparison.inputs(), &comparison.ids));
    comparison.finish(observed.map_or(Known::Nothing, Known::Runs), sink)
}

/// What is known before the passes over the cases.
pub(super) enum Known {
    Nothing,
    /// What all runs of every case did.
    Runs(Observations),
    /// The result of the first pass, and what it noted.
    Pairs(Vec<Option<ComparedRow>>, BaselineNotes),
}

/// What all stages of a comparison share.
#[derive(Debug)]
pub(super) struct Comparison<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) ids: Vec<CaseId>,
    specs: BTreeMap<&'a CaseId, &'a CaseSpec>,
    suites: Vec<Option<&'a str>>,
    changed_inputs: BTreeSet<CaseId>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(request: &'a Request<'a>) -> Result<Self, ReadError> {
        let ids = load::pair(&request.baseline, &request.new)?;
        let specs: BTreeMap<_, _> = request.cases.iter().map(|spec| (&spec.id, spec)).collect();
        let suites = ids.iter().map(|id| specs.get(id).and_then(|spec| spec.suite.as_deref())).collect();
        let changed_inputs = load::case_input::changed_inputs(&request.baseline, &request.new);
        Ok(Self { request, ids, specs, suites, changed_inputs })
    }

    /// Whether a side has several runs.
    pub(super) fn is_repeated(&self) -> bool {
        self.request.baseline.is_repeated() || self.request.new.is_repeated()
    }

    pub(super) fn inputs(&self) -> RepeatInputs<'_> {
        let request = self.request;
        RepeatInputs {
            baseline: &request.baseline,
            new: &request.new,
            expectations: &request.expectations,
            rules: &request.rules,
            thresholds: &request.thresholds,
            is_declared_deterministic: request.declares_deterministic(),
            convicts_lost: request.limits.lost != Limit::None,
            changed_inputs: &self.changed_inputs,
            suites: &self.suites,
        }
    }

    /// Compares the cases that are not compared yet, and judges all of them.
    pub(super) fn finish<E: Send>(
        &self,
        known: Known,
        sink: impl Fn(&CaseComparison<'_>) -> Result<(), E> + Sync,
    ) -> Result<Evaluation, CompareError<E>> {
        let (repeated, notes, rows) = match known {
            Known::Nothing => (None, BaselineNotes::default(), None),
            Known::Runs(observed) => {
                let repeated = RepeatAnalysis::new(&self.inputs(), observed);
                let notes = BaselineNotes::of_runs(&repeated);
                (Some(repeated), notes, None)
            }
            Known::Pairs(rows, notes) => (None, notes, Some(rows)),
        };
        let pass = self.pass(repeated.as_ref(), &notes);
        let rows = rows.map_or_else(|| pass.first(0..self.ids.len(), &sink), Ok).map_err(CompareError::Sink)?;
        let rows = pass.second(rows, &sink).map_err(CompareError::Sink)?;
        Ok(evaluation(self.request, &self.specs, repeated.as_ref(), &self.suites, rows))
    }

    pub(super) fn pass<'p>(&'p self, repeated: Option<&'p RepeatAnalysis>, notes: &'p BaselineNotes) -> Pass<'p> {
        Pass { comparison: self, repeated, notes, is_deterministic: self.request.is_deterministic_over(repeated) }
    }
}

/// What the answers of the baseline have in common over all cases. Threads can share it; the result does not depend on the order
/// of the cases.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct BaselineNotes {
    values: UsualValues,
    contacts: BaselineContacts,
    repetition: BaselineRepetition,
    short_texts: ShortTexts,
    endings: BaselineEndings,
}

impl BaselineNotes {
    /// Of several runs, the comparison loads the shown one of each case only; the analysis has seen all of them.
    fn of_runs(repeated: &RepeatAnalysis) -> Self {
        let endings = BaselineEndings::default();
        repeated.baseline_styles().for_each(|style| endings.note_style(style));
        Self { endings, repetition: BaselineRepetition::new(repeated.longest_repetition()), ..Self::default() }
    }

    fn note(&self, index: usize, comparison: &CaseComparison<'_>) {
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
    }

    /// Adds what another shard of the comparison noted.
    pub(super) fn merge(&self, other: Self) {
        self.values.merge(other.values);
        self.contacts.merge(other.contacts);
        self.repetition.merge(&other.repetition);
        self.short_texts.merge(other.short_texts);
        self.endings.merge(&other.endings);
    }
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
    let (mut cases, mut matched, mut review) = (Vec::with_capacity(rows.len()), Vec::new(), Vec::new());
    for row in rows {
        cases.push(*row.evaluation);
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
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ComparedRow {
    /// In a box: rows are moved from list to list, and this is more than a kilobyte.
    pub(super) evaluation: Box<CaseEvaluation>,
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

/// A pass over the cases, with what is known of all of them.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    comparison: &'a Comparison<'a>,
    repeated: Option<&'a RepeatAnalysis>,
    notes: &'a BaselineNotes,
    is_deterministic: bool,
}

impl Pass<'_> {
    /// Compares cases in parallel, and notes what their baselines do. `None` for a case whose result depends on the values that
    /// baseline usually has in other cases; there are few of these.
    pub(super) fn first<E: Send>(
        self,
        indexes: impl IntoParallelIterator<Item = usize>,
        sink: impl Fn(&CaseComparison<'_>) -> Result<(), E> + Sync,
    ) -> Result<Vec<Option<ComparedRow>>, E> {
        let compare = |index: usize| {
            let comparison = self.compare_one(index, Coverage::Partial);
            // Noted while the artifact is in memory. The order of the threads does not matter, because a case that needs the
            // complete notes is undecided and compared again.
            self.notes.note(index, &comparison);
            if comparison.undecided { Ok(None) } else { finish(comparison, &sink).map(Some) }
        };
        indexes.into_par_iter().map(compare).collect()
    }

    /// Compares the cases without a row, once all cases are noted.
    fn second<E: Send>(
        self,
        rows: Vec<Option<ComparedRow>>,
        sink: impl Fn(&CaseComparison<'_>) -> Result<(), E> + Sync,
    ) -> Result<Vec<ComparedRow>, E> {
        let compare = |(index, row): (usize, Option<ComparedRow>)| match row {
            Some(row) => Ok(row),
            None => finish(self.compare_one(index, Coverage::Complete), &sink),
        };
        // `collect` keeps the order of the cases, whichever thread finishes first.
        rows.into_par_iter().enumerate().map(compare).collect()
    }

    fn compare_one(&self, index: usize, coverage: Coverage) -> CaseComparison<'_> {
        let Comparison { request, ids, specs, changed_inputs, .. } = self.comparison;
        let BaselineNotes { values, contacts, repetition, short_texts, endings } = self.notes;
        let case_id = &ids[index];
        compare_case(CaseContext {
            request,
            index,
            case_id,
            spec: specs.get(case_id).copied(),
            repeats: self.repeated.and_then(|all| Some(CaseRepeats { all, case: all.case(index)? })),
            baseline_values: BaselineValues { usual: values, repetition, coverage },
            is_deterministic: self.is_deterministic,
            has_changed_input: changed_inputs.contains(case_id),
            baseline_contacts: contacts,
            short_texts,
            baseline_endings: endings,
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
    let evaluation = Box::new(evaluation);
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
