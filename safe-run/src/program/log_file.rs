//! The log file: its folder, created if missing, and a name that no other file has.

use std::ffi::OsStr;
use std::io::{self, Write};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::{AtomicFile, Durability, WriteError, create_folder, remove_leftovers_next_to};
use jiff::Timestamp;
use uuid::Uuid;

use super::settings::NameStyle;
use crate::Record;

/// Number of names to try.
const MAX_ATTEMPTS: u32 = 16;

/// A log that could not be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum LogFileError {
    #[error("the path of the log folder is not valid UTF-8")]
    NotUtf8,
    #[error("{}", with_cause(.0))]
    Write(#[from] WriteError),
    /// The captured output could not be read, or the log could not be written.
    #[error("failed to write the log in `{folder}`: {source}")]
    Content { folder: Utf8PathBuf, source: io::Error },
    #[error("no free name for a log in `{folder}` after {MAX_ATTEMPTS} attempts")]
    NoFreeName { folder: Utf8PathBuf },
}

fn with_cause(error: &WriteError) -> String {
    format!("{error}: {}", error.source)
}

/// Writes a log under the first free name in a folder, and returns its path.
pub(super) fn save(
    folder: &OsStr,
    names: impl Iterator<Item = String>,
    write: impl FnOnce(&mut AtomicFile) -> io::Result<()>,
) -> Result<Utf8PathBuf, LogFileError> {
    let folder = Utf8Path::from_path(folder.as_ref()).ok_or(LogFileError::NotUtf8)?;
    create_folder(folder)?;
    let path = folder.join("log");
    remove_leftovers_next_to(&path);
    // The log is written under a temporary name first: a reader never sees an incomplete log.
    let mut file = AtomicFile::create(&path)?;
    let written = write(&mut file).and_then(|()| file.flush());
    written.map_err(|source| LogFileError::Content { folder: folder.to_owned(), source })?;
    let paths = names.take(MAX_ATTEMPTS as usize).map(|name| folder.join(name));
    file.commit_new(paths, Durability::Synced)?.ok_or_else(|| LogFileError::NoFreeName { folder: folder.to_owned() })
}

/// How a failed command ended, as the names of older logs report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// The command failed without a signal from the user.
    Failed,
    /// `safe-run` forwarded a signal to the command.
    Aborted,
}

impl FailureKind {
    pub(super) const fn from_record(record: &Record) -> Self {
        if record.aborted_by.is_some() { Self::Aborted } else { Self::Failed }
    }

    const fn word(self) -> &'static str {
        match self {
            FailureKind::Failed => "FAIL",
            FailureKind::Aborted => "ABORTED",
        }
    }
}

/// Returns candidate names for a log, in the order in which to try them.
pub(super) fn names(style: NameStyle, now: Timestamp, kind: FailureKind) -> impl Iterator<Item = String> {
    let (process, kind) = (std::process::id(), kind.word());
    (0_u32..).map(move |attempt| match (style, attempt) {
        (NameStyle::Contract, _) => {
            let [.., a, b, c] = Uuid::now_v7().into_bytes();
            format!("safe-run-{}-{a:02x}{b:02x}{c:02x}.log", now.strftime("%Y%m%d-%H%M%S"))
        }
        (NameStyle::M0, 0) => format!("{}-pid{process}-{kind}.log", now.strftime("%Y%m%dT%H%M%SZ")),
        (NameStyle::M0, _) => format!("{}-pid{process}-{kind}-{attempt}.log", now.strftime("%Y%m%dT%H%M%SZ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_log_is_never_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("logs");
        let put = |name: &str, names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            save(folder.as_os_str(), names.into_iter(), |file| file.write_all(name.as_bytes()))
        };
        assert!(put("first", &["a"]).unwrap().ends_with("logs/a"));
        assert!(put("second", &["a", "b"]).unwrap().ends_with("logs/b"));
        let error = put("third", &["a", "b"]).unwrap_err();
        assert!(error.to_string().contains("no free name"), "{error}");
        assert_eq!(std::fs::read_to_string(folder.join("a")).unwrap(), "first");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "nothing else is left");
    }

    #[test]
    fn names_follow_the_contract() {
        let now: Timestamp = "2024-01-15T10:30:00Z".parse().unwrap();
        let process = std::process::id();
        let names = |style, kind| names(style, now, kind).take(2).collect::<Vec<_>>();
        let contract = names(NameStyle::Contract, FailureKind::Failed);
        assert!(contract.iter().all(|name| name.starts_with("safe-run-20240115-103000-") && name.len() == 35));
        assert_ne!(contract[0], contract[1]);
        let start = format!("20240115T103000Z-pid{process}");
        assert_eq!(
            names(NameStyle::M0, FailureKind::Failed),
            [format!("{start}-FAIL.log"), format!("{start}-FAIL-1.log")]
        );
        assert_eq!(names(NameStyle::M0, FailureKind::Aborted)[0], format!("{start}-ABORTED.log"));
    }
}
