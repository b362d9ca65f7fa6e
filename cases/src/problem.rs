//! What can be wrong with a cases file, in a form that a renderer can show beside the source line.

use std::fmt;
use std::io;
use std::ops::Range;

use camino::Utf8PathBuf;
use counterproof_artifact::check::{Position, visible};

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
    /// The expression that is wrong, where one is.
    pub marked: Option<Marked>,
}

/// An expression, and the part of it that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    /// The whole expression.
    pub text: String,
    /// The part, in bytes.
    pub span: Range<usize>,
}

/// Characters shown on each side of the part that is wrong.
const AROUND: usize = 60;

/// The line of the expression, with its part underlined.
impl fmt::Display for Marked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = self.text[..self.span.start].rfind('\n').map_or(0, |newline| newline + 1);
        let end = self.text[self.span.start..].find('\n').map_or(self.text.len(), |newline| self.span.start + newline);
        let (before, rest) = self.text[start..end].split_at(self.span.start - start);
        let (part, after) = rest.split_at(self.span.len().min(rest.len()));
        let skipped = before.chars().count().saturating_sub(AROUND);
        let before: String =
            if skipped > 0 { "…".chars().chain(before.chars().skip(skipped)).collect() } else { before.to_owned() };
        let cut = |text: &str| match text.char_indices().nth(AROUND) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_owned(),
        };
        let (before, part, after) = (visible(&before), visible(&cut(part)), visible(&cut(after)));
        let (indent, width) = (before.chars().count(), part.chars().count().max(1));
        write!(f, "  | {before}{part}{after}\n  | {:indent$}{}", "", "^".repeat(width))
    }
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
        write!(f, "{} ({})", self.message, self.remedy)?;
        match &self.marked {
            Some(marked) => write!(f, "\n{marked}"),
            None => Ok(()),
        }
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
    /// Files that cannot be understood.
    #[error("{}", summary(.problems))]
    Invalid {
        /// Everything that is wrong with them, at least one problem.
        problems: Vec<Problem>,
        /// What their author may not have meant either.
        warnings: Vec<Problem>,
    },
}

impl LoadError {
    /// The places that are wrong, where the error is about places.
    pub fn problems(&self) -> &[Problem] {
        match self {
            LoadError::Invalid { problems, .. } => problems,
            _ => &[],
        }
    }

    /// What the author may not have meant, beside what is wrong.
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
