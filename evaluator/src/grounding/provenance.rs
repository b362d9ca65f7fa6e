//! Provenance within a pair of answers: the counterparts of both sides, and the origins of the values passed to tools.

use crate::diff::counterparts::Counterparts;
use crate::diff::{Differences, WithEvidence};
use crate::grounding::{self, Origins, Suspect};
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
    /// Traces two aligned answers. `asked` has the inputs of the baseline and of new.
    pub(crate) fn trace(
        baseline: WithEvidence<'a>,
        new: WithEvidence<'a>,
        differences: &Differences,
        asked: [&CaseInput<'_>; 2],
    ) -> Self {
        let counterparts = Counterparts::new(differences);
        let complete = new.loaded.case.transcript_is_complete;
        if !complete && grounding::is_same_transcript(baseline.loaded, new.loaded) {
            return Self { counterparts, ..Self::default() };
        }
        let (old, other) = (Origins::trace(baseline.loaded, asked[0]), Origins::trace(new.loaded, asked[1]));
        let suspects = grounding::suspects(&old, &other, &counterparts, complete);
        Self { counterparts, baseline: old, new: other, suspects }
    }
}
