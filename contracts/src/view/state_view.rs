//! States for people: a word, a sign and a class, so that colour is never the only mark.

use crate::lifecycle::State;

/// A state for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StateView {
    /// The class in the style sheet, in Mermaid and in Graphviz.
    pub(crate) class: &'static str,
    pub(crate) sign: &'static str,
    pub(crate) word: &'static str,
}

impl From<State> for StateView {
    fn from(state: State) -> Self {
        let (sign, word) = match state {
            State::Pending => ("○", "pending"),
            State::Ready => ("◔", "ready"),
            State::Claimed => ("◑", "claimed"),
            State::Executing => ("▸", "executing"),
            State::Verifying => ("◕", "verifying"),
            State::Completed => ("✓", "completed"),
            State::Failed => ("✗", "failed"),
            State::RollingBack => ("↶", "rolling back"),
            State::RolledBack => ("↺", "rolled back"),
            State::Cancelled => ("⊘", "cancelled"),
        };
        Self { class: state.as_str(), sign, word }
    }
}
