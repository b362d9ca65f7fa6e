//! Why a case has its verdict: the reasons and the first divergence with links to the evidence, the root cause, the findings,
//! the severity, and the expectations.

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{
    CaseFinding, Divergence, ExpectationResult, Judgement, Reason, Severity, SeverityLevel, SidePointer,
};
use counterproof_evaluator::{Artifact, SeverityPart, text};

use super::context::{AnchorLink, CaseContext};
use crate::view::display;

/// A reason, or the first divergence.
#[derive(Debug, Clone)]
pub(crate) struct ReasonView {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) links: Vec<AnchorLink>,
    pub(crate) is_first: bool,
}

pub(crate) fn reasons(context: &CaseContext<'_>) -> Vec<ReasonView> {
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
    // The name in the evaluation, so that a new kind needs no second table here.
    let code = serde_json::to_value(divergence.kind).ok();
    ReasonView {
        code: code.and_then(|code| code.as_str().map(|code| code.replace('_', " "))).unwrap_or_default(),
        message: display::visible(&divergence.message),
        links: links(context, &divergence.pointers),
        is_first: true,
    }
}

/// Marks the reason that equals the first divergence. Returns the divergence if no visible reason equals it.
pub(crate) fn mark_first(reasons: &mut [ReasonView], first: Option<ReasonView>) -> Option<ReasonView> {
    let first = first?;
    // Marked, so that the page shows the same sentence once.
    match reasons.iter_mut().find(|reason| reason.message == first.message && reason.links == first.links) {
        Some(reason) => {
            reason.is_first = true;
            None
        }
        None => Some(first),
    }
}

pub(crate) fn links(context: &CaseContext<'_>, pointers: &[SidePointer]) -> Vec<AnchorLink> {
    let link = |at: &SidePointer| match context.artifact(at.side) {
        // An artifact that is invalid or absent has no rows that a link could lead to.
        Artifact::Invalid(_) | Artifact::Absent | Artifact::Outage(_) => context.anchors.link_to_file(at),
        Artifact::Answer(_) | Artifact::Failure(_) => context.anchors.link(at),
    };
    pointers.iter().map(link).collect()
}

/// The note on a side without an answer and without a runner error.
pub(crate) fn absence(side: Side, artifact: &Artifact) -> Option<String> {
    match artifact {
        Artifact::Absent => Some(format!("{side} has no artifact of this case")),
        Artifact::Invalid(_) => Some(format!("the {side} artifact violates the contract")),
        Artifact::Outage(_) => Some(format!("the {side} answer is the message of an outage")),
        Artifact::Answer(_) | Artifact::Failure(_) => None,
    }
}

#[derive(Debug, Clone)]
pub(crate) struct RootCauseView {
    pub(crate) code: String,
    pub(crate) place: String,
    /// The message; empty where a reason has the same message.
    pub(crate) message: String,
    pub(crate) links: Vec<AnchorLink>,
    /// The trace from the difference back to the root cause.
    pub(crate) path: Vec<AnchorLink>,
}

/// A problem of the new side that needs no comparison.
#[derive(Debug, Clone)]
pub(crate) struct FindingView {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) links: Vec<AnchorLink>,
    /// A note where baseline has the same problem; otherwise empty.
    pub(crate) note: &'static str,
}

#[derive(Debug, Clone)]
pub(crate) struct SeverityView {
    /// `high`, `medium` or `low`.
    pub(crate) level: &'static str,
    pub(crate) score: String,
    /// The parts, each with its name and its share.
    pub(crate) parts: Vec<(String, String)>,
}

pub(crate) fn root_cause(context: &CaseContext<'_>) -> Option<RootCauseView> {
    let cause = context.case.row.cause.as_ref()?;
    Some(RootCauseView {
        code: cause.code.clone(),
        place: display::visible(&cause.place),
        message: display::visible(&cause.message),
        links: links(context, &cause.pointers),
        path: links(context, &cause.path),
    })
}

impl RootCauseView {
    /// The same without its message, where a reason has that message.
    pub(crate) fn without_repetition(mut self, reasons: &[ReasonView]) -> Self {
        if reasons.iter().any(|reason| reason.message == self.message) {
            self.message.clear();
        }
        self
    }
}

pub(crate) fn findings(context: &CaseContext<'_>) -> Vec<FindingView> {
    let finding = |finding: &CaseFinding| FindingView {
        code: finding.code.clone(),
        message: display::visible(&finding.message),
        links: links(context, &finding.pointers),
        note: if finding.in_baseline { "also on baseline" } else { "" },
    };
    // A reason with the same message is shown above.
    let row = &context.case.row;
    let is_new = |finding: &&CaseFinding| row.reasons.iter().all(|reason| reason.message != finding.message);
    row.findings.iter().filter(is_new).map(finding).collect()
}

/// The severity, if it is greater than zero.
pub(crate) fn severity(severity: Option<&Severity>) -> Option<SeverityView> {
    let severity = severity.filter(|severity| severity.score > 0.0)?;
    let parts = severity.parts.iter().map(|part| match SeverityPart::parse(&part.code) {
        Some(SeverityPart::Noise) => ("reduced by noise".to_owned(), display::score(part.share)),
        Some(SeverityPart::BaselineFailed) => {
            ("reduced because baseline failed".to_owned(), display::score(part.share))
        }
        // The codes of all other parts are words, also those of newer versions.
        _ => (part.code.replace('-', " "), display::score(part.share)),
    });
    let level = severity.level().map_or("", SeverityLevel::as_str);
    Some(SeverityView { level, score: display::score(severity.score), parts: parts.collect() })
}

#[derive(Debug, Clone)]
pub(crate) struct ExpectationView {
    /// The key in the cases file.
    pub(crate) code: String,
    pub(crate) expected: String,
    pub(crate) baseline: Option<JudgementView>,
    pub(crate) new: Option<JudgementView>,
}

#[derive(Debug, Clone)]
pub(crate) struct JudgementView {
    pub(crate) passed: bool,
    pub(crate) undecided: bool,
    pub(crate) found: String,
}

pub(crate) fn expectations(results: &[ExpectationResult]) -> Vec<ExpectationView> {
    let judgement = |judgement: &Option<Judgement>| {
        judgement.as_ref().map(|judgement| JudgementView {
            passed: judgement.is_met(),
            undecided: judgement.is_undecided(),
            found: display::visible(judgement.found()),
        })
    };
    let expectation = |result: &ExpectationResult| ExpectationView {
        code: match result.turn {
            Some(turn) => format!("turn {}: {}", turn.get(), result.code),
            None => result.code.clone(),
        },
        expected: display::visible(&result.expected),
        baseline: judgement(&result.baseline),
        new: judgement(&result.new),
    };
    results.iter().map(expectation).collect()
}

/// A summary where both sides meet all expectations; otherwise empty.
pub(crate) fn all_met(results: &[ExpectationResult]) -> String {
    let met = |judgement: &Option<Judgement>| judgement.as_ref().is_some_and(Judgement::is_met);
    if results.is_empty() || !results.iter().all(|result| met(&result.baseline) && met(&result.new)) {
        return String::new();
    }
    format!("{}, met on both sides", text::count(results.len(), "expectation", "expectations"))
}
