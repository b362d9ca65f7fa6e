//! A cases file in JSON to which programs add the cases of their runs.

use std::io::{self, ErrorKind};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::CaseId;
use serde_json::Value;

use crate::file_lock::FileLock;
use crate::read_file;
use crate::write::{self, Durability, WriteError};

/// How long to wait for another process that changes the file.
const LOCK_TIME: Duration = Duration::from_secs(30);

/// The cases of a file, which no other process changes meanwhile. Cases of other programs, and their unknown fields, stay as they
/// are.
#[derive(Debug)]
pub struct CaseList {
    path: Utf8PathBuf,
    cases: Vec<Value>,
    is_changed: bool,
    _lock: FileLock,
}

impl CaseList {
    /// Reads a file to change it, in a folder that exists. A file that does not exist has no cases. Waits for another process that
    /// changes it.
    pub fn open(path: &Utf8Path) -> Result<Self, CaseListError> {
        // Not the file itself, which every write replaces.
        let lock_path = path.with_file_name(format!(".{}.lock", path.file_name().unwrap_or_default()));
        let lock = FileLock::lock_within(&lock_path, LOCK_TIME)
            .map_err(|source| CaseListError::Lock { path: path.to_owned(), source })?;
        let lock = lock.ok_or_else(|| CaseListError::Locked(path.to_owned()))?;
        Ok(Self { path: path.to_owned(), cases: read(path)?, is_changed: false, _lock: lock })
    }

    /// Checks that a file can be read, or does not exist.
    pub fn check(path: &Utf8Path) -> Result<(), CaseListError> {
        read(path).map(drop)
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
        // Sorted, so that the file does not depend on the order in which programs ran.
        self.cases.sort_by(|one, other| one["id"].as_str().cmp(&other["id"].as_str()));
        write::write_json(&self.path, &self.cases, Durability::Cached)
    }
}

fn read(path: &Utf8Path) -> Result<Vec<Value>, CaseListError> {
    let failed = |source| CaseListError::Read { path: path.to_owned(), source };
    match read_file::read(path, read_file::MAX_LARGE_BYTES) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed(error.into())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(error)),
    }
}

fn has_id(case: &Value, id: &CaseId) -> bool {
    // Other tools name the field `case_id`.
    case["id"] == id.as_str() || case["case_id"] == id.as_str()
}

/// A list of cases that cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum CaseListError {
    /// The file exists and cannot be read as a list of cases. Its cases would be lost.
    #[error("cannot read `{path}` as a list of cases")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the operating system or of the JSON parser.
        source: io::Error,
    },
    /// The file cannot be locked.
    #[error("cannot lock `{path}`")]
    Lock {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process holds the lock for too long.
    #[error("another process changes `{0}`")]
    Locked(Utf8PathBuf),
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
        let mut list = CaseList::open(&path).unwrap();
        list.set(&id("b"), json!({"id": "b", "title": "old"}));
        list.write().unwrap();
        let mut list = CaseList::open(&path).unwrap();
        assert!(list.contains(&id("b")) && !list.contains(&id("a")));
        list.set(&id("b"), json!({"id": "b", "title": "new"}));
        list.set(&id("a"), json!({"id": "a"}));
        list.write().unwrap();
        let written: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(written, json!([{"id": "a"}, {"id": "b", "title": "new"}]));
    }

    #[test]
    fn cases_that_others_add_at_the_same_time_are_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("cases.json");
        std::thread::scope(|scope| {
            for number in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    let id: CaseId = format!("case-{number}").parse().unwrap();
                    let mut list = CaseList::open(path).unwrap();
                    list.set(&id, json!({ "id": id }));
                    list.write().unwrap();
                });
            }
        });
        let written: Vec<Value> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(written.len(), 8);
        assert_eq!(folder.path().read_dir().unwrap().count(), 1, "the lock is removed");
    }

    #[test]
    fn a_file_that_is_no_list_is_an_error_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("cases.json");
        for text in ["{}", "[1", "- id: a"] {
            write::write(&path, text.as_bytes(), Durability::Cached).unwrap();
            assert!(CaseList::open(&path).is_err() && CaseList::check(&path).is_err(), "{text}");
        }
    }

    #[test]
    fn a_file_without_changes_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("cases.json");
        write::write(&path, b"[ {\"id\":\"a\"} ]", Durability::Cached).unwrap();
        let mut list = CaseList::open(&path).unwrap();
        list.set(&"a".parse().unwrap(), json!({"id": "a"}));
        list.write().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"[ {\"id\":\"a\"} ]");
    }
}
