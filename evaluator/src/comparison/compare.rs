//! The whole line: two runs in, a verdict on each case and on all of them out.
//!
//! One case pair flows through on one worker: what was read for it is handed to the caller's sink and then dropped. What
//! stays is one row a case.

use std::collections::{BTreeMap, HashSet};

use counterproof_artifact::evaluation::{
    CaseEvaluation, ComparedRun as RunFacts, Evaluation, EvaluationSchema, Reason, Repeats, Verdict,
};
use counterproof_artifact::{CaseId, Extra, Run, Side};
use counterproof_cases::CaseSpec;
use counterproof_store::ReadError;
use rayon::prelude::*;

use crate::cause;
use crate::diff::alignment;
use crate::diff::{Differences, WithEvidence};
use crate::gate::{self, GateCase, GateLimits};
use crate::grounding::Provenance;
use crate::grounding::UsualValues;
use crate::judge::findings::{self, Findings};
use crate::judge::severity;
use crate::judge::verdict::{self, Compared};
use crate::judge::{Expectations, Judged};
use crate::load::Artifact;
use crate::load::SideRuns;
use crate::load::case_input::CaseInput;
use crate::load::{evidence, tools};
use crate::messages;
use crate::repeats::{RepeatInputs, Repeated, Shown, unplaced};
use crate::rules::Rules;
use crate::statistics::Thresholds;

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
    /// What is not compared to the letter.
    pub rules: Rules,
    /// The gate's limits.
    pub limits: GateLimits,
    /// What counts as worse where a side has several runs.
    pub thresholds: Thresholds,
}

impl Request<'_> {
    /// Two sides and nothing else: no cases are known, and everything is as it is where nobody says otherwise.
    pub fn new(baseline: SideRuns, new: SideRuns) -> Self {
        Self {
            baseline,
            new,
            cases: &[],
            expectations: Expectations::default(),
            rules: Rules::default(),
            limits: GateLimits::default(),
            thresholds: Thresholds::default(),
        }
    }
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
    /// True where more can be said once all cases were seen.
    pub(crate) undecided: bool,
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
    let inputs = RepeatInputs {
        baseline: &request.baseline,
        new: &request.new,
        expectations: &request.expectations,
        rules: &request.rules,
        thresholds: &request.thresholds,
    };
    let repeated = is_repeated.then(|| Repeated::of(&inputs, &ids));
    let places = UsualValues::default();
    let pass = |index: usize, all_noted: bool| {
        let id = &ids[index];
        let comparison =
            compare_case(request, repeated.as_ref(), index, id, specs.get(id).copied(), (&places, all_noted));
        if !all_noted {
            comparison.baseline.answer().into_iter().for_each(|answer| places.note(answer));
        }
        if comparison.undecided {
            return Ok(None);
        }
        sink(&comparison)?;
        let matched = comparison.differences.map(|found| found.rules_matched).unwrap_or_default();
        Ok(Some((comparison.row, matched)))
    };
    let first = (0..ids.len()).into_par_iter().map(|index| pass(index, false)).collect::<Result<Vec<_>, E>>();
    // What the baseline usually gives its tools is known only now: the few cases that hang on it are compared again.
    let again = |(index, row): (usize, Option<(CaseEvaluation, Vec<u64>)>)| match row {
        Some(row) => Ok(Some(row)),
        None => pass(index, true),
    };
    let first = first.map_err(CompareError::Sink)?;
    let cases = first.into_par_iter().enumerate().map(again).collect::<Result<Vec<_>, E>>();
    let (cases, matched): (Vec<_>, Vec<_>) = cases.map_err(CompareError::Sink)?.into_iter().flatten().unzip();

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
        rules: request.rules.used(&matched),
        clusters: cause::clusters(&cases),
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
    request: &'a Request<'_>,
    repeated: Option<&Repeated>,
    index: usize,
    id: &CaseId,
    spec: Option<&'a CaseSpec>,
    places: (&UsualValues, bool),
) -> CaseComparison<'a> {
    let decided = repeated.and_then(|repeated| Some((repeated, repeated.case(index)?)));
    let shown = decided.map(|(_, case)| case.shown).unwrap_or_default();
    let load = |runs: &SideRuns, side| runs.get(shown.of(side)).map_or(Artifact::Absent, |run| run.load(id));
    let (baseline, new) = (load(&request.baseline, Side::Baseline), load(&request.new, Side::New));
    let follow = |artifact: &Artifact| artifact.answer().map(evidence::follow).unwrap_or_default();
    let (baseline_evidence, new_evidence) = (follow(&baseline), follow(&new));

    let judged = |artifact, evidence| Artifact::answer(artifact).map(|answer| Judged { answer, evidence });
    let results = request.expectations.judge(id, judged(&baseline, &baseline_evidence), judged(&new, &new_evidence));
    let run_of = |runs: &'a SideRuns, side| runs.get(shown.of(side)).unwrap_or_else(|| runs.first());
    let asked = [(run_of(&request.baseline, Side::Baseline), &baseline), (run_of(&request.new, Side::New), &new)]
        .map(|(run, artifact)| CaseInput::new(id, spec, run, artifact.envelope()));
    let (mut differences, mut trail, mut findings) = (None, None, Findings::default());
    let (verdict, reasons) = verdict::judge(&baseline, &new, |old, other| {
        let baseline = WithEvidence { loaded: old, evidence: &baseline_evidence };
        let new = WithEvidence { loaded: other, evidence: &new_evidence };
        let found = differences.insert(Differences::between(baseline, new, &request.rules));
        if let Some((_, case)) = decided {
            case.mark_noise(found, [baseline, new], &request.rules);
        }
        let trail = trail.insert(Provenance::trace(baseline, new, found, [&asked[0], &asked[1]]));
        findings = findings::find(baseline, new, found, &trail.suspects, places);
        verdict::of_answers(Compared { baseline, new, differences: found, expectations: &results, findings: &findings })
    });
    let (verdict, reasons) = match decided.and_then(|(repeated, case)| repeated.verdict(case)) {
        Some((of_runs, mut before)) => {
            before.extend(reasons);
            // What no place holds is seen in the pair alone. It is a change, and no more: one run convicts nobody.
            let unplaced = match (of_runs, &differences) {
                (Verdict::Unchanged, Some(found)) => !found.is_empty() || findings.fresh().next().is_some(),
                (Verdict::Noisy, Some(found)) => match (baseline.answer(), new.answer()) {
                    (Some(old), Some(other)) => unplaced::is_any(found, [old, other], &request.rules),
                    _ => false,
                },
                _ => false,
            };
            (if unplaced { Verdict::Changed } else { of_runs }, before)
        }
        None => (verdict, reasons),
    };
    let (verdict, reasons) = match decided.and_then(|(_, case)| case.lost()) {
        Some((lost, reason)) => with_lost((verdict, reasons), (lost, reason)),
        None => (verdict, reasons),
    };
    let cause = match (&trail, &differences, baseline.answer(), new.answer()) {
        (Some(trail), Some(differences), Some(old), Some(other)) => cause::of_answers(cause::Inquiry {
            baseline: WithEvidence { loaded: old, evidence: &baseline_evidence },
            new: WithEvidence { loaded: other, evidence: &new_evidence },
            differences,
            trail,
            findings: &findings,
            asked: [&asked[0], &asked[1]],
        }),
        _ => cause::of_failures(&baseline, &new),
    };
    let severity = severity::of(severity::Known {
        baseline: &baseline,
        new: &new,
        differences: differences.as_ref(),
        expectations: &results,
        findings: &findings,
        runs: decided.and_then(|(_, case)| case.for_severity()),
    });
    let undecided = findings.undecided;
    let row = CaseEvaluation {
        case_id: id.clone(),
        title: title(spec, [&new, &baseline]),
        verdict,
        reasons,
        first_divergence: messages::first_divergence(&baseline, &new, differences.as_ref()),
        alignment: differences.as_ref().map(alignment::of),
        cause,
        severity: Some(severity),
        risk_level: verdict::highest(
            verdict::highest_risk([&baseline, &new].into_iter().filter_map(Artifact::answer))
                .into_iter()
                .chain(decided.and_then(|(_, case)| case.risk)),
        ),
        tools: tools::of([&baseline, &new]),
        tags: spec.map(|spec| spec.metadata.tags.clone()).unwrap_or_default(),
        suite: spec.and_then(|spec| spec.suite.clone()),
        findings: findings.list.into_iter().map(|found| found.finding).collect(),
        expectations: results,
        repeats: decided.map(|(repeated, case)| repeated.told(case, differences.as_ref())),
        extra: Extra::new(),
    };
    CaseComparison { index, spec, shown, baseline, new, baseline_evidence, new_evidence, differences, row, undecided }
}

/// A verdict on a case of which artifacts are lost: whatever the others say is no more than half of it, unless it convicts.
fn with_lost(
    (verdict, mut reasons): (Verdict, Vec<Reason>),
    (lost, reason): (Verdict, Reason),
) -> (Verdict, Vec<Reason>) {
    if gate::is_convicted(verdict) {
        reasons.push(reason);
        return (verdict, reasons);
    }
    reasons.insert(0, reason);
    (lost, reasons)
}

/// What a case is about: as the cases file says it, or else an artifact.
fn title(spec: Option<&CaseSpec>, artifacts: [&Artifact; 2]) -> Option<String> {
    let told = || artifacts.into_iter().find_map(|artifact| artifact.envelope()?.title.clone());
    spec.and_then(|spec| spec.title.clone()).or_else(told)
}
