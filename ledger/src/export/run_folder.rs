//! Writes the run folder of an export.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use counterproof_artifact::{CaseId, Extra, Run, Stats};
use counterproof_store::{RunWriter, StagedRun};
use jiff::Timestamp;
use serde_json::json;

use super::ExportError;
use super::case::{case, time};
use super::destination::Destination;
use super::recorded_run::RecordedRun;
use super::run_status::RecordedStatus;
use crate::query::RunRecord;
use crate::store::EventStore;

/// The longest payload inside a case, as compact JSON in bytes. A longer payload becomes an asset.
const MAX_INLINE_BYTES: usize = 64 * 1024;

/// The name of the agent in the run document, instead of a URL.
const PRODUCER: &str = "ledger";

/// A run of the ledger and the case that it becomes.
#[derive(Debug, Clone)]
pub struct SelectedRun {
    pub run: RunRecord,
    pub case_id: CaseId,
}

/// A finished export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedRuns {
    pub folder: Utf8PathBuf,
    /// The cases, in the order of the runs.
    pub cases: Vec<ExportedCase>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedCase {
    pub case_id: CaseId,
    pub run_id: String,
    /// How the run ended, such as `SUCCEEDED`, `LOST` or `NOT_ENDED`.
    pub status: String,
    /// The number of its calls.
    pub calls: usize,
    /// The number of its calls that were not allowed.
    pub refused: u64,
    /// True if a guard recorded the calls of a server.
    pub has_guard: bool,
    /// The policies of these guards.
    pub policies: BTreeSet<String>,
}

/// Exports recorded runs as a run folder. The folder appears complete or not at all. One run is in memory at a time.
pub fn export_runs(
    store: &mut dyn EventStore,
    selected: &[SelectedRun],
    destination: &Destination<'_>,
) -> Result<ExportedRuns, ExportError> {
    reject_duplicates(selected)?;
    let staged = StagedRun::create(destination.out, destination.side, destination.run_id)?;
    let writer = staged.writer();
    let cases = selected.iter().map(|selected| write_case(store, selected, writer));
    let cases = cases.collect::<Result<Vec<_>, _>>()?;
    let run = Run { extra: policies(&cases), ..run_document(selected, &cases, destination) };
    writer.write_manifest(&run.generated_at)?;
    writer.write_run(&run)?;
    Ok(ExportedRuns { folder: staged.publish()?, cases })
}

fn reject_duplicates(selected: &[SelectedRun]) -> Result<(), ExportError> {
    let mut known = BTreeMap::new();
    for SelectedRun { run, case_id } in selected {
        if let Some(first) = known.insert(case_id.collision_key(), run) {
            let (first, second) = (first.run_id.clone(), run.run_id.clone());
            return Err(ExportError::DuplicateCaseId { case_id: case_id.clone(), first, second });
        }
    }
    Ok(())
}

fn write_case(
    store: &mut dyn EventStore,
    selected: &SelectedRun,
    writer: &RunWriter,
) -> Result<ExportedCase, ExportError> {
    let SelectedRun { run, case_id } = selected;
    let recorded = RecordedRun::read(store, &run.run_id)?;
    let mut case = case(run, &recorded, case_id.clone(), writer.side());
    writer.move_large_payloads(&mut case, MAX_INLINE_BYTES)?;
    writer.write_case(&case)?;
    Ok(ExportedCase {
        case_id: case_id.clone(),
        run_id: run.run_id.clone(),
        status: RecordedStatus::of_run(run).as_str().to_owned(),
        calls: recorded.calls.len(),
        refused: run.refused,
        has_guard: recorded.sources.has_guard(),
        policies: recorded.sources.policies(),
    })
}

/// Returns the policies of all guards as a setting of the run.
fn policies(cases: &[ExportedCase]) -> Extra {
    let policies: BTreeSet<_> = cases.iter().flat_map(|case| &case.policies).collect();
    Extra::from_iter((!policies.is_empty()).then(|| ("policies".to_owned(), json!(policies))))
}

fn statuses(cases: &[ExportedCase]) -> Extra {
    let mut statuses: BTreeMap<&str, u64> = BTreeMap::new();
    for case in cases {
        *statuses.entry(&case.status).or_default() += 1;
    }
    Extra::from_iter([("statuses".to_owned(), json!(statuses))])
}

fn run_document(selected: &[SelectedRun], cases: &[ExportedCase], destination: &Destination<'_>) -> Run {
    let started = selected.iter().filter_map(|selected| time(selected.run.started_at.as_deref()?)).min();
    let generated_at = started.unwrap_or(Timestamp::UNIX_EPOCH).to_string();
    let total = Some(selected.len().into());
    Run {
        base_url: PRODUCER.to_owned(),
        cases_path: destination.cases_path.clone(),
        selected_case_ids: selected.iter().map(|selected| selected.case_id.clone()).collect(),
        stats: Some(Stats {
            cases_total: total,
            cases_completed: total,
            cases_failed: Some(0_u64.into()),
            duration_ms: None,
            extra: statuses(cases),
        }),
        ..Run::new(destination.run_id.clone(), destination.side, generated_at, destination.writer.clone())
    }
}
