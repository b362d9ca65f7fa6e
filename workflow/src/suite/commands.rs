//! The commands of a repository: one test, the whole suite, the linter.

use std::fmt;

use camino::Utf8Path;
use serde::{Deserialize, Serialize};

use super::target::{Target, TargetError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runner {
    Cargo,
    Npm,
    Pytest,
    Unittest,
    Go,
    Make,
}

/// Commands of a repository, each a line for `sh -c`. Its display is what a person reads about the detection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commands {
    pub runner: Option<Runner>,
    /// Runs one test or one file: `{test}` is replaced by it.
    pub test: Option<String>,
    pub suite: Option<String>,
    /// Formats and lints.
    pub lint: Option<String>,
    /// The file that the runner was found by.
    pub found_by: Option<String>,
}

/// Commands that a person gave, each of which replaces a detected one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    pub test: Option<String>,
    pub suite: Option<String>,
    pub lint: Option<String>,
}

impl Commands {
    #[must_use]
    pub fn with(self, overrides: Overrides) -> Self {
        Self {
            test: overrides.test.or(self.test),
            suite: overrides.suite.or(self.suite),
            lint: overrides.lint.or(self.lint),
            ..self
        }
    }

    /// Returns the command that runs a target, in the repository at `folder`.
    pub fn test_line(&self, target: &Target, folder: &Utf8Path) -> Result<String, TargetError> {
        target.line(self, folder)
    }
}

impl fmt::Display for Commands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.runner {
            Some(Runner::Cargo) => "cargo",
            Some(Runner::Npm) => "npm",
            Some(Runner::Pytest) => "pytest",
            Some(Runner::Unittest) => "unittest",
            Some(Runner::Go) => "go",
            Some(Runner::Make) => "make",
            None => "unknown",
        };
        write!(f, "test runner: {name}")?;
        if let Some(file) = &self.found_by {
            write!(f, " (found by {file})")?;
        }
        for (what, line) in [("one test", &self.test), ("suite", &self.suite), ("lint", &self.lint)] {
            write!(f, "\n  {what}: {}", line.as_deref().unwrap_or("not set"))?;
        }
        Ok(())
    }
}
