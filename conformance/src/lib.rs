//! Whether a program that calls itself safe-run is one: it is run with each vector and held against what the vector expects and
//! against golden outputs. Wrappers in other languages are held against the tool, byte for byte but for the allowed equivalences.
//!
//! ```text
//! vectors.json ─▶ vectors ─▶ trial: a fresh folder, the program, what it left ─▶ judge, golden, drift ─▶ report
//! ```
//!
//! It knows nothing of how the tool works inside, and runs any implementation.

mod cancellation;
mod check;
mod conform;
pub mod report;
mod subject;
mod trial;
mod vectors;

pub use cancellation::Stop;
pub use conform::{Request, RunError, Verdict, conform};
pub use subject::{Kind, Subject};
pub use vectors::{Vectors, VectorsError};
