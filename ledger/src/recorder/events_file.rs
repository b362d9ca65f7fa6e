//! The file to which the lines of all events are appended, next to the ledger.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write;

use super::RecordError;

/// A file of events. Several processes can append to the same file.
#[derive(Debug)]
pub(super) struct EventsFile {
    path: Utf8PathBuf,
    file: File,
    /// True if a part of a line was written.
    is_torn: bool,
}

impl EventsFile {
    pub(super) fn open(path: &Utf8Path) -> Result<Self, RecordError> {
        let failed = |source: io::Error| RecordError::EventsFile { path: path.to_owned(), source };
        // Events have previews of arguments and results.
        write::create_private_file(path).map_err(|error| failed(error.source))?;
        #[expect(clippy::disallowed_methods, reason = "appends whole lines; the existing content stays")]
        let file = OpenOptions::new().append(true).open(path).map_err(failed)?;
        Ok(Self { path: path.to_owned(), file, is_torn: false })
    }

    /// Appends a line with its newline, with one write.
    pub(super) fn append(&mut self, line: &str) -> Result<(), RecordError> {
        let written = if self.is_torn {
            // The rest of a line must not become a part of the next one.
            self.file.write_all(format!("\n{line}").as_bytes())
        } else {
            self.file.write_all(line.as_bytes())
        };
        self.is_torn = written.is_err();
        written.map_err(|source| RecordError::EventsFile { path: self.path.clone(), source })
    }
}
