//! One file on its way through the stages: read, parsed, held against the rules of its kind.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use super::finding::{Finding, Findings};
use super::{Code, parse};

/// Reads a whole file; a failure becomes a finding.
pub(super) fn read(path: &Utf8Path, findings: &mut Findings) -> Option<Vec<u8>> {
    match fs::read(path) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            findings.add(Code::Unreadable, "", error.to_string(), "a file that can be read");
            None
        }
    }
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
    pub(super) fn load(path: &Utf8Path) -> Self {
        let mut findings = Findings::of(path);
        let bytes = read(path, &mut findings);
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
