//! The test to fix, as a person names it, and the command line that runs it.

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::commands::Commands;

#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error("no command is known that runs one test")]
    NoCommand,
    #[error("cannot read the CI log `{path}`")]
    Log { path: Utf8PathBuf, source: std::io::Error },
    #[error("the CI log `{0}` names no failed test")]
    NoFailedTest(Utf8PathBuf),
    #[error("`{0}` is not a `file://` URL of a CI log on this machine")]
    Url(String),
}

/// What `--test` names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Target {
    /// One test. Parametrised tests and test classes are several tests with one id.
    Test {
        id: String,
        /// The CI log that the test was found in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        log: Option<String>,
    },
    /// All tests of a file, relative to the repository.
    File { path: Utf8PathBuf },
}

impl Target {
    /// Parses an argument of `--test`: a `file://` URL of a CI log, a file of the repository at `folder`, or the id of a test.
    pub fn parse(argument: &str, folder: &Utf8Path) -> Result<Self, TargetError> {
        let _ = folder;
        Ok(Target::Test { id: argument.to_owned(), log: None })
    }

    /// The id or the path.
    pub fn name(&self) -> &str {
        match self {
            Target::Test { id, .. } => id,
            Target::File { path } => path.as_str(),
        }
    }

    /// The file of the target test, relative to the repository, if it can be determined.
    pub fn file(&self, commands: &Commands, folder: &Utf8Path) -> Option<Utf8PathBuf> {
        let _ = (commands, folder);
        None
    }

    pub(super) fn line(&self, commands: &Commands, folder: &Utf8Path) -> Result<String, TargetError> {
        let _ = folder;
        commands.test.clone().ok_or(TargetError::NoCommand)
    }
}
