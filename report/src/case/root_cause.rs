//! The root cause of a case, the findings on its new side, and its severity.

use counterproof_artifact::evaluation::{CaseFinding, Severity, SeverityLevel};

use super::anchors::AnchorLink;
use super::context::CaseContext;
use super::reasons::{self, ReasonView};
use crate::view::display;
use counterproof_evaluator::SeverityPart;

/// The root cause of a case.
#[derive(Debug, Clone)]
pub(crate) struct RootCauseView {
    pub(crate) code: String,
    /// The location of the difference.
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
    /// The score, with two digits.
    pub(crate) score: String,
    /// The parts, each with its name and its share.
    pub(crate) parts: Vec<(String, String)>,
}

/// The root cause, if it is known.
pub(crate) fn view(context: &CaseContext<'_>) -> Option<RootCauseView> {
    let cause = context.case.row.cause.as_ref()?;
    Some(RootCauseView {
        code: cause.code.clone(),
        place: display::visible(&cause.place),
        message: display::visible(&cause.message),
        links: reasons::links(context, &cause.pointers),
        path: reasons::links(context, &cause.path),
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
    let view = |finding: &CaseFinding| FindingView {
        code: finding.code.clone(),
        message: display::visible(&finding.message),
        links: reasons::links(context, &finding.pointers),
        note: if finding.in_baseline { "also on baseline" } else { "" },
    };
    context.case.row.findings.iter().map(view).collect()
}

/// The severity, if it is greater than zero.
pub(crate) fn severity(severity: Option<&Severity>) -> Option<SeverityView> {
    let severity = severity.filter(|severity| severity.score > 0.0)?;
    let parts = severity.parts.iter().map(|part| match SeverityPart::parse(&part.code) {
        Some(SeverityPart::Noise) => ("reduced by noise".to_owned(), display::score(part.share)),
        Some(SeverityPart::BaselineFailed) => {
            ("reduced because baseline failed".to_owned(), display::score(part.share))
        }
        _ => (part.code.replace('-', " "), display::score(part.share)),
    });
    let level = severity.level().map_or("", SeverityLevel::as_str);
    Some(SeverityView { level, score: display::score(severity.score), parts: parts.collect() })
}
