//! The runs of a case besides those that its page shows: each that answered or acted in another way, next to the shown run of the
//! other side. They are not judged, since all runs together decide the verdict.

use counterproof_artifact::evaluation::{CaseEvaluation, CaseUsage};
use counterproof_artifact::{Side, Sides};

use super::case::{CaseComparison, LoadedPair};
use super::request::Request;
use super::rerender;
use crate::judge::{self, story};
use crate::load::Artifact;
use crate::messages;

/// Maximum number of runs of a side that are looked at.
const RUNS_SEEN: usize = 50;

/// A run that differs from the shown one of its side.
#[derive(Debug)]
pub struct OtherRun<'a> {
    /// Its side.
    pub side: Side,
    /// The run next to the shown one of the other side. Its row has no verdict of its own and no reasons.
    pub comparison: CaseComparison<'a>,
}

/// The runs whose answer or actions differ from those of the shown run of their side, in order.
pub fn other_runs<'a>(request: &Request<'_>, case: &CaseComparison<'a>) -> Vec<OtherRun<'a>> {
    if case.row.repeats.is_none() || case.is_alone {
        return Vec::new();
    }
    let of_side = |side: Side| {
        let shown = *case.shown.get(side);
        let count = request.runs(side).iter().len().min(RUNS_SEEN);
        (0..count).filter(move |index| *index != shown).map(move |index| (side, index))
    };
    let others = Side::BOTH.into_iter().flat_map(of_side);
    others.filter_map(|(side, index)| of_run(request, case, side, index)).collect()
}

fn of_run<'a>(request: &Request<'_>, case: &CaseComparison<'a>, side: Side, index: usize) -> Option<OtherRun<'a>> {
    let artifact = request.runs(side).get(index)?.load(&case.row.case_id);
    let shown = Sides::new(&case.baseline, &case.new);
    if matches!(artifact, Artifact::Absent) || is_same(shown.get(side), &artifact) {
        return None;
    }
    let mut runs = case.shown;
    *runs.get_mut(side) = index;
    let mut artifacts = shown.map(Artifact::clone);
    *artifacts.get_mut(side) = artifact;
    let pair = LoadedPair::new(runs, artifacts);
    let row = CaseEvaluation {
        reasons: Vec::new(),
        first_divergence: None,
        lasting_divergence: None,
        alignment: None,
        cause: None,
        findings: Vec::new(),
        severity: None,
        expectations: Vec::new(),
        repeats: None,
        usage: usage(&pair),
        ..case.row.clone()
    };
    let mut comparison = rerender::of_pair(request, pair, case.spec, row);
    comparison.index = case.index;
    comparison.is_deterministic = case.is_deterministic;
    let CaseComparison { baseline, new, baseline_evidence, new_evidence, differences, spec, row, .. } = &mut comparison;
    row.first_divergence = messages::first_divergence(baseline, new, differences.as_ref());
    let answers = Sides::new(baseline.answer(), new.answer()).both();
    let compared = answers.zip(differences.as_ref());
    row.lasting_divergence = compared
        .zip(row.first_divergence.as_ref())
        .and_then(|((answers, differences), first)| messages::lasting_divergence(answers, differences, first));
    row.story = story::of_case(&story::StoryInput {
        spec: *spec,
        artifacts: Sides::new(baseline, new),
        compared: compared.map(|(answers, differences)| {
            let evidence = Sides::new(baseline_evidence.as_slice(), new_evidence.as_slice());
            (
                answers.zip(evidence).map(|(loaded, evidence)| crate::diff::WithEvidence { loaded, evidence }),
                differences,
            )
        }),
    });
    Some(OtherRun { side, comparison })
}

fn usage(pair: &LoadedPair) -> Option<CaseUsage> {
    let measure = |artifact: &Artifact| artifact.answer().map(judge::usage::of_answer);
    let Sides { baseline, new } = pair.artifacts.as_ref().map(measure);
    (baseline.is_some() || new.is_some()).then_some(CaseUsage { baseline, new })
}

/// Whether a reader sees the same: the same answer after the same actions, or the same failure.
fn is_same(shown: &Artifact, other: &Artifact) -> bool {
    match (shown, other) {
        (Artifact::Answer(a), Artifact::Answer(b)) => {
            let (a, b) = (&a.answer, &b.answer);
            let mut actions = a.proposed_actions.iter().zip(&b.proposed_actions);
            a.final_output.content == b.final_output.content
                && a.proposed_actions.len() == b.proposed_actions.len()
                && actions.all(|(a, b)| a.tool_name == b.tool_name && a.params == b.params)
        }
        (Artifact::Failure(a), Artifact::Failure(b)) => {
            (a.failure.class, a.failure.status) == (b.failure.class, b.failure.status)
        }
        (Artifact::Outage(a), Artifact::Answer(b)) => a.answer.final_output.content == b.answer.final_output.content,
        (Artifact::Invalid(_), Artifact::Invalid(_)) => true,
        _ => false,
    }
}
