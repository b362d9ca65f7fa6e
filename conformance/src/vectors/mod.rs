//! The file of vectors.

mod document;

pub(crate) use document::{Command, Equivalence, Expected, Group, Setup, Signal, Vector};
pub use document::{Vectors, VectorsError};
