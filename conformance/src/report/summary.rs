//! What was found, for a person, for a program, and for a build server.

use std::fmt;

use crate::{Kind, Subject, Vectors, Verdict};

/// Everything that is reported.
#[derive(Debug)]
pub struct Report<'a> {
    /// The vectors.
    pub vectors: &'a Vectors,
    /// The programs.
    pub subjects: &'a [Subject],
    /// What became of each vector with each program.
    pub verdicts: &'a [Verdict],
}

impl Report<'_> {
    /// True where nothing is wrong.
    pub fn passes(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.wrong.is_empty())
    }

    /// Passed, failed and skipped.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let skipped = self.verdicts.iter().filter(|verdict| verdict.skipped.is_some()).count();
        let failed = self.verdicts.iter().filter(|verdict| !verdict.wrong.is_empty()).count();
        (self.verdicts.len() - skipped - failed, failed, skipped)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Tool => "tool",
            Kind::Wrapper => "wrapper",
        };
        write!(f, "{kind} {}", self.path)
    }
}
