//! One file, read and parsed, with its findings.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use crate::Code;
use crate::finding::{Finding, Findings};
use crate::parse;
use counterproof_store::confined_path::{self, ResolveError};
use counterproof_store::{EVALUATION_FILE, read_file};

/// Reads a document of a folder without leaving the folder. A failure becomes a finding, which quotes no content.
pub(crate) fn read(root: &Utf8Path, name: &str, findings: &mut Findings) -> Option<Vec<u8>> {
    let limit = if name == EVALUATION_FILE { read_file::MAX_LARGE_BYTES } else { read_file::MAX_DOCUMENT_BYTES };
    let error = match confined_path::read_up_to(root, name, limit) {
        Ok(bytes) => return Some(bytes),
        Err(error) => error,
    };
    let (code, expected) = match error {
        ResolveError::Escapes { .. } => (Code::HrefEscapes, "the document itself, in its folder"),
        ResolveError::NotAFile { .. } => (Code::Unreadable, "a file, not a folder, a pipe or a device"),
        ResolveError::Missing { .. } | ResolveError::Io { .. } => (Code::Unreadable, "a file that can be read"),
    };
    let message = match error {
        ResolveError::Missing { source, .. } | ResolveError::Io { source, .. } => source.to_string(),
        error => counterproof_artifact::escape_invisible(&error.to_string()),
    };
    findings.add(code, "", message, expected);
    None
}

/// A file that was read and parsed, with the findings up to now.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) path: Utf8PathBuf,
    /// Null where the file could not be parsed; `findings` has the reason.
    pub(crate) value: Value,
    pub(crate) is_json: bool,
    pub(crate) findings: Findings,
    bytes: Vec<u8>,
}

impl Document {
    /// Reads a file that the caller named, without confining it to a folder. It may be a pipe.
    pub(crate) fn read_requested(path: &Utf8Path) -> Self {
        Self::read_with(read_file::read_argument, path)
    }

    /// Reads a regular file that the walk of a tree found, without confining it to a folder.
    pub(crate) fn read_walked(path: &Utf8Path) -> Self {
        Self::read_with(read_file::read, path)
    }

    fn read_with(read: fn(&Utf8Path, u64) -> io::Result<Vec<u8>>, path: &Utf8Path) -> Self {
        let mut findings = Findings::new(path);
        let bytes = read(path, read_file::MAX_LARGE_BYTES)
            .map_err(|error| findings.add(Code::Unreadable, "", error.to_string(), "a file that can be read"));
        Self::from_bytes(path, bytes.ok(), findings)
    }

    pub(crate) fn read_in_folder(root: &Utf8Path, name: &str) -> Self {
        Self::read_in_folder_as(&root.join(name), root, name)
    }

    /// Reads a document of a folder, and reports it under the path that the caller used.
    pub(crate) fn read_in_folder_as(path: &Utf8Path, root: &Utf8Path, name: &str) -> Self {
        let mut findings = Findings::new(path);
        let bytes = read(root, name, &mut findings);
        Self::from_bytes(path, bytes, findings)
    }

    /// Parses the bytes, if there are any.
    pub(crate) fn from_bytes(path: &Utf8Path, bytes: Option<Vec<u8>>, mut findings: Findings) -> Self {
        let value = bytes.as_deref().and_then(|bytes| parse::parse(bytes, &mut findings));
        Self {
            path: path.to_owned(),
            is_json: value.is_some(),
            value: value.unwrap_or_default(),
            findings,
            bytes: bytes.unwrap_or_default(),
        }
    }

    /// Returns all findings in the order of the text.
    pub(crate) fn finish(self) -> Vec<Finding> {
        self.findings.into_located(&self.bytes)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_a_requested_file_may_be_something_else_than_a_regular_file() {
        let device = Utf8Path::new("/dev/null");
        let codes = |document: Document| document.finish().into_iter().map(|finding| finding.code).collect::<Vec<_>>();
        assert_eq!(codes(Document::read_walked(device)), [Code::Unreadable]);
        assert_eq!(codes(Document::read_requested(device)), [Code::EmptyFile]);
    }
}
