//! Reads a recorded case with the request that it was answered for.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Case, CaseId, Href, REQUEST_ASSET_HREF};
use counterproof_runner::SavedRequest;
use counterproof_store::{ASSETS_FOLDER, RunReader, confined_path, read_file};

use crate::command_error::CommandError;
use crate::{document_kind, shell};

/// A recorded case with its saved request.
pub(super) struct RecordedCase {
    pub(super) folder: Utf8PathBuf,
    pub(super) reader: RunReader,
    pub(super) case_id: CaseId,
    pub(super) request: SavedRequest,
}

impl RecordedCase {
    /// Reads the artifact of a case, its saved request and its run.
    pub(super) fn read(path: &Utf8Path) -> Result<Self, CommandError> {
        let bytes = read(path).map_err(|error| {
            let hint = "pass the artifact of a case, such as `runs/new/ID/CASE.json`";
            if path.exists() { error } else { error.hint(hint) }
        })?;
        let case: Case = serde_json::from_slice(&bytes).map_err(|error| {
            // `validate` would accept a document of another kind, so its findings would not help.
            match document_kind::other_kind(path, "case.") {
                Some(kind) => {
                    CommandError::usage(format!("`{path}` is a `{kind}` document, not the artifact of a case"))
                        .hint("pass the artifact of a case: `CASE.json` in a run folder")
                }
                None => CommandError::usage(format!("`{path}` is not the artifact of a case: {error}"))
                    .hint(format!("list all violations with `counterproof validate {}`", shell::path(path))),
            }
        })?;
        let folder = match path.parent() {
            Some(folder) if folder != "" => folder.to_owned(),
            _ => ".".into(),
        };
        let no_request = || {
            CommandError::usage(format!("`{path}` has no saved request"))
                .hint("run the case again without `--no-keep-requests`")
        };
        let href = case.extra.get(REQUEST_ASSET_HREF).and_then(|href| href.as_str()).ok_or_else(no_request)?;
        let href: Href = href.parse().map_err(CommandError::usage)?;
        if !href.as_str().starts_with(&format!("{ASSETS_FOLDER}/")) {
            return Err(no_request());
        }
        // The artifact may come from elsewhere: its href must not lead out of the run folder.
        let file = confined_path::resolve(&folder, href.as_str()).map_err(CommandError::io)?;
        let request = serde_json::from_slice(&read(&file)?)
            .map_err(|error| CommandError::usage(format!("`{file}` is not a saved request: {error}")))?;
        let reader = RunReader::open(&folder).map_err(CommandError::io)?;
        Ok(Self { folder, reader, case_id: case.case_id, request })
    }
}

fn read(path: &Utf8Path) -> Result<Vec<u8>, CommandError> {
    read_file::read(path, read_file::MAX_DOCUMENT_BYTES)
        .map_err(|error| CommandError::io(format!("failed to read `{path}`: {error}")))
}
