//! States for people: a word, a sign and a class, so that colour is never the only mark.

use counterproof_contracts::State;

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
        Self { class: state.as_str(), sign: state.sign(), word: state.words() }
    }
}
