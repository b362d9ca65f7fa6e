//! The output of a command as it was read: the bytes of both streams, the order of the reads, and the lines made from them.

mod chunks;
mod lines;

pub use chunks::Stream;
pub(crate) use chunks::{Capture, Chunk};
pub(crate) use lines::for_each_line;
pub use lines::{Line, LineEnd};
