//! Locations outside of the report that the exports may refer to.

use std::collections::HashMap;

use counterproof_artifact::CaseId;

use super::report_url::ReportUrl;

/// Locations outside of the report that the exports may refer to.
#[derive(Debug, Clone, Default)]
pub struct ReportContext {
    /// The address at which the report is published.
    pub report_url: Option<ReportUrl>,
    /// The location of each case in the cases files.
    pub case_locations: HashMap<CaseId, CaseLocation>,
}

/// The location of a case in a cases file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseLocation {
    /// The file, relative to the root of the repository, with forward slashes.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
}
