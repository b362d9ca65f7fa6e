//! A cases file in JSON to which programs add the cases of their runs.

use std::io::{self, ErrorKind};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::CaseId;
use serde_json::Value;

use crate::read_file;
use crate::write::{self, Durability, WriteError};

/// The cases of a file. Cases of other programs, and their unknown fields, stay as they are.
#[derive(Debug)]
pub struct CaseList {
    path: Utf8PathBuf,
    cases: Vec<Value>,
    is_changed: bool,
}

impl CaseList {
    /// Reads a file. A file that does not exist has no cases.
    pub fn read(path: &Utf8Path) -> Result<Self, CaseListError> {
        let failed = |source| CaseListError::Read { path: path.to_owned(), source };
        let cases = match read_file::read(path, read_file::MAX_LARGE_BYTES) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed(error.into()))?,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed(error)),
        };
        Ok(Self { path: path.to_owned(), cases, is_changed: false })
    }

    /// Returns true if the file has a case with this id.
    pub fn contains(&self, id: &CaseId) -> bool {
        self.cases.iter().any(|case| has_id(case, id))
    }

    /// Adds a case, or replaces the one with its id.
    pub fn set(&mut self, id: &CaseId, case: Value) {
        match self.cases.iter_mut().find(|known| has_id(known, id)) {
            Some(known) if *known == case => return,
            Some(known) => *known = case,
            None => self.cases.push(case),
        }
        self.is_changed = true;
    }

    /// Writes the file in the order of the ids, if a case has changed.
    pub fn write(mut self) -> Result<(), WriteError> {
        if !self.is_changed {
            return Ok(());
        }
        self.cases.sort_by(|one, other| one["id"].as_str().cmp(&other["id"].as_str()));
        write::write_json(&self.path, &self.cases, Durability::Cached)
    }
}

fn has_id(case: &Value, id: &CaseId) -> bool {
    case["id"] == id.as_str() || case["case_id"] == id.as_str()
}

/// A file that exists and cannot be read as a list of cases. Its cases would be lost.
#[derive(Debug, thiserror::Error)]
pub enum CaseListError {
    /// The file cannot be read.
    #[error("cannot read `{path}` as a list of cases")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the operating system or of the JSON parser.
        source: io::Error,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cases_are_added_and_replaced_and_the_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("cases.json");
        let id = |text: &str| text.parse::<CaseId>().unwrap();
        let mut list = CaseList::read(&path).unwrap();
        list.set(&id("b"), json!({"id": "b", "title": "old"}));
        list.write().unwrap();
        let mut list = CaseList::read(&path).unwrap();
        assert!(list.contains(&id("b")) && !list.contains(&id("a")));
        list.set(&id("b"), json!({"id": "b", "title": "new"}));
        list.set(&id("a"), json!({"id": "a"}));
        list.write().unwrap();
        let written: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(written, json!([{"id": "a"}, {"id": "b", "title": "new"}]));
    }

    #[test]
    fn a_file_that_is_no_list_is_an_error_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("cases.json");
        for text in ["{}", "[1", "- id: a"] {
            write::write(&path, text.as_bytes(), Durability::Cached).unwrap();
            assert!(CaseList::read(&path).is_err(), "{text}");
        }
    }

    #[test]
    fn a_file_without_changes_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("cases.json");
        write::write(&path, b"[ {\"id\":\"a\"} ]", Durability::Cached).unwrap();
        let mut list = CaseList::read(&path).unwrap();
        list.set(&"a".parse().unwrap(), json!({"id": "a"}));
        list.write().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"[ {\"id\":\"a\"} ]");
    }
}
