//! One file on its way through the stages: read, parsed, held against the rules of its kind.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use super::finding::{Finding, Findings};
use super::{Code, parse};
use counterproof_store::confined_path::{self, ResolveError};

/// Reads a whole document of a folder, and nothing beyond the folder; a failure becomes a finding that quotes no content.
pub(super) fn read(root: &Utf8Path, name: &str, findings: &mut Findings) -> Option<Vec<u8>> {
    let error = match confined_path::read(root, name) {
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

/// A file that was read and parsed, with what was found so far.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) path: Utf8PathBuf,
    /// Null where the findings say why there is no value.
    pub(super) value: Value,
    pub(super) is_json: bool,
    pub(super) findings: Findings,
    bytes: Vec<u8>,
}

impl Document {
    /// A file that the caller named, wherever it lies and whatever it is.
    pub(super) fn named(path: &Utf8Path) -> Self {
        let mut findings = Findings::of(path);
        let bytes = fs::read(path)
            .map_err(|error| findings.add(Code::Unreadable, "", error.to_string(), "a file that can be read"));
        Self::of(path, bytes.ok(), findings)
    }

    /// A document of a folder.
    pub(super) fn inside(root: &Utf8Path, name: &str) -> Self {
        Self::inside_as(&root.join(name), root, name)
    }

    /// The same under the path that the caller named it by.
    pub(super) fn inside_as(path: &Utf8Path, root: &Utf8Path, name: &str) -> Self {
        let mut findings = Findings::of(path);
        let bytes = read(root, name, &mut findings);
        Self::of(path, bytes, findings)
    }

    /// What was read, with what was found on the way.
    pub(super) fn of(path: &Utf8Path, bytes: Option<Vec<u8>>, mut findings: Findings) -> Self {
        let value = bytes.as_deref().and_then(|bytes| parse::parse(bytes, &mut findings));
        Self {
            path: path.to_owned(),
            is_json: value.is_some(),
            value: value.unwrap_or_default(),
            findings,
            bytes: bytes.unwrap_or_default(),
        }
    }

    /// Everything that was found, in the order of the text.
    pub(super) fn finish(self) -> Vec<Finding> {
        self.findings.into_located(&self.bytes)
    }
}
