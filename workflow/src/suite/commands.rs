//! The commands of a repository: one test, the whole suite, the linter.

use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};
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

impl Runner {
    pub const fn name(self) -> &'static str {
        match self {
            Runner::Cargo => "cargo",
            Runner::Npm => "npm",
            Runner::Pytest => "pytest",
            Runner::Unittest => "unittest",
            Runner::Go => "go",
            Runner::Make => "make",
        }
    }

    /// Recognises the runner in a command line.
    pub(super) fn of_line(line: &str) -> Option<Self> {
        let has = |word: &str| line.split(|c: char| !(c.is_alphanumeric() || "_-.".contains(c))).any(|it| it == word);
        let runners = [
            ("pytest", Runner::Pytest),
            ("py.test", Runner::Pytest),
            ("unittest", Runner::Unittest),
            ("cargo", Runner::Cargo),
            ("go", Runner::Go),
        ];
        runners.into_iter().find(|(word, _)| has(word)).map(|(_, runner)| runner)
    }
}

/// Commands of a repository, each a line for `sh -c`. Its display is what a person reads about the detection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commands {
    pub runner: Option<Runner>,
    /// Runs one test or one file: `{test}` is replaced by it. A line without `{test}` runs as it is.
    pub test: Option<String>,
    /// Runs tests by name, where the runner separates names from files: `{test}` is replaced by a regular expression for the name, and
    /// `{file}` by the file.
    pub test_by_name: Option<String>,
    pub suite: Option<String>,
    /// Formats and lints.
    pub lint: Option<String>,
    /// The file that the runner was found by.
    pub found_by: Option<String>,
    /// The folder that modules of unittest are in, if it is not the repository.
    pub module_folder: Option<Utf8PathBuf>,
    /// Why a runner that the repository may want is not used. Empty if all commands were given.
    pub notes: Vec<String>,
    /// `test` is a line of the user.
    pub is_test_given: bool,
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
        let is_test_given = overrides.test.is_some();
        let is_detection_used = !is_test_given || overrides.suite.is_none();
        Self {
            test: overrides.test.or(self.test),
            test_by_name: self.test_by_name.filter(|_| !is_test_given),
            suite: overrides.suite.or(self.suite),
            lint: overrides.lint.or(self.lint),
            is_test_given,
            notes: if is_detection_used { self.notes } else { Vec::new() },
            ..self
        }
    }

    /// Returns the command that runs a target, in the repository at `folder`. Without a command for one test, it is the suite.
    pub fn test_line(&self, target: &Target, folder: &Utf8Path) -> Result<String, TargetError> {
        super::test_line::test_line(self, target, folder)
    }
}

impl fmt::Display for Commands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "test runner: {}", self.runner.map_or("unknown", Runner::name))?;
        if let Some(file) = &self.found_by {
            write!(f, " (found by {file})")?;
        }
        for (what, line) in [("one test", &self.test), ("suite", &self.suite), ("lint", &self.lint)] {
            write!(f, "\n  {what}: {}", line.as_deref().unwrap_or("not set"))?;
        }
        self.notes.iter().try_for_each(|note| write!(f, "\n  note: {note}"))
    }
}
