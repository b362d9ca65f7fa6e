//! The vectors: their format and the file that holds them.

mod file;
mod format;

pub use file::{Vectors, VectorsError};
#[cfg(test)]
pub(crate) use format::Platform;
pub(crate) use format::{Equivalence, Expected, Group, GroupedVector, Setup, Signal, Vector, VectorCommand};
