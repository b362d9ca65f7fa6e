//! The folder for data that a user's programs keep between their starts.

use camino::{Utf8Path, Utf8PathBuf};

/// The folder of this program below the user's folder for state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFolder(Utf8PathBuf);

/// The environment names no folder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the folder for the ledger is unknown: neither `XDG_STATE_HOME` nor `HOME` is an absolute path")]
pub struct StateFolderError;

impl StateFolder {
    /// Returns `$XDG_STATE_HOME/counterproof`, or `~/.local/state/counterproof`. `lookup` returns the value of an environment
    /// variable. As the XDG specification requires, relative paths are ignored.
    pub fn from_environment(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, StateFolderError> {
        let absolute = |name: &str| lookup(name).map(Utf8PathBuf::from).filter(|path| path.is_absolute());
        let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
        state.map(|state| Self(state.join("counterproof"))).ok_or(StateFolderError)
    }

    /// Uses this folder.
    pub fn new(path: impl Into<Utf8PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn path(&self) -> &Utf8Path {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_folder_follows_the_xdg_specification() {
        let folder = |state: Option<&str>, home: Option<&str>| {
            let lookup = |name: &str| match name {
                "XDG_STATE_HOME" => state.map(str::to_owned),
                _ => home.map(str::to_owned),
            };
            StateFolder::from_environment(lookup).map(|folder| folder.path().to_string())
        };
        assert_eq!(folder(Some("/s"), Some("/h")).unwrap(), "/s/counterproof");
        assert_eq!(folder(None, Some("/h")).unwrap(), "/h/.local/state/counterproof");
        assert_eq!(folder(Some("relative"), Some("/h")).unwrap(), "/h/.local/state/counterproof");
        assert_eq!(folder(Some(""), None), Err(StateFolderError));
    }
}
