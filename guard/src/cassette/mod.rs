//! Cassettes: the answers of a server, recorded to a file and replayed without the server.
//!
//! A cassette is JSON Lines: for each recording a [`Header`], then one [`Entry`] for each answered request, in the order of the
//! answers. A request finds its answer by its method and its canonical parameters. Equal requests get the recorded answers in their
//! order.

mod recording;
mod replay;
#[cfg(test)]
mod tests;

pub use recording::{
    Answer, Entry, Header, MAX_MESSAGE_BYTES, Recording, RecordingError, RequestKey, SCHEMA_VERSION, request_key,
};
pub use replay::{CassetteLookup, OnMiss, Replay, ReplayError};

/// Largest cassette in bytes. A replay holds it in memory.
pub const MAX_CASSETTE_BYTES: u64 = 1 << 30;

#[derive(Debug)]
pub enum Cassette {
    Record(Recording),
    Replay(Replay),
}
