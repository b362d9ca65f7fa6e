//! Writes the run folder of an export.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{AssetKind, CaseId};
use counterproof_store::write::{self, StagedFolder, WriteError};
use counterproof_store::{CreateError, RunWriter};

use super::ExportError;
use super::artifact::case;
use super::case_id::CaseIds;
use super::destination::Destination;
use super::input::{RecordedCase, Source};
use super::run_document::run;

/// A finished export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The run folder.
    pub folder: Utf8PathBuf,
    /// Each case id with its command and exit code.
    pub cases: Vec<(CaseId, String, i32)>,
}

/// Exports records as a run folder. The folder appears complete or not at all.
pub fn export(sources: &[Source], destination: &Destination<'_>) -> Result<Exported, ExportError> {
    let mut case_ids = CaseIds::default();
    let cases = sources.iter().map(|source| RecordedCase::read(source, &mut case_ids));
    let cases = cases.collect::<Result<Vec<_>, _>>()?;
    let parent = destination.out.join(destination.side.as_str());
    let folder = parent.join(destination.run_id.as_str());
    // Checked again when the folder is published; this check avoids writing a run that cannot be used.
    if exists(&folder) {
        return Err(CreateError::Exists(folder).into());
    }
    write::create_folder(&parent)?;
    let (mut staged, writer) =
        StagedFolder::create_with(&folder, "export", |path| RunWriter::create_at(path.to_owned(), destination.side))?;
    let filled = fill(&writer, &cases, sources, destination);
    // Releases the lock before the folder is renamed.
    drop(writer);
    filled?;
    publish(&mut staged, &folder)?;
    let cases = cases.into_iter().map(|case| (case.case_id, case.record.command, case.record.exit_code));
    Ok(Exported { folder, cases: cases.collect() })
}

fn exists(folder: &Utf8Path) -> bool {
    fs::symlink_metadata(folder).is_ok()
}

/// Renames the finished folder, unless another process has created `folder` in the meantime.
fn publish(staged: &mut StagedFolder, folder: &Utf8Path) -> Result<(), ExportError> {
    staged.publish().map_err(|error| {
        // An error after the rename also leaves a folder with the final name. Only if the temporary folder still exists does
        // the final one belong to another process.
        let is_taken = exists(folder) && exists(staged.path());
        if is_taken { CreateError::Exists(folder.to_owned()).into() } else { error.into() }
    })
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
        writer.write_case(&case(recorded, writer)?)?;
    }
    let started = cases.iter().map(RecordedCase::started_at).min().unwrap_or_default();
    writer.write_manifest(&started.to_string())?;
    writer.write_run(&run(cases, sources, destination, started))
}

#[cfg(test)]
mod tests {
    use counterproof_store::write::Durability;

    use super::*;

    #[test]
    fn a_run_folder_that_appeared_meanwhile_is_an_error_and_stays_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(directory.path()).unwrap();
        for name in ["theirs", "file"] {
            let folder = root.join(name);
            let mut staged = StagedFolder::create(&folder, "export").unwrap();
            match name {
                "file" => write::write(&folder, b"other", Durability::Cached).unwrap(),
                _ => write::create_folder(&folder.join("assets")).unwrap(),
            }
            let published = publish(&mut staged, &folder);
            assert!(
                matches!(&published, Err(ExportError::Create(CreateError::Exists(path))) if *path == folder),
                "{published:?}"
            );
        }
        assert!(root.join("theirs/assets").is_dir() && root.join("file").is_file());
        let mut staged = StagedFolder::create(&root.join("new"), "export").unwrap();
        fs::remove_dir(staged.path()).unwrap();
        let missing = publish(&mut staged, &root.join("new"));
        assert!(matches!(missing, Err(ExportError::Write(_))), "{missing:?}");
    }
}
