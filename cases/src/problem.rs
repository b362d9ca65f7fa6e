//! Problems of a cases file, with the data to render them next to the source line.

use std::fmt;
use std::io;
use std::ops::Range;

use camino::Utf8PathBuf;
use counterproof_validation::Position;

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
