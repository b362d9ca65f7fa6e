//! Cassettes: the answers of a server, recorded to a file and replayed without the server.
//!
//! A cassette is JSON Lines: for each recording a [`Header`], then one [`Entry`] for each answered request, in the order of the
//! answers. A request finds its answer by its method and its canonical parameters. Equal requests get the recorded answers in their
//! order.

mod entry;
mod key;
mod miss;
mod recording;
mod replay;
#[cfg(test)]
mod tests;

pub use entry::{Answer, Entry, Header, SCHEMA_VERSION};
pub use key::{RequestKey, request_key};
pub use recording::{MAX_MESSAGE_BYTES, Recording, RecordingError};
pub use replay::{OnMiss, Replay, ReplayError, Replayed};

/// Largest cassette in bytes. A replay holds it in memory.
pub const MAX_CASSETTE_BYTES: u64 = 1 << 30;

/// A cassette in use.
#[derive(Debug)]
pub enum Cassette {
    /// Answers of the server are recorded.
    Record(Recording),
    /// Requests are answered from the cassette.
    Replay(Replay),
}
