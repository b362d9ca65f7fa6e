//! Recognizes a JSON document of another kind than the one that a command takes.

use camino::Utf8Path;
use counterproof_store::read_file;
use serde_json::Value;

/// Returns the schema version of a document that names another kind, such as `run.v1` where `case.` is expected. `None` if the
/// file is not such a document: then the error of the parser explains more.
pub(crate) fn other_kind(path: &Utf8Path, expected_prefix: &str) -> Option<String> {
    let document: Value = serde_json::from_slice(&read_file::read(path, read_file::MAX_LARGE_BYTES).ok()?).ok()?;
    let version = document.get("schema_version")?.as_str()?;
    // A version without the form `kind.vN` names no kind. It may be any text, so it is not repeated.
    let is_kind = version.split_once(".v").is_some_and(|(kind, number)| {
        kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte == b'_')
            && number.parse::<u32>().is_ok()
    });
    (is_kind && !version.starts_with(expected_prefix)).then(|| version.to_owned())
}
