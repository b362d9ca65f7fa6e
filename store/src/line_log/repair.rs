//! Repairs the torn last line of a log.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};

use camino::{Utf8Path, Utf8PathBuf};

use super::{LogError, MAX_LINE_BYTES};
use crate::write::{AtomicFile, Durability};

/// Bytes that are read at once while searching for the start of the last line.
const CHUNK: u64 = 64 * 1024;

/// The largest number of files with torn lines next to a log.
const MAX_TORN_FILES: u32 = 1000;

/// What was done about a last line without a newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// The line was complete. Its newline was added.
    Completed {
        /// The length of the line in bytes.
        bytes: u64,
    },
    /// The line was incomplete. It was moved to a file of its own.
    Moved {
        /// The length of the line in bytes.
        bytes: u64,
        /// The file.
        to: Utf8PathBuf,
    },
}

/// Repairs the last line of a locked log. Returns `None` if it is whole.
pub(super) fn repair(
    path: &Utf8Path,
    file: &mut File,
    is_whole: &dyn Fn(&[u8]) -> bool,
) -> Result<Option<Repair>, LogError> {
    let (torn, length) = torn_line(file).map_err(LogError::read(path))?;
    if torn.is_empty() {
        return Ok(None);
    }
    let bytes = torn.len() as u64;
    if bytes > MAX_LINE_BYTES {
        return Err(LogError::TooLong { path: path.to_owned(), offset: length - bytes });
    }
    if is_whole(&torn) {
        file.write_all(b"\n").and_then(|()| file.sync_data()).map_err(LogError::write(path))?;
        return Ok(Some(Repair::Completed { bytes }));
    }
    // Saved before it is cut off, so that no crash loses it.
    let to = save(path, &torn)?;
    file.set_len(length - bytes).and_then(|()| file.sync_data()).map_err(LogError::write(path))?;
    Ok(Some(Repair::Moved { bytes, to }))
}

fn save(path: &Utf8Path, torn: &[u8]) -> Result<Utf8PathBuf, LogError> {
    let write_error = |error: crate::write::WriteError| LogError::Write { path: error.path, source: error.source };
    let mut copy = AtomicFile::create(path).map_err(write_error)?;
    copy.write_all(torn).map_err(LogError::write(path))?;
    let names = (1..=MAX_TORN_FILES).map(|number| Utf8PathBuf::from(format!("{path}.torn-{number}")));
    let saved = copy.commit_new(names, Durability::Synced).map_err(write_error)?;
    saved.ok_or_else(|| {
        LogError::write(path)(io::Error::other(format!(
            "{MAX_TORN_FILES} torn lines lie next to the file; remove them"
        )))
    })
}

/// Returns the bytes after the last newline, and the length of the file. Reads at most [`MAX_LINE_BYTES`] and one chunk.
fn torn_line(file: &mut File) -> io::Result<(Vec<u8>, u64)> {
    let length = file.metadata()?.len();
    let mut start = length;
    let mut tail = Vec::new();
    while start > 0 && length - start <= MAX_LINE_BYTES {
        let from = start.saturating_sub(CHUNK);
        file.seek(SeekFrom::Start(from))?;
        let mut chunk = Vec::new();
        file.take(start - from).read_to_end(&mut chunk)?;
        if let Some(newline) = chunk.iter().rposition(|byte| *byte == b'\n') {
            chunk.drain(..=newline);
            chunk.append(&mut tail);
            return Ok((chunk, length));
        }
        chunk.append(&mut tail);
        tail = chunk;
        start = from;
    }
    Ok((tail, length))
}
