//! What a session can wait for.

use crate::capture::Stream;

/// A source or sink of a session that is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ready {
    /// An output stream of the command can be read.
    Source(Stream),
    /// A stream of this process has room for pending output.
    Output(Stream),
    /// The supervisor has sent a status.
    Supervisor,
    Signals,
    /// Input for the terminal of the command can be read.
    Input,
    /// The terminal of the command has room for input.
    InputRoom,
}
