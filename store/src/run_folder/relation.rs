//! Whether two run folders have the same run.

use counterproof_artifact::{Case, CaseId, Run};

use super::reader::RunReader;
use crate::confined_path;

/// How the runs of two folders relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunRelation {
    /// The same folder, under any path.
    SameFolder,
    /// Two folders with the same contents.
    Copy,
    /// Different runs.
    Different,
}

impl RunRelation {
    /// Compares two run folders by their paths and contents.
    pub fn compare(one: &RunReader, other: &RunReader) -> Self {
        if one.has_same_folder(other) {
            return Self::SameFolder;
        }
        let has_same_contents = is_same_document(one.run(), other.run())
            && one.run().selected_case_ids.iter().all(|case| is_same_artifact(one, other, case));
        if has_same_contents { Self::Copy } else { Self::Different }
    }
}

impl RunReader {
    /// Whether another run is in the same folder, under any path.
    pub fn has_same_folder(&self, other: &Self) -> bool {
        let path = |run: &Self| run.folder().canonicalize_utf8().unwrap_or_else(|_| run.folder().to_owned());
        path(self) == path(other)
    }
}

/// Compares two documents without the fields that `accept` and a move to another place change.
fn is_same_document(one: &Run, other: &Run) -> bool {
    // Documents can be long, and those of different runs nearly always differ here.
    if one.generated_at != other.generated_at {
        return false;
    }
    let comparable = Run {
        run_id: other.run_id.clone(),
        version: other.version,
        cases_path: other.cases_path.clone(),
        out_dir: other.out_dir.clone(),
        group_id: other.group_id.clone(),
        repeat: other.repeat,
        repeats: other.repeats,
        accepted: other.accepted.clone(),
        ..one.clone()
    };
    comparable == *other
}

/// Compares the artifacts of a case without their side, which `accept` changes.
fn is_same_artifact(one: &RunReader, other: &RunReader, case: &CaseId) -> bool {
    let read = |run: &RunReader| confined_path::read(run.folder(), &format!("{case}.json")).ok();
    match (read(one), read(other)) {
        // Most copies have the same bytes, which needs no parsing.
        (Some(one), Some(other)) => one == other || is_same_but_for_side(&one, &other),
        (None, None) => true,
        _ => false,
    }
}

fn is_same_but_for_side(one: &[u8], other: &[u8]) -> bool {
    let parse = |bytes| serde_json::from_slice::<Case>(bytes);
    match (parse(one), parse(other)) {
        (Ok(one), Ok(other)) => Case { version: other.version, ..one } == other,
        _ => false,
    }
}
