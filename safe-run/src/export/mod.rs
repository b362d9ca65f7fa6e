//! Records as a run folder.

mod run_folder;

pub use run_folder::{Destination, ExportError, Exported, Source, export};
