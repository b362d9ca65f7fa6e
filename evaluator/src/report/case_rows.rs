//! A case as one row of a list: what is said of it, and where its page is.

use counterproof_artifact::evaluation::CaseEvaluation;

use super::cause;
use super::names;
use super::shown;
use super::verdicts::{self, VerdictShown};
use super::writer::ReportWriter;
use crate::values::text;

/// A case in a list.
#[derive(Debug, Clone)]
pub(super) struct CaseRow {
    /// The case's page within the report, where it has one.
    pub(super) href: Option<String>,
    /// Its id.
    pub(super) case_id: String,
    /// Its title.
    pub(super) title: Option<String>,
    /// Its verdict.
    pub(super) verdict: VerdictShown,
    /// Its risk; empty where none is stated.
    pub(super) risk: &'static str,
    /// Its severity, with two digits.
    pub(super) severity: String,
    /// The deciding reason.
    pub(super) reason: String,
    /// How many more reasons there are, in words; empty where there are none.
    pub(super) more: String,
}

impl CaseRow {
    /// The row of a case.
    pub(super) fn of(report: &ReportWriter<'_>, case: &CaseEvaluation) -> Self {
        let more = case.reasons.len().saturating_sub(1);
        let has_page = report.selection.includes(case.verdict);
        Self {
            href: has_page.then(|| names::encode_path(&report.case_page(&case.case_id))),
            case_id: case.case_id.to_string(),
            title: case.title.as_deref().map(shown::visible),
            verdict: verdicts::show(case.verdict),
            risk: verdicts::risk(case.risk_level).unwrap_or(""),
            severity: severity(case),
            reason: reason(case),
            more: if more > 0 {
                format!("and {}", text::count(more, "more reason", "more reasons"))
            } else {
                String::new()
            },
        }
    }
}

/// A case's severity, with two digits.
pub(super) fn severity(case: &CaseEvaluation) -> String {
    case.severity.as_ref().map(|severity| cause::score(severity.score)).unwrap_or_default()
}

/// A case's deciding reason.
pub(super) fn reason(case: &CaseEvaluation) -> String {
    case.reasons.first().map(|reason| shown::visible(&reason.message)).unwrap_or_default()
}
