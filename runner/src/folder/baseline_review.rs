//! The review of a person: reads the file of `accept --review`, and checks it against the accepted runs.

use std::collections::{HashMap, HashSet};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{CaseId, Extra, Mark, Review, ReviewMark, ReviewSchema};
use counterproof_json_text::{positions, spans};
use counterproof_store::read_file;
use serde::Deserialize;
use serde_json::Value;

/// The marks of a file that a report exported. Each case has one mark.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseReview {
    path: Utf8PathBuf,
    /// The text of the file, for the positions in messages.
    text: String,
    review: Review,
}

/// Why a review cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The file could not be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file is not JSON, or has other fields.
    #[error("`{path}` is not a review of the schema review.v1")]
    Syntax {
        /// The file.
        path: Utf8PathBuf,
        /// The error, with line and column.
        source: serde_json::Error,
    },
    /// The file has another `schema_version`.
    #[error("`{path}` has the schema_version `{found}`, not `review.v1`")]
    Version {
        /// The file.
        path: Utf8PathBuf,
        /// The version that it states.
        found: String,
    },
    /// An entry of `marks` is not a mark of a case.
    #[error("{place}: {error}")]
    Mark {
        /// The file, line and column, and the entry.
        place: String,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// Two marks of one case.
    #[error("{place}: the case `{case}` has a mark already, marks[{first}]")]
    Duplicate {
        /// The file, line and column, and the second entry.
        place: String,
        /// The case.
        case: CaseId,
        /// The index of the first entry.
        first: usize,
    },
    /// A mark of a case that the run does not have.
    #[error("{place}: the run has no case `{case}`")]
    UnknownCase {
        /// The file, line and column, and the entry.
        place: String,
        /// The case.
        case: CaseId,
    },
}

/// A review whose marks were not checked.
#[derive(Deserialize)]
struct UncheckedReview {
    schema_version: String,
    marks: Vec<Value>,
    #[serde(flatten)]
    extra: Extra,
}

impl CaseReview {
    /// Reads a review of the schema `review.v1`.
    pub fn read(path: &Utf8Path) -> Result<Self, ReviewError> {
        let owned = || path.to_owned();
        let text = read_file::read_text_argument(path, read_file::MAX_SMALL_BYTES)
            .map_err(|source| ReviewError::Read { path: owned(), source })?;
        let unchecked: UncheckedReview =
            serde_json::from_str(&text).map_err(|source| ReviewError::Syntax { path: owned(), source })?;
        if unchecked.schema_version != "review.v1" {
            return Err(ReviewError::Version { path: owned(), found: unchecked.schema_version });
        }
        let mut marks: Vec<ReviewMark> = Vec::new();
        let mut first: HashMap<CaseId, usize> = HashMap::new();
        for (index, value) in unchecked.marks.into_iter().enumerate() {
            let mark: ReviewMark = serde_json::from_value(value)
                .map_err(|error| ReviewError::Mark { place: place(path, &text, index), error })?;
            if let Some(first) = first.insert(mark.case_id.clone(), index) {
                return Err(ReviewError::Duplicate { place: place(path, &text, index), case: mark.case_id, first });
            }
            marks.push(mark);
        }
        let review = Review { schema_version: ReviewSchema::V1, marks, extra: unchecked.extra };
        Ok(Self { path: owned(), text, review })
    }

    /// The document, as it is stored with the baseline.
    pub const fn document(&self) -> &Review {
        &self.review
    }

    /// The marked cases, in the order of the file.
    pub fn cases(&self, mark: Mark) -> impl Iterator<Item = &CaseId> {
        self.review.marks.iter().filter(move |marked| marked.mark == mark).map(|marked| &marked.case_id)
    }

    /// Checks that every mark is about a case of the runs.
    pub(super) fn check<'a>(&self, cases: impl Iterator<Item = &'a CaseId>) -> Result<(), ReviewError> {
        let known: HashSet<&CaseId> = cases.collect();
        match self.review.marks.iter().enumerate().find(|(_, marked)| !known.contains(&marked.case_id)) {
            Some((index, marked)) => Err(ReviewError::UnknownCase {
                place: place(&self.path, &self.text, index),
                case: marked.case_id.clone(),
            }),
            None => Ok(()),
        }
    }
}

/// The place of an entry: `review.json:4:5: marks[1]`.
fn place(path: &Utf8Path, text: &str, index: usize) -> String {
    let span = spans(text, &[&format!("/marks/{index}")]).pop().flatten();
    let at = span.and_then(|span| positions(text.as_bytes(), &[span.start]).into_iter().next());
    let at = at.map_or_else(String::new, |at| format!(":{}:{}", at.line, at.column));
    format!("{path}{at}: marks[{index}]")
}

#[cfg(test)]
mod tests {
    use counterproof_store::write::{self, Durability};

    use super::*;

    fn read(text: &str) -> Result<CaseReview, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("review.json");
        write::write(&path, text.as_bytes(), Durability::Cached).unwrap();
        let folder = format!("{}/", path.parent().unwrap());
        CaseReview::read(&path).map_err(|error| error.to_string().replace(&folder, ""))
    }

    fn with_marks(marks: &str) -> Result<CaseReview, String> {
        read(&format!("{{\"schema_version\": \"review.v1\", \"marks\": [\n{marks}]}}"))
    }

    const A: &str = r#"{"case_id": "a", "mark": "right"}"#;

    #[test]
    fn a_review_is_the_marks_of_a_report() {
        let review = with_marks(&format!(r#"{A}, {{"case_id": "b", "mark": "wrong", "note": "too much"}}"#)).unwrap();
        assert_eq!(review.cases(Mark::Wrong).map(CaseId::as_str).collect::<Vec<_>>(), ["b"]);
        assert_eq!(review.document().summary(), "1 right, 1 wrong, 0 known");
        assert_eq!(review.document().marks[1].extra["note"], "too much");
        assert_eq!(with_marks("").unwrap().document().marks, []);
    }

    #[test]
    fn what_is_not_a_mark_is_an_error_with_its_place() {
        let wrong = |mark: &str| with_marks(&format!("{A},\n {mark}")).unwrap_err();
        let unknown = wrong(r#"{"case_id": "b", "mark": "good"}"#);
        assert_eq!(
            unknown,
            "review.json:3:2: marks[1]: unknown variant `good`, expected one of `right`, `wrong`, `known`"
        );
        assert_eq!(wrong(A), "review.json:3:2: marks[1]: the case `a` has a mark already, marks[0]");
        assert_eq!(wrong(r#"{"case_id": "b"}"#), "review.json:3:2: marks[1]: missing field `mark`");
        assert!(wrong(r#"{"case_id": "../b", "mark": "right"}"#).starts_with("review.json:3:2: marks[1]: "));
        assert!(wrong("3").starts_with("review.json:3:2: marks[1]: "));
    }

    #[test]
    fn another_document_is_an_error() {
        let wrong = |text: &str| read(text).unwrap_err();
        let version = r#"{"schema_version": "review.v2", "marks": []}"#;
        assert_eq!(wrong(version), "`review.json` has the schema_version `review.v2`, not `review.v1`");
        for text in ["[]", "{", r#"{"marks": []}"#, r#"{"schema_version": "review.v1"}"#] {
            assert_eq!(wrong(text), "`review.json` is not a review of the schema review.v1", "{text}");
        }
        assert!(matches!(CaseReview::read(Utf8Path::new("absent.json")), Err(ReviewError::Read { .. })));
    }

    #[test]
    fn a_mark_of_another_case_is_an_error_with_its_place() {
        let review = with_marks(&format!("{A},\n{{\"case_id\": \"gone\", \"mark\": \"known\"}}")).unwrap();
        let check = |names: &[&str]| {
            let ids: Vec<CaseId> = names.iter().map(|name| name.parse().unwrap()).collect();
            review.check(ids.iter()).map_err(|error| error.to_string())
        };
        assert_eq!(check(&["gone", "a", "b"]), Ok(()));
        assert!(check(&["a"]).unwrap_err().ends_with("review.json:3:1: marks[1]: the run has no case `gone`"));
    }
}
