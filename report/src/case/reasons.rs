//! The reasons for the verdict of a case, and its first divergence, with links to the evidence.

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{Divergence, Reason, SidePointer};

use super::anchors::AnchorLink;
use super::context::CaseContext;
use crate::view::display;
use counterproof_evaluator::Artifact;

/// A reason, or the first divergence.
#[derive(Debug, Clone)]
pub(crate) struct ReasonView {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) links: Vec<AnchorLink>,
    /// Whether this is the first divergence.
    pub(crate) is_first: bool,
}

/// The reasons for the verdict.
pub(crate) fn view(context: &CaseContext<'_>) -> Vec<ReasonView> {
    context.case.row.reasons.iter().map(|reason| reason_view(context, reason)).collect()
}

fn reason_view(context: &CaseContext<'_>, reason: &Reason) -> ReasonView {
    ReasonView {
        code: reason.code.clone(),
        message: display::visible(&reason.message),
        links: links(context, &reason.pointers),
        is_first: false,
    }
}

/// The first divergence in the form of a reason.
pub(crate) fn divergence(context: &CaseContext<'_>, divergence: &Divergence) -> ReasonView {
    let code = serde_json::to_value(divergence.kind).ok();
    ReasonView {
        code: code.and_then(|code| code.as_str().map(|code| code.replace('_', " "))).unwrap_or_default(),
        message: display::visible(&divergence.message),
        links: links(context, &divergence.pointers),
        is_first: true,
    }
}

/// Marks the reason that equals the first divergence, so that the page shows it once. Returns the divergence if no visible
/// reason equals it.
pub(crate) fn mark_first(reasons: &mut [ReasonView], first: Option<ReasonView>) -> Option<ReasonView> {
    let first = first?;
    match reasons.iter_mut().find(|reason| reason.message == first.message && reason.links == first.links) {
        Some(reason) => {
            reason.is_first = true;
            None
        }
        None => Some(first),
    }
}

/// Links to the elements that pointers name.
pub(crate) fn links(context: &CaseContext<'_>, pointers: &[SidePointer]) -> Vec<AnchorLink> {
    let link = |at: &SidePointer| match context.artifact(at.side) {
        Artifact::Invalid(_) | Artifact::Absent => context.anchors.link_to_file(at),
        Artifact::Answer(_) | Artifact::Failure(_) => context.anchors.link(at),
    };
    pointers.iter().map(link).collect()
}

/// The note on a side without an answer and without a runner error.
pub(crate) fn absence(side: Side, artifact: &Artifact) -> Option<String> {
    match artifact {
        Artifact::Absent => Some(format!("{side} has no artifact of this case")),
        Artifact::Invalid(_) => Some(format!("the {side} artifact violates the contract")),
        Artifact::Answer(_) | Artifact::Failure(_) => None,
    }
}
