//! The data of a report.

use crate::{Subject, VectorResult, Vectors};

/// The data of a report.
#[derive(Debug)]
pub struct Report<'a> {
    pub vectors: &'a Vectors,
    /// The programs.
    pub subjects: &'a [Subject],
    /// The result of each vector with each program.
    pub results: &'a [VectorResult],
}

impl Report<'_> {
    /// Returns true if no check has failed.
    pub fn passes(&self) -> bool {
        !self.results.iter().any(VectorResult::is_failed)
    }

    pub(super) fn counts(&self) -> Counts {
        let skipped = self.results.iter().filter(|result| result.is_skipped()).count();
        let failed = self.results.iter().filter(|result| result.is_failed()).count();
        Counts { passed: self.results.len() - skipped - failed, failed, skipped }
    }

    pub(super) fn by_subject(&self) -> impl Iterator<Item = (&Subject, Vec<&VectorResult>)> {
        self.subjects.iter().enumerate().map(|(index, subject)| {
            let results = self.results.iter().filter(move |result| result.subject == index);
            (subject, results.collect())
        })
    }
}

/// Number of vectors by status.
pub(super) struct Counts {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
}
