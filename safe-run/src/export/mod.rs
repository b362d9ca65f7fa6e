//! Exports records as a run folder. Each record becomes a case, so that two recordings of a command can be compared and read in
//! the report.
//!
//! The two streams are separate texts in the case, because their relative order is not guaranteed. The original order is in
//! the record itself, which is stored byte for byte as an asset.

mod artifact;
mod case_id;
mod destination;
mod error;
mod input;
mod run_document;
mod run_folder;

pub use destination::Destination;
pub use error::ExportError;
pub use input::Source;
pub use run_folder::{Exported, export};
