//! The whole line: two runs in, a verdict on each case and on all of them out.
//!
//! One case pair flows through on one worker: what was read for it is handed to the caller's sink and then dropped. What
//! stays is one row a case.

use std::collections::{BTreeMap, HashSet};

use counterproof_artifact::evaluation::{
    CaseEvaluation, ComparedRun as RunFacts, Evaluation, EvaluationSchema, Repeats, Verdict,
};
use counterproof_artifact::store::ReadError;
use counterproof_artifact::{CaseId, Extra, Run, Side};
use counterproof_cases::CaseSpec;
use rayon::prelude::*;

use crate::differences::{Differences, WithEvidence};
use crate::expectations::{Expectations, Judged};
use crate::gate::{self, GateCase, GateLimits};
use crate::load::Artifact;
use crate::repeats::Repeated;
use crate::runs::SideRuns;
use crate::statistics::Thresholds;
use crate::verdict::{self, Compared};
use crate::{alignment, divergence, evidence};

/// What is compared, and by which rules.
#[derive(Debug)]
pub struct Request<'a> {
    /// The runs of the version that is known to be good.
    pub baseline: SideRuns,
    /// The runs of the version under test.
    pub new: SideRuns,
    /// The cases, where they are known: for titles and expectations.
    pub cases: &'a [CaseSpec],
    /// Their expectations, ready to be judged.
    pub expectations: Expectations,
    /// The gate's limits.
    pub limits: GateLimits,
    /// What counts as worse where a side has several runs.
    pub thresholds: Thresholds,
}

/// Why two runs could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError<E> {
    /// A run folder could not be listed.
    #[error(transparent)]
    Read(ReadError),
    /// The sink could not take a case.
    #[error(transparent)]
    Sink(E),
}

/// Everything about one case, while it is looked at.
#[derive(Debug)]
pub struct CaseComparison<'a> {
    /// Its place among all cases, counted from 0.
    pub index: usize,
    /// The case as it was asked, where it is known.
    pub spec: Option<&'a CaseSpec>,
    /// The runs that everything below is about.
    pub shown: Shown,
    /// What the baseline has of it.
    pub baseline: Artifact,
    /// What new has of it.
    pub new: Artifact,
    /// Where the evidence of the baseline's actions leads; empty without an answer.
    pub baseline_evidence: Vec<Vec<evidence::FollowedRef>>,
    /// Where the evidence of new's actions leads; empty without an answer.
    pub new_evidence: Vec<Vec<evidence::FollowedRef>>,
    /// In what the answers differ; `None` where not both sides answered.
    pub differences: Option<Differences>,
    /// What is said of it.
    pub row: CaseEvaluation,
}

/// Which run of each side is shown of a case, by its place among the side's runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shown {
    /// The baseline's.
    pub baseline: usize,
    /// New's.
    pub new: usize,
}

impl Shown {
    /// The run of a side.
    pub const fn of(self, side: Side) -> usize {
        match side {
            Side::Baseline => self.baseline,
            Side::New => self.new,
        }
    }
}

/// Every case that either run knows: in the baseline's order, then those that only new has.
pub fn pair(baseline: &SideRuns, new: &SideRuns) -> Result<Vec<CaseId>, ReadError> {
    let mut ids = Vec::new();
    let mut known = HashSet::new();
    for id in baseline.case_ids()?.into_iter().chain(new.case_ids()?) {
        if known.insert(id.clone()) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// Compares two runs. The sink sees every case once, on several threads and in no order; the evaluation is in case order.
pub fn compare<E: Send>(
    request: &Request<'_>,
    sink: impl Fn(&CaseComparison<'_>) -> Result<(), E> + Sync,
) -> Result<Evaluation, CompareError<E>> {
    let ids = pair(&request.baseline, &request.new).map_err(CompareError::Read)?;
    let specs: BTreeMap<_, _> = request.cases.iter().map(|spec| (&spec.id, spec)).collect();
    let is_repeated = request.baseline.is_repeated() || request.new.is_repeated();
    let repeated = is_repeated.then(|| Repeated::of(request, &ids));
    let cases = ids
        .par_iter()
        .enumerate()
        .map(|(index, id)| {
            let comparison = compare_case(request, repeated.as_ref(), index, id, specs.get(id).copied());
            sink(&comparison)?;
            Ok(comparison.row)
        })
        .collect::<Result<Vec<_>, E>>()
        .map_err(CompareError::Sink)?;

    let mut counts: BTreeMap<_, _> = Verdict::ALL.into_iter().map(|verdict| (verdict, 0)).collect();
    for case in &cases {
        *counts.entry(case.verdict).or_default() += 1;
    }
    let judged: Vec<_> = cases.iter().map(|case| GateCase::of(case, specs.get(&case.case_id).copied())).collect();
    let of_repeats = repeated.iter().flat_map(|repeated| repeated.gate_rules(&cases, &request.limits)).collect();
    let gate = gate::judge(&judged, of_repeats, &request.limits);
    Ok(Evaluation {
        schema_version: EvaluationSchema::V1,
        evaluator_version: concat!("counterproof/", env!("CARGO_PKG_VERSION")).to_owned(),
        baseline: facts(request.baseline.first().reader().run()),
        new: facts(request.new.first().reader().run()),
        repeats: repeated.map(|repeated| Repeats {
            baseline: request.baseline.iter().map(|run| facts(run.reader().run())).collect(),
            new: request.new.iter().map(|run| facts(run.reader().run())).collect(),
            suite: repeated.suite().to_vec(),
        }),
        counts,
        gate,
        cases,
        extra: Extra::new(),
    })
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

fn compare_case<'a>(
    request: &Request<'_>,
    repeated: Option<&Repeated>,
    index: usize,
    id: &CaseId,
    spec: Option<&'a CaseSpec>,
) -> CaseComparison<'a> {
    let decided = repeated.and_then(|repeated| Some((repeated, repeated.case(index)?)));
    let shown = decided.map(|(_, case)| case.shown).unwrap_or_default();
    let load = |runs: &SideRuns, side| runs.get(shown.of(side)).map_or(Artifact::Absent, |run| run.load(id));
    let (baseline, new) = (load(&request.baseline, Side::Baseline), load(&request.new, Side::New));
    let follow = |artifact: &Artifact| artifact.answer().map(evidence::follow).unwrap_or_default();
    let (baseline_evidence, new_evidence) = (follow(&baseline), follow(&new));

    let judged = |artifact, evidence| Artifact::answer(artifact).map(|answer| Judged { answer, evidence });
    let results = request.expectations.judge(id, judged(&baseline, &baseline_evidence), judged(&new, &new_evidence));
    let mut differences = None;
    let (verdict, reasons) = verdict::judge(&baseline, &new, |old, other| {
        let baseline = WithEvidence { loaded: old, evidence: &baseline_evidence };
        let new = WithEvidence { loaded: other, evidence: &new_evidence };
        let found = differences.insert(Differences::between(baseline, new));
        verdict::of_answers(Compared { baseline, new, differences: found, expectations: &results })
    });
    let (verdict, reasons) = match decided.and_then(|(repeated, case)| repeated.verdict(case)) {
        Some((verdict, mut before)) => {
            before.extend(reasons);
            (verdict, before)
        }
        None => (verdict, reasons),
    };
    let row = CaseEvaluation {
        case_id: id.clone(),
        title: spec.and_then(|spec| spec.title.clone()),
        verdict,
        reasons,
        first_divergence: divergence::first(&baseline, &new, differences.as_ref()),
        alignment: differences.as_ref().map(alignment::of),
        risk_level: verdict::highest_risk([&baseline, &new]),
        expectations: results,
        repeats: decided.map(|(repeated, case)| repeated.told(case)),
        extra: Extra::new(),
    };
    CaseComparison { index, spec, shown, baseline, new, baseline_evidence, new_evidence, differences, row }
}
