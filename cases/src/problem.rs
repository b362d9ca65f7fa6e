//! What can be wrong with a cases file, in a form that a renderer can show beside the source line.

use std::fmt;
use std::io;

use camino::Utf8PathBuf;
use counterproof_artifact::check::Position;

/// One place of a cases file that is wrong, or that its author may not have meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, as it was named or as it was found below the folder that was named.
    pub file: Utf8PathBuf,
    /// Where in the file, if that is known.
    pub position: Option<Position>,
    /// A JSON Pointer to the field; in JSON Lines it starts at the line's own value.
    pub pointer: String,
    /// The id of the case, as it is written, if it has one.
    pub case_id: Option<String>,
    /// What is there, and what was expected.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

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

/// Why a suite could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file or folder could not be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The file or folder.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file whose name does not say how to read it.
    #[error("`{0}` is no cases file: expected a name that ends in .json, .jsonl, .ndjson, .yaml or .yml")]
    UnknownFormat(Utf8PathBuf),
    /// A folder without a single cases file.
    #[error("the folder `{0}` holds no cases file: expected .json, .jsonl, .ndjson, .yaml or .yml files")]
    NoFiles(Utf8PathBuf),
    /// Files that can be read, but hold no case.
    #[error("`{0}` holds no case: expected at least one with an `id` and an `input`")]
    Empty(Utf8PathBuf),
    /// Files that cannot be understood: everything that is wrong with them, at least one problem.
    #[error("{}", summary(.0))]
    Invalid(Vec<Problem>),
}

impl LoadError {
    /// The places that are wrong, where the error is about places.
    pub fn problems(&self) -> &[Problem] {
        match self {
            LoadError::Invalid(problems) => problems,
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
