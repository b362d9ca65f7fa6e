//! The format of the journal: a write-ahead log of complete files that may not be on disk yet.
//!
//! A run writes many small files, and syncing each of them would take most of its time. Their bytes are first appended to
//! one file, which is synced once for many of them. A committed file is either in the journal or synced on its own; after
//! a power loss, missing or torn files are restored from the journal. `commit_threads` writes it, `restore` reads it.
//!
//! A record is a line of JSON, `{"file": …, "bytes": …, "sha256": …}`, then the bytes of the file and a line break. The
//! digest covers the name of the file, a line break and its bytes.

use std::io::{self, BufRead, Read};

use serde::{Deserialize, Serialize};

use counterproof_artifact::canonical::{Sha256Digest, Sha256Hasher};

/// The journal in a run folder. It belongs to no document and is removed once every file is on disk.
pub const JOURNAL_FILE: &str = ".journal";

/// Largest file that goes through the journal, in bytes. Syncing a larger file costs less than writing it twice.
pub(crate) const MAX_FILE_BYTES: usize = 64 * 1024;

/// Longest first line of a record, in bytes. Names have at most a few hundred.
const MAX_HEAD_BYTES: u64 = 1024;

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    file: String,
    bytes: usize,
    sha256: Sha256Digest,
}

/// A file in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalRecord {
    /// Its path in the run folder, with forward slashes.
    pub file: String,
    /// The content of the file.
    pub bytes: Vec<u8>,
}

/// Serialises a record to the end of `out`.
pub(crate) fn append(out: &mut Vec<u8>, file: &str, bytes: &[u8]) -> io::Result<()> {
    let head = Head { file: file.to_owned(), bytes: bytes.len(), sha256: digest(file, bytes) };
    serde_json::to_writer(&mut *out, &head)?;
    out.push(b'\n');
    out.extend_from_slice(bytes);
    out.push(b'\n');
    Ok(())
}

/// The records of a journal, up to the first incomplete one: its writer was stopped before that record or any later one
/// was committed.
pub(crate) struct Records<R>(Option<R>);

impl<R: BufRead> Records<R> {
    pub(crate) const fn new(reader: R) -> Self {
        Self(Some(reader))
    }
}

impl<R: BufRead> Iterator for Records<R> {
    type Item = io::Result<JournalRecord>;

    fn next(&mut self) -> Option<io::Result<JournalRecord>> {
        let next = record(self.0.as_mut()?).transpose();
        if !matches!(next, Some(Ok(_))) {
            self.0 = None;
        }
        next
    }
}

fn record(reader: &mut impl BufRead) -> io::Result<Option<JournalRecord>> {
    let mut line = Vec::new();
    reader.by_ref().take(MAX_HEAD_BYTES).read_until(b'\n', &mut line)?;
    let Some(head) = line.strip_suffix(b"\n").and_then(|line| serde_json::from_slice::<Head>(line).ok()) else {
        return Ok(None);
    };
    if head.bytes > MAX_FILE_BYTES {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(head.bytes + 1);
    reader.by_ref().take(head.bytes as u64 + 1).read_to_end(&mut bytes)?;
    let is_complete =
        bytes.len() == head.bytes + 1 && bytes.pop() == Some(b'\n') && digest(&head.file, &bytes) == head.sha256;
    Ok(is_complete.then_some(JournalRecord { file: head.file, bytes }))
}

fn digest(file: &str, bytes: &[u8]) -> Sha256Digest {
    let mut hasher = Sha256Hasher::default();
    for part in [file.as_bytes(), b"\n", bytes] {
        hasher.update(part);
    }
    hasher.finish().0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(journal: &[u8]) -> Vec<JournalRecord> {
        Records::new(journal).collect::<io::Result<_>>().unwrap()
    }

    fn written(files: &[(String, Vec<u8>)]) -> (Vec<u8>, Vec<usize>) {
        let (mut journal, mut ends) = (Vec::new(), Vec::new());
        for (name, bytes) in files {
            append(&mut journal, name, bytes).unwrap();
            ends.push(journal.len());
        }
        (journal, ends)
    }

    fn files() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
        proptest::collection::vec(("[a-z\"\\\\é]{1,12}", proptest::collection::vec(any::<u8>(), 0..200)), 0..8)
    }

    proptest! {
        #[test]
        fn a_truncated_journal_yields_every_complete_record(files in files(), cut: prop::sample::Index) {
            let (journal, ends) = written(&files);
            let cut = cut.index(journal.len() + 1);
            let whole = ends.iter().filter(|end| **end <= cut).count();
            let read: Vec<_> = read(&journal[..cut]).into_iter().map(|record| (record.file, record.bytes)).collect();
            prop_assert_eq!(&read[..], &files[..whole]);
        }

        #[test]
        fn a_changed_byte_never_yields_a_different_file(files in files(), at: prop::sample::Index, flip in 1..=255u8) {
            let (mut journal, ends) = written(&files);
            prop_assume!(!journal.is_empty());
            let at = at.index(journal.len());
            journal[at] ^= flip;
            let before = ends.iter().filter(|end| **end <= at).count();
            let read: Vec<_> = read(&journal).into_iter().map(|record| (record.file, record.bytes)).collect();
            // Changing the letter case of a hexadecimal digit keeps the record valid.
            prop_assert!(files.starts_with(&read) && read.len() >= before);
        }

        #[test]
        fn arbitrary_bytes_are_read_without_an_error(bytes: Vec<u8>) {
            read(&bytes);
        }
    }
}
