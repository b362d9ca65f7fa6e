//! Writes the run folder of an export.

use camino::Utf8PathBuf;
use counterproof_artifact::{AssetKind, CaseId, CaseIds};
use counterproof_store::write::WriteError;
use counterproof_store::{RunWriter, StagedRun};

use super::ExportError;
use super::artifact::{MAX_INLINE_BYTES, case};
use super::destination::Destination;
use super::input::{RecordedCase, Source};
use super::run_document::run;

/// A finished export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    pub folder: Utf8PathBuf,
    /// Each case id with its command and exit code.
    pub cases: Vec<(CaseId, String, i32)>,
}

/// Exports records as a run folder. The folder appears complete or not at all.
pub fn export(sources: &[Source], destination: &Destination<'_>) -> Result<Exported, ExportError> {
    let mut case_ids = CaseIds::default();
    let cases = sources.iter().map(|source| RecordedCase::read(source, &mut case_ids));
    let cases = cases.collect::<Result<Vec<_>, _>>()?;
    let staged = StagedRun::create(destination.out, destination.side, destination.run_id)?;
    fill(staged.writer(), &cases, sources, destination)?;
    let folder = staged.publish()?;
    let cases = cases.into_iter().map(|case| (case.case_id, case.record.command, case.record.exit_code));
    Ok(Exported { folder, cases: cases.collect() })
}

fn fill(
    writer: &RunWriter,
    cases: &[RecordedCase],
    sources: &[Source],
    destination: &Destination<'_>,
) -> Result<(), WriteError> {
    for recorded in cases {
        for (name, bytes) in &recorded.files {
            let name = format!("{}.{name}.txt", recorded.case_id);
            writer.write_asset(&name, AssetKind::Other, Some(&recorded.case_id), bytes)?;
        }
        let mut case = case(recorded, destination.side);
        writer.move_large_payloads(&mut case, MAX_INLINE_BYTES)?;
        writer.write_case(&case)?;
    }
    let started = cases.iter().map(RecordedCase::started_at).min().unwrap_or_default();
    writer.write_manifest(&started.to_string())?;
    writer.write_run(&run(cases, sources, destination, started))
}
