//! Labels of cases: reads the file of `accept --labels`, and checks it against the accepted runs.

use std::collections::{BTreeMap, HashSet};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{CaseId, Labels, LabelsSchema, pointer};
use counterproof_json_text::{duplicate_keys, positions, spans};
use counterproof_store::{LABELS_FILE, read_file};
use serde_json::{Map, Value};

/// Maximum length of a quoted value, in characters.
const MAX_QUOTED_CHARS: usize = 60;

/// Which cases the agent solved, as a file states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseLabels {
    path: Utf8PathBuf,
    /// The text of the file, for the positions in messages.
    text: String,
    solved: BTreeMap<String, bool>,
}

/// Why labels cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LabelsError {
    /// The file could not be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file is not JSON.
    #[error("`{path}` is not JSON")]
    Syntax {
        /// The file.
        path: Utf8PathBuf,
        /// The error, with line and column.
        source: serde_json::Error,
    },
    /// The file is not an object, or an empty one.
    #[error("`{0}` is not an object with a label for each case, such as {{\"refund_001\": true}}")]
    NotLabels(Utf8PathBuf),
    /// A value is not a label.
    #[error("{place}: the label of `{case}` is {found}, not true, false, 1 or 0")]
    Value {
        /// The file, line and column.
        place: String,
        /// The case.
        case: String,
        /// The value as JSON.
        found: String,
    },
    /// Two labels of one case.
    #[error("{place}: the case `{case}` has two labels")]
    Duplicate {
        /// The file, line and column of the second.
        place: String,
        /// The case.
        case: String,
    },
    /// A label of a case that the run does not have.
    #[error("{place}: the run has no case `{case}`")]
    UnknownCase {
        /// The file, line and column.
        place: String,
        /// The case.
        case: String,
    },
    /// The labels would replace the artifact of a case.
    #[error("the run has a case `labels`, whose artifact has the file name of the labels")]
    NameTaken,
}

impl CaseLabels {
    /// Reads labels: a JSON object from case ids to `true` or `1` (solved), `false` or `0` (not solved).
    pub fn read(path: &Utf8Path) -> Result<Self, LabelsError> {
        let text = read_file::read_text_argument(path, read_file::MAX_SMALL_BYTES)
            .map_err(|source| LabelsError::Read { path: path.to_owned(), source })?;
        let object: Map<String, Value> = match serde_json::from_str(&text) {
            Ok(Value::Object(object)) if !object.is_empty() => object,
            Ok(_) => return Err(LabelsError::NotLabels(path.to_owned())),
            Err(source) => return Err(LabelsError::Syntax { path: path.to_owned(), source }),
        };
        // serde_json silently takes the last of two equal keys, so the text is searched.
        if let Some(twice) = duplicate_keys(&text).listed.first() {
            let case = twice.pointer.trim_start_matches('/').to_owned();
            return Err(LabelsError::Duplicate { place: place(path, &text, twice.span.start), case });
        }
        let mut labels = Self { path: path.to_owned(), text, solved: BTreeMap::new() };
        for (case, value) in object {
            let Some(solved) = label(&value) else {
                let found = value.to_string().chars().take(MAX_QUOTED_CHARS).collect();
                return Err(LabelsError::Value { place: labels.place(&case), case, found });
            };
            labels.solved.insert(case, solved);
        }
        Ok(labels)
    }

    /// Checks that every label is about a case of the runs.
    pub(super) fn check<'a>(&self, cases: impl Iterator<Item = &'a CaseId>) -> Result<(), LabelsError> {
        let known: HashSet<&str> = cases.map(CaseId::as_str).collect();
        if LABELS_FILE.strip_suffix(".json").is_some_and(|name| known.contains(name)) {
            return Err(LabelsError::NameTaken);
        }
        match self.solved.keys().find(|case| !known.contains(case.as_str())) {
            Some(case) => Err(LabelsError::UnknownCase { place: self.place(case), case: case.clone() }),
            None => Ok(()),
        }
    }

    /// Returns the document for a run with these cases; `None` if none of them has a label.
    pub(super) fn document(&self, cases: &[CaseId]) -> Option<Labels> {
        let solved = cases.iter().filter_map(|case| Some((case.clone(), *self.solved.get(case.as_str())?)));
        let solved: BTreeMap<_, _> = solved.collect();
        let extra = counterproof_artifact::Extra::new();
        (!solved.is_empty()).then_some(Labels { schema_version: LabelsSchema::V1, solved, extra })
    }

    fn place(&self, case: &str) -> String {
        let span = spans(&self.text, &[&pointer::child("", case)]).pop().flatten();
        place(&self.path, &self.text, span.map_or(0, |span| span.start))
    }
}

/// Parses a label; `None` for any other value.
fn label(value: &Value) -> Option<bool> {
    if let Some(solved) = value.as_bool() {
        return Some(solved);
    }
    // As floats, because `1.0` and `1` are the same number in JSON.
    [(1.0, true), (0.0, false)].into_iter().find(|(number, _)| value.as_f64() == Some(*number)).map(|(_, label)| label)
}

fn place(path: &Utf8Path, text: &str, offset: usize) -> String {
    let positions = positions(text.as_bytes(), &[offset]);
    positions.first().map_or_else(|| path.to_string(), |at| format!("{path}:{}:{}", at.line, at.column))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CaseLabels, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("truth.json");
        counterproof_store::write::write(&path, text.as_bytes(), counterproof_store::write::Durability::Cached)
            .unwrap();
        let folder = format!("{}/", path.parent().unwrap());
        CaseLabels::read(&path).map_err(|error| error.to_string().replace(&folder, ""))
    }

    fn ids(names: &[&str]) -> Vec<CaseId> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn a_label_is_a_truth_value_or_its_number() {
        let labels = read(r#"{"a": true, "b": 0, "c": 1.0, "d": false}"#).unwrap();
        let document = labels.document(&ids(&["a", "b", "c", "e"])).unwrap();
        let solved: Vec<_> = document.solved.iter().map(|(id, solved)| (id.as_str(), *solved)).collect();
        assert_eq!(solved, [("a", true), ("b", false), ("c", true)]);
        assert_eq!(labels.document(&ids(&["e"])), None);
    }

    #[test]
    fn what_is_no_label_is_an_error_with_its_place() {
        let wrong = |text: &str| read(text).unwrap_err();
        assert_eq!(
            wrong("{\"a\": 1,\n \"b\": 0.5}"),
            "truth.json:2:7: the label of `b` is 0.5, not true, false, 1 or 0"
        );
        assert_eq!(wrong(r#"{"a": "yes"}"#), "truth.json:1:7: the label of `a` is \"yes\", not true, false, 1 or 0");
        assert_eq!(wrong("{\"a\": 1,\n\"a\": 0}"), "truth.json:2:1: the case `a` has two labels");
        for text in ["[]", "{}", "3"] {
            assert!(wrong(text).starts_with("`truth.json` is not an object with a label for each case"), "{text}");
        }
        assert_eq!(wrong("{\"a\": 1"), "`truth.json` is not JSON");
        assert!(matches!(CaseLabels::read(Utf8Path::new("absent.json")), Err(LabelsError::Read { .. })));
    }

    #[test]
    fn a_label_of_no_case_is_an_error_with_its_place() {
        let labels = read("{\"a\": 1,\n \"refund_9\": 0}").unwrap();
        let check = |names: &[&str]| labels.check(ids(names).iter()).map_err(|error| error.to_string());
        assert_eq!(check(&["a", "refund_9", "b"]), Ok(()));
        assert!(check(&["a"]).unwrap_err().ends_with("truth.json:2:14: the run has no case `refund_9`"));
        assert!(check(&["a", "refund_9", "labels"]).is_err());
    }
}
