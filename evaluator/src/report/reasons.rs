//! Why a case has its verdict, with links to where that is seen, and how it did on its expectations.

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{Divergence, ExpectationResult, Judgement, Reason, SidePointer};

use super::case_page::CaseView;
use super::places::PlaceLink;
use super::shown;
use crate::load::Artifact;
use crate::values::text;

/// A reason, or the first divergence.
#[derive(Debug, Clone)]
pub(super) struct ReasonShown {
    /// The stable name.
    pub(super) code: String,
    /// The sentence.
    pub(super) message: String,
    /// Where to look.
    pub(super) links: Vec<PlaceLink>,
    /// True where the lists of steps part here first.
    pub(super) is_first: bool,
}

/// An expectation and how the sides did.
#[derive(Debug, Clone)]
pub(super) struct ExpectationShown {
    /// The key in the cases file.
    pub(super) code: String,
    /// What was expected.
    pub(super) expected: String,
    /// How the baseline did.
    pub(super) baseline: Option<JudgementShown>,
    /// How new did.
    pub(super) new: Option<JudgementShown>,
}

/// How a side did.
#[derive(Debug, Clone)]
pub(super) struct JudgementShown {
    /// Whether the expectation was met.
    pub(super) passed: bool,
    /// Whether nobody could tell.
    pub(super) undecided: bool,
    /// What was found.
    pub(super) found: String,
}

/// The reasons for the verdict.
pub(super) fn show(view: &CaseView<'_>) -> Vec<ReasonShown> {
    view.case.row.reasons.iter().map(|reason| show_reason(view, reason)).collect()
}

fn show_reason(view: &CaseView<'_>, reason: &Reason) -> ReasonShown {
    ReasonShown {
        code: reason.code.clone(),
        message: shown::visible(&reason.message),
        links: links(view, &reason.pointers),
        is_first: false,
    }
}

/// The first divergence as a sentence.
pub(super) fn divergence(view: &CaseView<'_>, divergence: &Divergence) -> ReasonShown {
    let code = serde_json::to_value(divergence.kind).ok();
    ReasonShown {
        code: code.and_then(|code| code.as_str().map(|code| code.replace('_', " "))).unwrap_or_default(),
        message: shown::visible(&divergence.message),
        links: links(view, &divergence.pointers),
        is_first: true,
    }
}

/// The first divergence, unless a reason that is read at once says the same: then that one is marked, and nothing is said twice.
pub(super) fn mark_first(reasons: &mut [ReasonShown], first: Option<ReasonShown>) -> Option<ReasonShown> {
    let first = first?;
    match reasons.iter_mut().find(|reason| reason.message == first.message && reason.links == first.links) {
        Some(reason) => {
            reason.is_first = true;
            None
        }
        None => Some(first),
    }
}

/// Links to the places that pointers name.
pub(super) fn links(view: &CaseView<'_>, pointers: &[SidePointer]) -> Vec<PlaceLink> {
    let is_shown = |side| !matches!(view.artifact(side), Artifact::Invalid(_) | Artifact::Absent);
    pointers.iter().map(|place| view.anchors.link(place, is_shown(place.side))).collect()
}

/// The expectations of the case.
pub(super) fn expectations(results: &[ExpectationResult]) -> Vec<ExpectationShown> {
    let judgement = |judgement: &Option<Judgement>| {
        judgement.as_ref().map(|judgement| JudgementShown {
            passed: judgement.is_met(),
            undecided: judgement.is_undecided(),
            found: shown::visible(judgement.found()),
        })
    };
    let show = |result: &ExpectationResult| ExpectationShown {
        code: result.code.clone(),
        expected: shown::visible(&result.expected),
        baseline: judgement(&result.baseline),
        new: judgement(&result.new),
    };
    results.iter().map(show).collect()
}

/// What is said of the expectations where both sides meet them all; otherwise nothing.
pub(super) fn all_met(results: &[ExpectationResult]) -> String {
    let met = |judgement: &Option<Judgement>| judgement.as_ref().is_some_and(Judgement::is_met);
    if results.is_empty() || !results.iter().all(|result| met(&result.baseline) && met(&result.new)) {
        return String::new();
    }
    format!("{}, met on both sides", text::count(results.len(), "expectation", "expectations"))
}

/// What is to be said of a side that has no answer and no failure to show.
pub(super) fn absence(side: Side, artifact: &Artifact) -> Option<String> {
    match artifact {
        Artifact::Absent => Some(format!("{side} has no artifact of this case")),
        Artifact::Invalid(_) => Some(format!("{side}'s artifact breaks the contract")),
        Artifact::Answer(_) | Artifact::Failure(_) => None,
    }
}
