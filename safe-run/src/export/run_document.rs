//! The run document of an export.

use counterproof_artifact::{Extra, Run, RunSchema, Stats};
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
    Run {
        schema_version: RunSchema::V1,
        run_id: destination.run_id.clone(),
        version: destination.side,
        generated_at: started.to_string(),
        base_url: TOOL.to_owned(),
        cases_path: record.to_owned(),
        out_dir: "../..".to_owned(),
        selected_case_ids: cases.iter().map(|case| case.case_id.clone()).collect(),
        runner_version: destination.writer.clone(),
        repo_commit: None,
        dirty: None,
        node_version: None,
        timeout_ms: None,
        retries: None,
        concurrency: None,
        retry_policy: None,
        limits: None,
        case_digests: None,
        cases_digest: None,
        shard: None,
        group_id: None,
        repeat: None,
        repeats: None,
        until_decided: None,
        confirmation: None,
        deterministic: None,
        accepted: None,
        stats: Some(Stats {
            cases_total: total,
            cases_completed: total,
            cases_failed: failed,
            duration_ms: None,
            extra: Extra::new(),
        }),
        extra: Extra::new(),
    }
}
