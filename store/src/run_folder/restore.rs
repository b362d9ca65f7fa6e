//! The other end of the journal: after a power cut, what it holds is written again where it is missing or torn.

use std::fs::File;
use std::io::{self, BufReader};

use camino::{Utf8Path, Utf8PathBuf};

use super::{ASSETS_FOLDER, ReadError, ReopenError, SAFE_EXTENSIONS};
use crate::confined_path;
use crate::run_folder::journal::{JOURNAL_FILE, Record, Records};
use crate::write::{self, Durability, WriteError};
use counterproof_artifact::CaseId;

/// Writes again what the journal of a folder holds and the folder does not, syncs all of it, and removes the journal.
pub(super) fn restore(folder: &Utf8Path) -> Result<(), ReopenError> {
    let path = folder.join(JOURNAL_FILE);
    if !path.exists() {
        return Ok(());
    }
    for record in unrestored(folder)? {
        let Record { file, bytes } = record?;
        let path = folder.join(file);
        if let Some(folder) = path.parent() {
            write::create_folder(folder)?;
        }
        write::write(&path, &bytes, Durability::Cached)?;
    }
    sync_files(folder)?;
    write::remove(&path)?;
    write::sync(folder)?;
    Ok(())
}

/// The records of a folder's journal whose files are not there as they were written; none where there is no journal.
pub fn unrestored(folder: &Utf8Path) -> Result<impl Iterator<Item = Result<Record, ReadError>>, ReadError> {
    let (folder, path) = (folder.to_owned(), folder.join(JOURNAL_FILE));
    let records = match File::open(&path) {
        Ok(file) => Some(Records::of(BufReader::new(file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(source) => return Err(ReadError::Io { path, source }),
    };
    let is_settled =
        move |record: &Record| confined_path::read(&folder, &record.file).is_ok_and(|it| it == record.bytes);
    let records = records.into_iter().flatten().map(move |record| {
        let record = record.map_err(|source| failed(&path, source))?;
        if is_ours(&record.file) { Ok(record) } else { Err(failed(&path, io::Error::other(NOT_OURS))) }
    });
    Ok(records.filter(move |record| record.as_ref().map_or(true, |record| !is_settled(record))))
}

const NOT_OURS: &str = "it holds a file that no run has";

fn failed(path: &Utf8PathBuf, source: io::Error) -> ReadError {
    ReadError::Io { path: path.clone(), source }
}

/// An artifact or an asset with a plain name: nothing else is written from a journal, whoever wrote it.
fn is_ours(file: &str) -> bool {
    let Some(asset) = file.strip_prefix(ASSETS_FOLDER).and_then(|rest| rest.strip_prefix('/')) else {
        return file.strip_suffix(".json").is_some_and(|stem| stem.parse::<CaseId>().is_ok());
    };
    let extension = Utf8Path::new(asset).extension().unwrap_or_default();
    !asset.contains(['/', '\\']) && SAFE_EXTENSIONS.contains(&extension)
}

/// Puts on disk what the journal of a folder holds under names, and the names themselves.
pub(super) fn sync_files(folder: &Utf8Path) -> Result<(), WriteError> {
    if !write::sync_file_system(folder)? {
        let path = folder.join(JOURNAL_FILE);
        let failed = |path: &Utf8Path, source| WriteError { path: path.to_owned(), source };
        let journal = File::open(&path).map_err(|source| failed(&path, source))?;
        for record in Records::of(BufReader::new(journal)) {
            let file = folder.join(record.map_err(|source| failed(&path, source))?.file);
            // One that could not be written is not there.
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
