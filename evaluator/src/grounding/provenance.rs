//! Provenance within a pair of answers: the counterparts of both sides, and the origins of the values passed to tools.

use counterproof_artifact::Sides;

use crate::diff::counterparts::Counterparts;
use crate::diff::{Differences, WithEvidence};
use crate::grounding::{self, Origin, Origins, Suspect, Transcript};
use crate::load::case_input::CaseInput;

/// The provenance of a pair of answers.
#[derive(Debug, Default)]
pub(crate) struct Provenance<'a> {
    /// The counterparts of events and actions.
    pub counterparts: Counterparts,
    /// The origins of the baseline's values; empty if both transcripts are equal.
    pub baseline: Origins<'a>,
    /// The origins of new's values; empty if both transcripts are equal.
    pub new: Origins<'a>,
    /// New's values without an origin.
    pub suspects: Vec<Suspect<'a>>,
}

impl<'a> Provenance<'a> {
    /// Traces two aligned answers. `inputs` has the input of the case as each side received it.
    pub(crate) fn trace(
        sides: Sides<WithEvidence<'a>>,
        differences: &Differences,
        inputs: Sides<&CaseInput<'_>>,
    ) -> Self {
        let Sides { baseline, new } = sides;
        let counterparts = Counterparts::new(differences);
        // The fast path of equal transcripts: no value can have lost its origin. It does not apply to a complete transcript,
        // in which every value without an origin is reported, with or without a difference.
        let is_complete = new.loaded.case.transcript_is_complete;
        if !is_complete && grounding::is_same_transcript(baseline.loaded, new.loaded) {
            return Self { counterparts, ..Self::default() };
        }
        let origins = sides.zip(inputs).map(|(side, input)| Origins::trace(side.loaded, input));
        // A function, because it may read the stored request, which only a value without an origin needs.
        let transcript = || Transcript::new(new.loaded, inputs.new);
        let answers = Sides { baseline: &origins.baseline, new: &origins.new };
        let suspects = grounding::suspects(answers, new.loaded, &counterparts, transcript);
        Self { counterparts, baseline: origins.baseline, new: origins.new, suspects }
    }
    /// The arguments for which the baseline passed a value without an origin.
    pub(crate) fn unsourced_in_baseline(&self) -> impl Iterator<Item = u64> {
        self.baseline.leaves.iter().filter(|leaf| leaf.origin == Origin::Nowhere).map(|leaf| leaf.argument)
    }
}
