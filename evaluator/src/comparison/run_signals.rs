//! The signals of a case over all runs: what any run of new has, compared with what any run of the baseline has.

use counterproof_artifact::Sides;

use super::case::CaseContext;
use crate::judge::signals::{self, RunNumber, SignalInput, SignalSet};
use crate::load::case_input::CaseInput;
use crate::load::{Artifact, LoadedAnswer};

/// The shown artifact of each side, and its input.
#[derive(Clone, Copy)]
pub(super) struct ShownRuns<'a> {
    pub(super) index: Sides<usize>,
    pub(super) artifacts: Sides<&'a Artifact>,
    pub(super) inputs: Sides<&'a CaseInput<'a>>,
}

/// Finds the signals of the shown run of new, then those that only its other runs have.
pub(super) fn find(context: CaseContext<'_>, shown: ShownRuns<'_>) -> SignalSet {
    let mut found = SignalSet::default();
    if let Some(new) = shown.artifacts.new.answer() {
        found = of_answer(context, shown, new, shown.inputs.new);
    }
    // A deterministic agent says the same in every run.
    let others = context.repeats.filter(|_| !context.is_deterministic).into_iter();
    for index in others.flat_map(|repeats| &repeats.case.runs_with_signals).copied() {
        let Some(run) = context.request.new.get(index).filter(|_| index != shown.index.new) else { continue };
        let artifact = run.load(context.case_id);
        let Some(new) = artifact.answer() else { continue };
        let input = CaseInput::new(context.case_id, context.spec, run, artifact.envelope());
        let runs = context.request.new.iter().len();
        found.include(of_answer(context, shown, new, &input), RunNumber { index, runs });
    }
    found
}

/// The signals of one answer of new. Other runs of the baseline are loaded only if the shown one does not have them all.
fn of_answer(context: CaseContext<'_>, shown: ShownRuns<'_>, new: &LoadedAnswer, input: &CaseInput<'_>) -> SignalSet {
    let against = |baseline: Option<&LoadedAnswer>, of_baseline: &CaseInput<'_>| {
        signals::find(SignalInput {
            new,
            baseline,
            inputs: Sides::new(of_baseline, input),
            settings: &context.request.signals,
            baseline_contacts: context.baseline_contacts,
            coverage: context.baseline_values.coverage,
        })
    };
    let mut found = against(shown.artifacts.baseline.answer(), shown.inputs.baseline);
    for (index, run) in context.request.baseline.iter().enumerate() {
        if !found.has_fresh() {
            break;
        }
        if index == shown.index.baseline {
            continue;
        }
        let artifact = run.load(context.case_id);
        if artifact.answer().is_some() {
            let of_baseline = CaseInput::new(context.case_id, context.spec, run, artifact.envelope());
            found.mark_in_baseline(&against(artifact.answer(), &of_baseline));
        }
    }
    found
}
