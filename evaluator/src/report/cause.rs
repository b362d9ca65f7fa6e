//! From where the difference of a case comes, what is wrong with its new side, and what makes it deserve a look.

use counterproof_artifact::evaluation::{CaseFinding, Severity};

use super::case_page::CaseView;
use super::places::PlaceLink;
use super::reasons::{self, ReasonShown};
use super::shown;
use crate::judge::SeverityPart;

/// The cause of a case.
#[derive(Debug, Clone)]
pub(super) struct CauseShown {
    /// The stable name.
    pub(super) code: String,
    /// What differs.
    pub(super) place: String,
    /// The sentence; empty where a reason beside it says the same.
    pub(super) message: String,
    /// Where it is, on the sides that have it.
    pub(super) links: Vec<PlaceLink>,
    /// The way from what changed back to it.
    pub(super) path: Vec<PlaceLink>,
}

/// Something wrong with the new side by itself.
#[derive(Debug, Clone)]
pub(super) struct FoundShown {
    /// The stable name.
    pub(super) code: String,
    /// The sentence.
    pub(super) message: String,
    /// Where to look.
    pub(super) links: Vec<PlaceLink>,
    /// Whether the baseline has it too, in words.
    pub(super) note: &'static str,
}

/// A severity.
#[derive(Debug, Clone)]
pub(super) struct SeverityShown {
    /// The score, with two digits.
    pub(super) score: String,
    /// Its parts, each with its name and its share.
    pub(super) parts: Vec<(String, String)>,
}

/// The cause, where there is one.
pub(super) fn show(view: &CaseView<'_>) -> Option<CauseShown> {
    let cause = view.case.row.cause.as_ref()?;
    Some(CauseShown {
        code: cause.code.clone(),
        place: shown::visible(&cause.place),
        message: shown::visible(&cause.message),
        links: reasons::links(view, &cause.pointers),
        path: reasons::links(view, &cause.path),
    })
}

impl CauseShown {
    /// The same without its sentence, where one of the reasons is that very sentence.
    pub(super) fn beside(mut self, reasons: &[ReasonShown]) -> Self {
        if reasons.iter().any(|reason| reason.message == self.message) {
            self.message.clear();
        }
        self
    }
}

/// The findings.
pub(super) fn findings(view: &CaseView<'_>) -> Vec<FoundShown> {
    let show = |finding: &CaseFinding| FoundShown {
        code: finding.code.clone(),
        message: shown::visible(&finding.message),
        links: reasons::links(view, &finding.pointers),
        note: if finding.in_baseline { "the baseline has the same" } else { "" },
    };
    view.case.row.findings.iter().map(show).collect()
}

/// The severity, where there is any.
pub(super) fn severity(severity: Option<&Severity>) -> Option<SeverityShown> {
    let severity = severity.filter(|severity| severity.score > 0.0)?;
    let parts = severity.parts.iter().map(|part| match SeverityPart::parse(&part.code) {
        Some(SeverityPart::Noise) => ("reduced by noise".to_owned(), score(part.share)),
        _ => (part.code.replace('-', " "), score(part.share)),
    });
    Some(SeverityShown { score: score(severity.score), parts: parts.collect() })
}

/// A share with two digits; one that is too small for them is still seen to be more than nothing.
pub(super) fn score(share: f64) -> String {
    if share > 0.0 && share < 0.005 { "<0.01".to_owned() } else { format!("{share:.2}") }
}
