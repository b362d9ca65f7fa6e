//! The journal of a run folder: files that are finished, but that the disk may not hold yet, each whole.
//!
//! A run writes many small files, and to wait for the disk for each of them would take most of its time. So their bytes go
//! to the end of one file first, which is synced once for many. What counts as done is in the journal or synced itself; after
//! a power cut, files that are missing or torn are written again from here. This module knows the format; when it is written
//! is told in `store/commit.rs`, and when it is read in `store/restore.rs`.
//!
//! A record is a line of JSON, `{"file": …, "bytes": …, "sha256": …}`, then the bytes of the file and a line break. The
//! digest is that of the file's name, a line break and its bytes.

use std::io::{self, BufRead, Read};

use serde::{Deserialize, Serialize};

use counterproof_artifact::canonical::{Sha256Digest, Sha256Hasher};

/// The journal, within a run folder. It belongs to no document, and is gone once everything is on disk.
pub const JOURNAL_FILE: &str = ".journal";

/// Largest file that goes through the journal, in bytes. A larger one is better written once and synced by itself.
pub(crate) const LARGEST: usize = 64 * 1024;

/// Longest first line of a record, in bytes: names are of some hundred.
const LONGEST_HEAD: u64 = 1024;

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    file: String,
    bytes: usize,
    sha256: Sha256Digest,
}

/// A file as the journal has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its place within the run folder, with forward slashes.
    pub file: String,
    /// The content of the file.
    pub bytes: Vec<u8>,
}

/// Adds a record to what will be appended.
pub(crate) fn append(out: &mut Vec<u8>, file: &str, bytes: &[u8]) -> io::Result<()> {
    let head = Head { file: file.to_owned(), bytes: bytes.len(), sha256: digest(file, bytes) };
    serde_json::to_writer(&mut *out, &head)?;
    out.push(b'\n');
    out.extend_from_slice(bytes);
    out.push(b'\n');
    Ok(())
}

/// The records of a journal, up to the first that is not whole: whoever wrote that was stopped before anything in it or
/// behind it counted as done.
pub(crate) struct Records<R>(Option<R>);

impl<R: BufRead> Records<R> {
    pub(crate) const fn of(reader: R) -> Self {
        Self(Some(reader))
    }
}

impl<R: BufRead> Iterator for Records<R> {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<io::Result<Record>> {
        let next = record(self.0.as_mut()?).transpose();
        if !matches!(next, Some(Ok(_))) {
            self.0 = None;
        }
        next
    }
}

fn record(reader: &mut impl BufRead) -> io::Result<Option<Record>> {
    let mut line = Vec::new();
    reader.by_ref().take(LONGEST_HEAD).read_until(b'\n', &mut line)?;
    let Some(head) = line.strip_suffix(b"\n").and_then(|line| serde_json::from_slice::<Head>(line).ok()) else {
        return Ok(None);
    };
    if head.bytes > LARGEST {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(head.bytes + 1);
    reader.by_ref().take(head.bytes as u64 + 1).read_to_end(&mut bytes)?;
    let whole =
        bytes.len() == head.bytes + 1 && bytes.pop() == Some(b'\n') && digest(&head.file, &bytes) == head.sha256;
    Ok(whole.then_some(Record { file: head.file, bytes }))
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

    fn read(journal: &[u8]) -> Vec<Record> {
        Records::of(journal).collect::<io::Result<_>>().unwrap()
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
        fn a_journal_that_ends_anywhere_gives_every_record_that_is_whole(files in files(), cut: prop::sample::Index) {
            let (journal, ends) = written(&files);
            let cut = cut.index(journal.len() + 1);
            let whole = ends.iter().filter(|end| **end <= cut).count();
            let read: Vec<_> = read(&journal[..cut]).into_iter().map(|record| (record.file, record.bytes)).collect();
            prop_assert_eq!(&read[..], &files[..whole]);
        }

        #[test]
        fn a_byte_that_changed_makes_no_file_of_others(files in files(), at: prop::sample::Index, flip in 1..=255u8) {
            let (mut journal, ends) = written(&files);
            prop_assume!(!journal.is_empty());
            let at = at.index(journal.len());
            journal[at] ^= flip;
            let before = ends.iter().filter(|end| **end <= at).count();
            let read: Vec<_> = read(&journal).into_iter().map(|record| (record.file, record.bytes)).collect();
            // A hexadecimal digit in the other letter case is no change.
            prop_assert!(files.starts_with(&read) && read.len() >= before);
        }

        #[test]
        fn any_bytes_at_all_are_read_without_an_error(bytes: Vec<u8>) {
            read(&bytes);
        }
    }
}
