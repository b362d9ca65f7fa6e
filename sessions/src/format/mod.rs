//! Sessions in the formats of other programs. Pure functions: nothing is read or written.

mod atif;
mod otlp;

pub use atif::atif;
pub use otlp::{OtlpContent, otlp};
