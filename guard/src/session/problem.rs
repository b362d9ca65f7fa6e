//! Problems of the guard itself, which do not end the run.

/// A kind of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// A message could not be inspected.
    Uninspected,
    /// The server lists other tools than before, or than the cassette has.
    ToolsChanged,
    /// An answer could not be recorded in the cassette.
    Cassette,
    /// The cassette has no answer to requests.
    CassetteMisses,
    /// The server of a proxy did not answer a request.
    Unreachable,
}

impl Problem {
    pub(super) const COUNT: usize = 5;

    /// The code in events.
    pub const fn code(self) -> &'static str {
        match self {
            Problem::Uninspected => "uninspected_message",
            Problem::ToolsChanged => "tools_changed",
            Problem::Cassette => "cassette_failed",
            Problem::CassetteMisses => "cassette_misses",
            Problem::Unreachable => "server_unreachable",
        }
    }

    pub(super) const fn summary(self) -> &'static str {
        match self {
            Problem::Uninspected => "a message cannot be inspected",
            Problem::ToolsChanged => "the list of tools has changed",
            Problem::Cassette => "the cassette is incomplete",
            Problem::CassetteMisses => "the replay is incomplete",
            Problem::Unreachable => "the server does not answer",
        }
    }
}
