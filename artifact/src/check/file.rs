//! Reading a file for the rules.

use std::fs;

use camino::Utf8Path;

use super::Code;
use super::finding::Findings;

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
