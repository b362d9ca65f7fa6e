//! The run document of an export.

use counterproof_artifact::{Extra, Run, Stats};
use jiff::Timestamp;

use super::artifact::TOOL;
use super::destination::Destination;
use super::input::{RecordedCase, Source};

/// Builds the `run.json` of the export.
pub(super) fn run(
    cases: &[RecordedCase],
    sources: &[Source],
    destination: &Destination<'_>,
    started: Timestamp,
) -> Run {
    // Only the file name: the path would disclose the layout of this machine.
    let record = sources.first().and_then(|source| source.record.file_name()).unwrap_or_default();
    let total = Some(cases.len().into());
    let failed = Some(0_u64.into());
    let generated_at = started.to_string();
    Run {
        base_url: TOOL.to_owned(),
        cases_path: record.to_owned(),
        selected_case_ids: cases.iter().map(|case| case.case_id.clone()).collect(),
        stats: Some(Stats {
            cases_total: total,
            cases_completed: total,
            cases_failed: failed,
            duration_ms: None,
            extra: Extra::new(),
        }),
        ..Run::new(destination.run_id.clone(), destination.side, generated_at, destination.writer.clone())
    }
}
