//! The destination of an export.

use camino::Utf8Path;
use counterproof_artifact::{RunId, Side};

/// Where an export is written, and the name of the run.
#[derive(Debug, Clone)]
pub struct Destination<'a> {
    /// The folder of all runs.
    pub out: &'a Utf8Path,
    /// The side of the run.
    pub side: Side,
    pub run_id: &'a RunId,
    /// The name and version of the program that exports.
    pub writer: String,
    /// The cases file, relative to the run folder.
    pub cases_path: String,
}
