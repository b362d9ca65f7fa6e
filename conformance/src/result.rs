//! The result of one vector with one program.

/// The result of one vector with one program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorResult {
    /// The index of the program among the subjects.
    pub subject: usize,
    /// The id of the vector, or of a check that applies to the program as a whole.
    pub id: String,
    pub name: String,
    /// The status, with the reasons.
    pub status: VectorStatus,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VectorStatus {
    Passed,
    /// At least one check has failed; the texts describe each problem.
    Failed(Vec<String>),
    /// The vector is for another operating system; the text names it.
    Skipped(String),
}

impl VectorStatus {
    /// Returns `Passed` if there are no problems, otherwise `Failed`.
    pub(crate) fn from_problems(problems: Vec<String>) -> Self {
        if problems.is_empty() { VectorStatus::Passed } else { VectorStatus::Failed(problems) }
    }
}

impl VectorResult {
    /// Returns the problems; empty unless the status is `Failed`.
    pub fn problems(&self) -> &[String] {
        match &self.status {
            VectorStatus::Failed(problems) => problems,
            VectorStatus::Passed | VectorStatus::Skipped(_) => &[],
        }
    }

    /// Returns true if a check has failed.
    pub fn is_failed(&self) -> bool {
        matches!(self.status, VectorStatus::Failed(_))
    }

    /// Returns true if the vector was not run.
    pub fn is_skipped(&self) -> bool {
        matches!(self.status, VectorStatus::Skipped(_))
    }
}
