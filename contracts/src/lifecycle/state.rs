//! The states of a contract.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The state of the latest version of a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A dependency is not completed.
    Pending,
    /// All dependencies are completed.
    Ready,
    /// An owner has taken the contract.
    Claimed,
    /// The owner works on it.
    #[serde(alias = "running")]
    Executing,
    /// The work is being checked.
    Verifying,
    /// The check passed.
    #[serde(alias = "passed")]
    Completed,
    /// The work or its check failed.
    Failed,
    /// The work is being undone.
    #[serde(alias = "rollingback")]
    RollingBack,
    /// The work is undone.
    #[serde(alias = "rolledback")]
    RolledBack,
    /// A person decided against the contract.
    Cancelled,
}

impl State {
    /// All states, in the order of a contract's life.
    pub const ALL: [State; 10] = [
        State::Pending,
        State::Ready,
        State::Claimed,
        State::Executing,
        State::Verifying,
        State::Completed,
        State::Failed,
        State::RollingBack,
        State::RolledBack,
        State::Cancelled,
    ];

    /// The word in files and arguments.
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Ready => "ready",
            State::Claimed => "claimed",
            State::Executing => "executing",
            State::Verifying => "verifying",
            State::Completed => "completed",
            State::Failed => "failed",
            State::RollingBack => "rolling_back",
            State::RolledBack => "rolled_back",
            State::Cancelled => "cancelled",
        }
    }

    /// A sign for people. Each state has another one, so that colour is never the only mark.
    pub const fn sign(self) -> &'static str {
        match self {
            State::Pending => "○",
            State::Ready => "◔",
            State::Claimed => "◑",
            State::Executing => "▸",
            State::Verifying => "◕",
            State::Completed => "✓",
            State::Failed => "✗",
            State::RollingBack => "↶",
            State::RolledBack => "↺",
            State::Cancelled => "⊘",
        }
    }

    /// The words for people.
    pub const fn words(self) -> &'static str {
        match self {
            State::RollingBack => "rolling back",
            State::RolledBack => "rolled back",
            other => other.as_str(),
        }
    }

    /// True if no transition leaves the state.
    pub const fn is_terminal(self) -> bool {
        matches!(self, State::Completed | State::RolledBack | State::Cancelled)
    }

    /// True while an owner or the program works on the contract.
    pub const fn is_active(self) -> bool {
        matches!(self, State::Claimed | State::Executing | State::Verifying | State::RollingBack)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a state")]
pub struct UnknownState(String);

impl FromStr for State {
    type Err = UnknownState;

    /// Parses a state. Accepts the names of earlier programs too: `running`, `passed`, `rollingback` and `rolledback`.
    fn from_str(text: &str) -> Result<Self, UnknownState> {
        Ok(match text {
            "running" => State::Executing,
            "passed" => State::Completed,
            "rollingback" => State::RollingBack,
            "rolledback" => State::RolledBack,
            _ => {
                let known = State::ALL.into_iter().find(|state| state.as_str() == text);
                known.ok_or_else(|| UnknownState(text.to_owned()))?
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_one_name_in_files_and_arguments_and_older_names_are_read() {
        for state in State::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
            assert_eq!(state.as_str().parse(), Ok(state));
        }
        for (older, state) in [
            ("running", State::Executing),
            ("passed", State::Completed),
            ("rollingback", State::RollingBack),
            ("rolledback", State::RolledBack),
        ] {
            assert_eq!(older.parse(), Ok(state));
            assert_eq!(serde_json::from_value::<State>(older.into()).unwrap(), state);
        }
        assert!("done".parse::<State>().is_err());
    }
}
