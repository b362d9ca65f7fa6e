//! Which bytes of which file the index covers.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};

use counterproof_artifact::Sha256Digest;
use rusqlite::{Connection, OptionalExtension as _, Result, params};

/// Bytes before the end of the covered part whose digest is stored.
const TAIL_BYTES: u64 = 4096;

/// The covered part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Coverage {
    /// Length of the covered part.
    pub(super) bytes: u64,
    /// The device and the number of the file.
    file: String,
    /// The time of its last change.
    modified: String,
    /// The digest of the end of the covered part.
    tail: String,
}

/// How the index relates to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Freshness {
    /// All lines are covered.
    Current,
    /// Lines were appended.
    Behind,
    /// The file was replaced or changed in another way.
    Stale,
}

impl Coverage {
    /// Describes the first `bytes` of an open file.
    pub(super) fn of(file: &File, bytes: u64) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let modified = metadata.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos();
        Ok(Self { bytes, file: identity(&metadata), modified: modified.to_string(), tail: tail(file, bytes)? })
    }

    pub(super) fn load(connection: &Connection) -> Result<Option<Self>> {
        let mut statement = connection.prepare_cached("SELECT bytes, file, modified, tail FROM coverage")?;
        statement
            .query_row([], |row| {
                Ok(Self { bytes: row.get(0)?, file: row.get(1)?, modified: row.get(2)?, tail: row.get(3)? })
            })
            .optional()
    }

    pub(super) fn save(&self, connection: &Connection) -> Result<()> {
        let text = "INSERT OR REPLACE INTO coverage (one, bytes, file, modified, tail) VALUES (1, ?1, ?2, ?3, ?4)";
        let bytes = i64::try_from(self.bytes).unwrap_or(i64::MAX);
        connection.prepare_cached(text)?.execute(params![bytes, self.file, self.modified, self.tail]).map(drop)
    }

    /// Compares with a file of this length.
    pub(super) fn freshness(&self, file: &File) -> io::Result<Freshness> {
        let metadata = file.metadata()?;
        let now = Self::of(file, self.bytes.min(metadata.len()))?;
        if now.file != self.file || now.bytes != self.bytes || now.tail != self.tail {
            return Ok(Freshness::Stale);
        }
        Ok(match metadata.len() == self.bytes {
            // An edit in place can keep the length.
            true if now.modified != self.modified => Freshness::Stale,
            true => Freshness::Current,
            false => Freshness::Behind,
        })
    }
}

fn tail(file: &File, bytes: u64) -> io::Result<String> {
    let mut file = file.try_clone()?;
    // The position is shared with the other handle, which must stay where it is.
    let position = file.stream_position()?;
    let start = bytes.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut end = Vec::new();
    (&mut file).take(bytes - start).read_to_end(&mut end)?;
    file.seek(SeekFrom::Start(position))?;
    Ok(Sha256Digest::from_bytes(&end).to_string())
}

#[cfg(unix)]
fn identity(metadata: &std::fs::Metadata) -> String {
    use std::os::unix::fs::MetadataExt as _;

    format!("{}:{}", metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn identity(metadata: &std::fs::Metadata) -> String {
    format!("{:?}", metadata.created().ok())
}
