//! Restores files from the journal after a power loss.

use std::io::{self, BufReader};

use camino::{Utf8Path, Utf8PathBuf};

use super::layout::{ASSETS_FOLDER, SAFE_EXTENSIONS};
use super::{ReadError, ReopenError};
use crate::confined_path;
use crate::read_file;
use crate::run_folder::journal::{JOURNAL_FILE, JournalRecord, Records};
use crate::write::{self, Durability, WriteError};
use counterproof_artifact::CaseId;

/// Restores the files of the journal that are missing or torn, syncs all of them, and removes the journal.
pub(super) fn restore(folder: &Utf8Path) -> Result<(), ReopenError> {
    let path = folder.join(JOURNAL_FILE);
    if !path.exists() {
        return Ok(());
    }
    // A second crash during this loop is harmless: the journal remains until all files are durable.
    for record in unrestored(folder)? {
        let JournalRecord { file, bytes } = record?;
        let path = folder.join(file);
        if let Some(folder) = path.parent() {
            write::create_folder(folder)?;
        }
        write::write(&path, &bytes, Durability::Cached)?;
    }
    // The order matters: the journal is removed only when its files no longer need it.
    sync_files(folder)?;
    write::remove(&path)?;
    write::sync(folder)?;
    Ok(())
}

/// Returns the records of the journal whose files are missing or differ; none where there is no journal.
pub fn unrestored(folder: &Utf8Path) -> Result<impl Iterator<Item = Result<JournalRecord, ReadError>>, ReadError> {
    let (folder, path) = (folder.to_owned(), folder.join(JOURNAL_FILE));
    let records = match read_file::open(&path) {
        Ok((file, _)) => Some(Records::new(BufReader::new(file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(source) => return Err(ReadError::Io { path, source }),
    };
    // Compared by content: after a power loss a file can have its name and size, but not its bytes.
    let is_restored =
        move |record: &JournalRecord| confined_path::read(&folder, &record.file).is_ok_and(|it| it == record.bytes);
    let records = records.into_iter().flatten().map(move |record| {
        let record = record.map_err(|source| failed(&path, source))?;
        if is_in_run_folder(&record.file) { Ok(record) } else { Err(failed(&path, io::Error::other(FOREIGN_FILE))) }
    });
    Ok(records.filter(move |record| record.as_ref().map_or(true, |record| !is_restored(record))))
}

const FOREIGN_FILE: &str = "it contains a file that no run folder has";

fn failed(path: &Utf8PathBuf, source: io::Error) -> ReadError {
    ReadError::Io { path: path.clone(), source }
}

/// True for an artifact or an asset with a plain name. Nothing else is restored: the journal may be forged.
fn is_in_run_folder(file: &str) -> bool {
    let Some(asset) = file.strip_prefix(ASSETS_FOLDER).and_then(|rest| rest.strip_prefix('/')) else {
        return file.strip_suffix(".json").is_some_and(|stem| stem.parse::<CaseId>().is_ok());
    };
    let extension = Utf8Path::new(asset).extension().unwrap_or_default();
    !asset.contains(['/', '\\']) && SAFE_EXTENSIONS.contains(&extension)
}

/// Syncs the files that the journal lists, and their folder entries.
pub(super) fn sync_files(folder: &Utf8Path) -> Result<(), WriteError> {
    if !write::sync_file_system(folder)? {
        let path = folder.join(JOURNAL_FILE);
        let failed = |path: &Utf8Path, source| WriteError { path: path.to_owned(), source };
        let (journal, _) = read_file::open(&path).map_err(|source| failed(&path, source))?;
        for record in Records::new(BufReader::new(journal)) {
            let file = folder.join(record.map_err(|source| failed(&path, source))?.file);
            // A file whose write failed does not exist.
            if file.exists() {
                write::sync_file(&file)?;
            }
        }
        if folder.join(ASSETS_FOLDER).is_dir() {
            write::sync(&folder.join(ASSETS_FOLDER))?;
        }
    }
    write::sync(folder)
}
