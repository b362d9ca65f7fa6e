//! Loads a suite from a path: finds the cases files, reads them, checks that ids are unique, and collects the problems with the data to
//! render them next to the source line.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::{fmt, io};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{CaseId, pointer};
use counterproof_store::read_file;
use counterproof_validation::{Position, nearest};
use walkdir::{DirEntry, WalkDir};

use crate::document::{Document, Format, Part, parse};
use crate::fields::ProblemLog;
use crate::spec::CaseSpec;
use crate::spec::interpret;

/// All cases of a file or folder, in the order of the file names and of the cases in each file.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// The cases, at least one. Ids are unique even if letter case is ignored.
    pub cases: Vec<CaseSpec>,
    /// Probable mistakes, such as unknown expectations.
    pub warnings: Vec<Problem>,
}

impl Suite {
    /// Returns the id that is closest to a misspelt one.
    pub fn nearest(&self, id: &CaseId) -> Option<&CaseId> {
        let ids: Vec<&str> = self.cases.iter().map(|case| case.id.as_str()).collect();
        let near = nearest(id.as_str(), &ids)?;
        self.cases.iter().map(|case| &case.id).find(|known| known.as_str() == near)
    }
}

/// Loads a cases file, or all cases files below a folder.
///
/// The file extension selects the format: `.json`, `.jsonl` or `.ndjson`, `.yaml` or `.yml`. In a folder, files with other
/// extensions and files whose names start with a dot are ignored.
pub fn load(path: &Utf8Path) -> Result<Suite, LoadError> {
    let mut documents = Vec::new();
    // Syntax errors are reported first, because they hide the other errors of their file.
    let (mut syntax, mut errors) = (Vec::new(), Vec::new());
    let mut suite = Suite { cases: Vec::new(), warnings: Vec::new() };
    let mut used = UsedIds::default();
    for (file, format) in files(path)? {
        let bytes = read(path, &file)?;
        let (syntax_before, errors_before) = (syntax.len(), errors.len());
        for parsed in parse(&file, format, bytes) {
            match parsed {
                // After a syntax error, only the syntax of the file is checked.
                Ok(_) if syntax.len() > syntax_before => {}
                Ok((document, value)) => {
                    let mut found = interpret(&document, value);
                    errors.append(&mut found.errors);
                    suite.warnings.append(&mut found.warnings);
                    // Stored until the end: the problem of a duplicate id names the file and line of the first use.
                    documents.push(document);
                    for (case, pointer) in found.cases {
                        match used.insert(&case.id, &documents, pointer) {
                            Ok(()) => suite.cases.push(case),
                            Err(problem) => errors.push(*problem),
                        }
                    }
                }
                Err(mut problems) => {
                    syntax.append(&mut problems);
                    // Only the syntax of the file counts now, so the errors of the values before it are dropped.
                    errors.truncate(errors_before);
                }
            }
        }
    }
    syntax.append(&mut errors);
    // Before the check for no cases: a file with errors may have no valid case left.
    if !syntax.is_empty() {
        return Err(LoadError::Invalid { problems: syntax, warnings: suite.warnings });
    }
    if suite.cases.is_empty() {
        return Err(LoadError::Empty(path.to_owned()));
    }
    // The suite stays in memory for the whole run.
    suite.cases.shrink_to_fit();
    Ok(suite)
}

/// The file and line of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseLocation {
    pub id: CaseId,
    /// The file, at or below the loaded path.
    pub file: Utf8PathBuf,
    /// The line of the `id` field, counted from 1.
    pub line: usize,
}

/// Locates the cases of a file or folder. Files larger than `max_file_bytes` are skipped, because locating lines takes many
/// times the file's size in memory. Invalid files are skipped too; [`load`] reports their problems.
pub fn locate(path: &Utf8Path, max_file_bytes: usize) -> Result<Vec<CaseLocation>, LoadError> {
    let mut locations = Vec::new();
    for (file, format) in files(path)? {
        let bytes = read(path, &file)?;
        if bytes.len() > max_file_bytes {
            continue;
        }
        for (document, value) in parse(&file, format, bytes).flatten() {
            for (case, pointer) in interpret(&document, value).cases {
                let position = document.position(&pointer::child(&pointer, "id"), Part::Value);
                let location =
                    |position: Position| CaseLocation { id: case.id, file: file.clone(), line: position.line };
                locations.extend(position.map(location));
            }
        }
    }
    Ok(locations)
}

/// The ids in use, by their form with letter case folded.
#[derive(Default)]
struct UsedIds {
    first: HashMap<String, FirstUse>,
}

/// The first case with an id: the index of its document, and the pointer to the case.
struct FirstUse {
    id: CaseId,
    document: usize,
    pointer: String,
}

impl UsedIds {
    /// Adds the id of a case in the last document. Fails if the id is in use.
    fn insert(&mut self, id: &CaseId, documents: &[Document], pointer: String) -> Result<(), Box<Problem>> {
        let first_use = match self.first.entry(id.collision_key()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                // The caller has added the document of the case already, so it is the last one.
                entry.insert(FirstUse { id: id.clone(), document: documents.len() - 1, pointer });
                return Ok(());
            }
        };
        let first = &documents[first_use.document];
        let position = first.position(&first_use.pointer, Part::Value);
        let line = position.map(|position| format!(":{}", position.line)).unwrap_or_default();
        let location = format!("{}{line}", first.file());
        let message = if first_use.id == *id {
            format!("the id `{id}` is already used at {location}")
        } else {
            format!(
                "the id `{id}` differs from `{}` at {location} only in letter case, which some file systems ignore",
                first_use.id
            )
        };
        let mut log = ProblemLog::new(&documents[documents.len() - 1], Some(id.to_string()));
        log.error(&pointer::child(&pointer, "id"), message, "change one of the two ids");
        Err(Box::new(log.errors.remove(0)))
    }
}

/// Reads one of the [`files`] of a path.
fn read(path: &Utf8Path, file: &Utf8Path) -> Result<Vec<u8>, LoadError> {
    // Only the path itself, which a person named, may be a pipe. A file below it can have become one after the folder
    // was listed, and reading it would block.
    let read = if file == path { read_file::read_argument } else { read_file::read };
    read(file, read_file::MAX_LARGE_BYTES).map_err(|source| LoadError::Read { path: file.to_owned(), source })
}

/// Returns the files to read, each with its format.
fn files(path: &Utf8Path) -> Result<Vec<(Utf8PathBuf, Format)>, LoadError> {
    let read = |source| LoadError::Read { path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(read)?.is_dir() {
        // In a folder, other files are skipped. A file that is named must be a cases file.
        let format = Format::from_path(path).ok_or_else(|| LoadError::UnknownFormat(path.to_owned()))?;
        return Ok(vec![(path.to_owned(), format)]);
    }
    // The folder itself can start with a dot: it is named explicitly.
    let visible = |entry: &DirEntry| entry.depth() == 0 || !entry.file_name().to_string_lossy().starts_with('.');
    let mut files = Vec::new();
    // Sorted, because the order of the files is the order of the cases in a run.
    for entry in WalkDir::new(path).follow_links(true).sort_by_file_name().into_iter().filter_entry(visible) {
        let entry = entry.map_err(|error| read(error.into()))?;
        // Neither folders, nor pipes and devices, whose reading may never end.
        if !entry.file_type().is_file() {
            continue;
        }
        let Some(file) = Utf8Path::from_path(entry.path()) else {
            let name = entry.path().to_string_lossy().into_owned();
            return Err(read(io::Error::other(format!("the name of `{name}` is not UTF-8"))));
        };
        if let Some(format) = Format::from_path(file) {
            files.push((file.to_owned(), format));
        }
    }
    if files.is_empty() { Err(LoadError::NoFiles(path.to_owned())) } else { Ok(files) }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_file_may_be_something_else_than_a_regular_file() {
        let device = Utf8Path::new("/dev/null");
        assert!(read(Utf8Path::new("/dev"), device).is_err());
        assert!(read(device, device).is_ok_and(|bytes| bytes.is_empty()));
    }
}

/// An error or a warning at one position of a cases file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file: the given path, or a path below the given folder.
    pub file: Utf8PathBuf,
    /// The position in the file, if known.
    pub position: Option<Position>,
    /// A JSON Pointer to the field. In JSON Lines it is relative to the value of the line.
    pub pointer: String,
    /// The id of the case as it is written, if there is one.
    pub case_id: Option<String>,
    /// The actual and the expected content.
    pub message: String,
    /// How to fix it.
    pub remedy: String,
    /// The invalid expression, if the problem is in one.
    pub marked: Option<Marked>,
}

/// An expression with an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    /// The whole expression.
    pub text: String,
    /// The byte range of the error.
    pub span: Range<usize>,
}

/// Formats the problem on one line, without the marked expression.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(Position { line, column }) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        f.write_str(": ")?;
        if let Some(id) = &self.case_id {
            write!(f, "case `{id}`: ")?;
        }
        write!(f, "{} ({})", self.message, self.remedy)
    }
}

/// The reason why a suite cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file or folder could not be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The file or folder.
        path: Utf8PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file with an unknown extension.
    #[error("`{0}` is not a cases file: expected the extension .json, .jsonl, .ndjson, .yaml or .yml")]
    UnknownFormat(Utf8PathBuf),
    /// A folder without cases files.
    #[error("the folder `{0}` contains no cases file: expected .json, .jsonl, .ndjson, .yaml or .yml files")]
    NoFiles(Utf8PathBuf),
    /// Valid files without cases.
    #[error("`{0}` contains no case: expected at least one with an `id` and an `input`")]
    Empty(Utf8PathBuf),
    /// Files with errors.
    #[error("{}", summary(.problems))]
    Invalid {
        /// All errors, at least one.
        problems: Vec<Problem>,
        warnings: Vec<Problem>,
    },
}

impl LoadError {
    /// Returns the errors of the files. Empty for other kinds of error.
    pub fn problems(&self) -> &[Problem] {
        match self {
            LoadError::Invalid { problems, .. } => problems,
            _ => &[],
        }
    }

    /// Returns the warnings of the files. Empty for other kinds of error.
    pub fn warnings(&self) -> &[Problem] {
        match self {
            LoadError::Invalid { warnings, .. } => warnings,
            _ => &[],
        }
    }
}

fn summary(problems: &[Problem]) -> String {
    match problems {
        [] => "the cases are invalid".to_owned(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{first}, and {} more", rest.len()),
    }
}
