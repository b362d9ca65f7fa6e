//! What leads from one thing to another within a pair of answers: which element stands for which, and where the values
//! that tools were given come from.

use crate::diff::counterparts::Counterparts;
use crate::diff::{Differences, WithEvidence};
use crate::grounding::{self, Origins, Suspect};
use crate::load::case_input::CaseInput;

/// The connections within a pair of answers.
#[derive(Debug, Default)]
pub(crate) struct Provenance<'a> {
    /// Which element stands for which.
    pub counterparts: Counterparts,
    /// Where the baseline's values come from; empty where both sides were given the same and gave the same.
    pub baseline: Origins<'a>,
    /// The same of new's.
    pub new: Origins<'a>,
    /// New's values that come from nowhere.
    pub suspects: Vec<Suspect<'a>>,
}

impl<'a> Provenance<'a> {
    /// Finds the connections of two aligned answers; `asked` is what the baseline and new were asked.
    pub(crate) fn trace(
        baseline: WithEvidence<'a>,
        new: WithEvidence<'a>,
        differences: &Differences,
        asked: [&CaseInput<'_>; 2],
    ) -> Self {
        let counterparts = Counterparts::of(differences);
        let complete = new.loaded.case.transcript_is_complete;
        if !complete && grounding::is_same_transcript(baseline.loaded, new.loaded) {
            return Self { counterparts, ..Self::default() };
        }
        let (old, other) = (Origins::of(baseline.loaded, asked[0]), Origins::of(new.loaded, asked[1]));
        let suspects = grounding::suspects(&old, &other, &counterparts, complete);
        Self { counterparts, baseline: old, new: other, suspects }
    }
}
