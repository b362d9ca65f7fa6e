//! The file of events. It is opened before the command is started, so that an error prevents the start.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write;

use crate::Record;

/// A file of events that could not be opened or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum EventsFileError {
    #[error("failed to open the events file `{path}`: {source}")]
    Open { path: PathBuf, source: io::Error },
    #[error("the path of the events file `{0}` is not valid UTF-8")]
    NotUtf8(PathBuf),
    #[error("the events file `{0}` already exists and is not overwritten\n  hint: remove it or choose another name")]
    Exists(Utf8PathBuf),
    /// A safe-run that was killed leaves an empty file, and so does one that still runs.
    #[error(
        "the events file `{0}` already exists and is empty: another safe-run is still running or was killed\n  \
         hint: remove it or choose another name"
    )]
    ExistsEmpty(Utf8PathBuf),
    /// A pipe or a device could not be written.
    #[error("failed to write the events: {0}")]
    Write(io::Error),
    /// A file could not be written, and is now incomplete.
    #[error("failed to write the events: {source}\n  hint: `{path}` is incomplete; remove it before the next run")]
    Incomplete { path: Utf8PathBuf, source: io::Error },
}

/// An open file of events.
#[derive(Debug)]
pub(super) struct EventsFile {
    out: BufWriter<File>,
    /// The path, if this process has created the file.
    created: Option<Utf8PathBuf>,
}

impl EventsFile {
    /// Creates a new file, or opens an existing pipe, socket or device.
    pub(super) fn open(path: &Path) -> Result<Self, EventsFileError> {
        let is_special = path.metadata().is_ok_and(|metadata| {
            let kind = metadata.file_type();
            kind.is_fifo() || kind.is_char_device() || kind.is_socket()
        });
        let open_error = |source| EventsFileError::Open { path: path.to_owned(), source };
        if is_special {
            #[expect(
                clippy::disallowed_methods,
                reason = "a pipe or a device, which a crash cannot leave half-written"
            )]
            let opened = OpenOptions::new().write(true).open(path);
            return Ok(Self { out: BufWriter::new(opened.map_err(open_error)?), created: None });
        }
        let path = Utf8Path::from_path(path).ok_or_else(|| EventsFileError::NotUtf8(path.to_owned()))?;
        let file = write::create_new(path).map_err(|error| match error.source.kind() {
            io::ErrorKind::AlreadyExists => already_exists(path),
            _ => open_error(error.source),
        })?;
        Ok(Self { out: BufWriter::new(file), created: Some(path.to_owned()) })
    }

    pub(super) fn write(mut self, record: &Record) -> Result<(), EventsFileError> {
        let written = record.write_json_lines(&mut self.out).and_then(|()| self.out.flush());
        written.map_err(|source| match self.created {
            Some(path) => EventsFileError::Incomplete { path, source },
            None => EventsFileError::Write(source),
        })
    }

    /// Removes the file if this process has created it, so that the next call can use its name. If that fails, the next call
    /// reports the existing file.
    pub(super) fn discard(self) {
        let Some(path) = self.created else { return };
        let ours = self.out.get_ref().metadata().map(|file| (file.dev(), file.ino()));
        let existing = fs::symlink_metadata(&path).map(|file| (file.dev(), file.ino()));
        // Another process may have replaced the file in the meantime.
        if matches!((ours, existing), (Ok(ours), Ok(existing)) if ours == existing) {
            let _ = fs::remove_file(path);
        }
    }
}

fn already_exists(path: &Utf8Path) -> EventsFileError {
    match path.symlink_metadata() {
        Ok(existing) if existing.is_file() && existing.len() == 0 => EventsFileError::ExistsEmpty(path.to_owned()),
        _ => EventsFileError::Exists(path.to_owned()),
    }
}
