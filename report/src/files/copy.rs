//! Copies run files into the report. A file that cannot be read is no error of the report: its page says why it is missing.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use camino::Utf8Path;
use counterproof_store::write::{self, Durability, WriteError};

use super::run_files::{FileCopy, FileRef};

/// The run files that could not be read, with the reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CopyFailures {
    /// By the path of the copy within the report, which no two files share.
    reasons: BTreeMap<String, String>,
}

impl CopyFailures {
    pub(crate) fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Both lists in one.
    pub(crate) fn merged_with(&self, other: Self) -> Self {
        let mut reasons = self.reasons.clone();
        reasons.extend(other.reasons);
        Self { reasons }
    }

    /// The reference without its link if the file could not be read.
    pub(crate) fn apply(&self, reference: FileRef) -> FileRef {
        let reason = reference.copy.as_ref().and_then(|copy| self.reasons.get(&copy.target));
        match reason {
            Some(reason) => FileRef::missing(reference.link.name, reason),
            None => reference,
        }
    }
}

/// Copies run files into the report folder `out` that is under construction, and returns those that could not be read. An error means that a copy could
/// not be written, for example because the disk is full.
pub(crate) fn copy_files(
    out: &Utf8Path,
    copies: impl IntoIterator<Item = FileCopy>,
) -> Result<CopyFailures, WriteError> {
    let mut failures = CopyFailures::default();
    for FileCopy { source, target } in copies {
        let path = out.join(&target);
        // Several pages link to one file: a target that exists is a copy of this very file.
        let result = match write::copy_new(&source, &path) {
            // Most folders exist, so they are only created where a copy fails without.
            Err(error) if error.path == path && error.source.kind() == ErrorKind::NotFound => {
                write::create_folder(path.parent().unwrap_or(out))?;
                write::copy_new(&source, &path)
            }
            result => result,
        };
        match result {
            // The path of the error tells the two sides of the copy apart.
            Err(error) if error.path == source => {
                let reason = format!("could not be copied: {}", error.source);
                // A page that another thread builds at this moment may link to the file, so the reason takes its place.
                // A source that could not be opened has no target yet, and perhaps no folder for it.
                write::create_folder(path.parent().unwrap_or(out))?;
                write::write(&path, reason.as_bytes(), Durability::Cached)?;
                failures.reasons.insert(target, reason);
            }
            result => {
                result?;
            }
        }
    }
    Ok(failures)
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;

    fn reference(source: Utf8PathBuf, target: &str) -> FileRef {
        FileRef::copied("run.json", FileCopy { source, target: target.to_owned() })
    }

    #[test]
    fn an_unreadable_file_is_missing_with_a_reason_and_the_others_are_copied() {
        let directory = tempfile::tempdir().unwrap();
        let out = Utf8Path::from_path(directory.path()).unwrap();
        let source = out.join("source.json");
        write::write(&source, b"{}", Durability::Cached).unwrap();
        // A folder cannot be copied. The folder of its target does not exist yet.
        let unreadable = reference(out.to_owned(), "artifacts/new/a.json");
        let readable = reference(source, "artifacts/new/b.json");
        let copies = [&unreadable, &readable].map(|reference| reference.copy.clone().unwrap());
        let failures = copy_files(out, copies).unwrap();
        assert_eq!(std::fs::read(out.join("artifacts/new/b.json")).unwrap(), b"{}");
        let missing = failures.apply(unreadable);
        assert_eq!((missing.link.href, missing.copy), (None, None));
        assert!(missing.link.missing.starts_with("could not be copied: "), "{}", missing.link.missing);
        assert_eq!(failures.apply(readable.clone()), readable);
    }

    #[test]
    fn a_copy_that_cannot_be_written_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let out = Utf8Path::from_path(directory.path()).unwrap();
        let source = out.join("source.json");
        write::write(&source, b"{}", Durability::Cached).unwrap();
        write::write(&out.join("artifacts"), b"a file in the way", Durability::Cached).unwrap();
        let copy = reference(source, "artifacts/new/a.json").copy;
        assert!(copy_files(out, copy).is_err());
    }
}
