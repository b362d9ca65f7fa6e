//! Checks whether a program is a conforming implementation of safe-run. Each vector runs the program; its behaviour is checked
//! against the expectations of the vector and compared with a golden output. Wrappers in other languages are compared with the
//! tool byte for byte, except for the allowed equivalences.
//!
//! ```text
//! vectors.json ─▶ vectors ─▶ trial: a new folder, the program, what it left ─▶ check: expectations, golden output ─▶ report
//! ```
//!
//! The crate can run any implementation. Of the library of safe-run it uses only the cancellation: supervision by the code under
//! test would kill what a faulty program leaves behind, and a vector that checks for it would pass.
//!
//! # Example
//!
//! ```no_run
//! use camino::Utf8Path;
//! use counterproof_conformance::report::{Report, text};
//! use counterproof_conformance::{ConformanceRun, Subject, SubjectKind, Vectors};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let vectors = Vectors::read(Utf8Path::new("conformance/vectors.json"))?;
//! let subjects = [Subject::new(SubjectKind::Tool, Utf8Path::new("target/release/safe-run"))?];
//! let results = ConformanceRun::new(&vectors, Utf8Path::new("conformance/expected"), &subjects).run()?;
//! println!("{}", text(&Report { vectors: &vectors, subjects: &subjects, results: &results }));
//! # Ok(())
//! # }
//! ```

mod check;
mod conformance_run;
pub mod report;
mod subject;
mod trial;
mod vectors;

pub use conformance_run::{ConformanceRun, GoldenMode, RunError, VectorResult, VectorStatus};
pub use subject::{Subject, SubjectKind};
pub use vectors::{Vectors, VectorsError};
