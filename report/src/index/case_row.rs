//! A case as a row of a list, and the table of such rows.

use counterproof_artifact::evaluation::{CaseEvaluation, SeverityLevel};

use super::usage_columns::{UsageCell, UsageColumns};
use crate::site::Site;
use crate::view::display;
use crate::view::verdict::{self, VerdictView};
use counterproof_evaluator::text;

/// A case in a list.
#[derive(Debug, Clone)]
pub(crate) struct CaseRow {
    /// The link to the case page, relative to the report folder; `None` for a case without a page.
    pub(crate) href: Option<String>,
    pub(crate) case_id: String,
    pub(crate) title: Option<String>,
    pub(crate) verdict: VerdictView,
    /// The risk; empty for an unknown one.
    pub(crate) risk: &'static str,
    /// The level of the severity; empty if nothing counts.
    pub(crate) severity: &'static str,
    /// The first reason, which decided the verdict.
    pub(crate) reason: String,
    /// The number of further reasons as text; empty where there are none.
    pub(crate) more: String,
}

impl CaseRow {
    pub(crate) fn new(site: &Site<'_>, case: &CaseEvaluation) -> Self {
        let more = case.reasons.len().saturating_sub(1);
        Self {
            href: site.case_href(case),
            case_id: case.case_id.to_string(),
            title: case.title.as_deref().map(display::visible),
            verdict: verdict::of_case(case),
            risk: verdict::risk(case.risk_level).unwrap_or(""),
            severity: severity(case),
            reason: reason(case),
            more: match more {
                0 => String::new(),
                more => format!("and {}", text::count(more, "more reason", "more reasons")),
            },
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct CaseTable {
    /// The names of the columns about time, size and cost.
    pub(crate) columns: Vec<&'static str>,
    /// The cases, each with a cell for each of these columns.
    pub(crate) rows: Vec<(CaseRow, Vec<UsageCell>)>,
}

impl CaseTable {
    pub(crate) fn new<'a>(
        site: &Site<'_>,
        columns: &UsageColumns,
        cases: impl Iterator<Item = &'a CaseEvaluation>,
    ) -> Self {
        let rows = cases.map(|case| (CaseRow::new(site, case), columns.cells(case))).collect();
        Self { columns: columns.names(), rows }
    }
}

/// The level of a case's severity: `high`, `medium`, `low`, or nothing.
pub(crate) fn severity(case: &CaseEvaluation) -> &'static str {
    case.severity_level().map_or("", SeverityLevel::as_str)
}

/// The reason that decided the verdict of a case.
pub(crate) fn reason(case: &CaseEvaluation) -> String {
    case.reasons.first().map(|reason| display::visible(&reason.message)).unwrap_or_default()
}
