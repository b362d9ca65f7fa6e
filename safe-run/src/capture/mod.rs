//! What a command printed: the bytes of both streams and the order of their chunks.

mod chunks;
mod spill_buffer;

pub use chunks::Stream;
pub(crate) use chunks::{Piece, Tape};
pub(crate) use spill_buffer::{Reader, Spool};
