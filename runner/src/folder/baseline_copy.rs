//! Copies a run to the baseline side: everything except `run.json`, with `baseline` as the side in artifacts and metadata.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use camino::Utf8Path;
use counterproof_artifact::{AssetKind, Sha256Digest, Side};
use counterproof_json_text::spans;
use counterproof_store::write::{self, Durability, TEMPORARY_PREFIX};
use counterproof_store::{ASSETS_FOLDER, MANIFEST_FILE, ReadError, RunReader, confined_path};
use serde_json::Value;

use super::accept::AcceptError;

/// Metadata of bodies is far smaller. A larger asset is copied without a look at its content.
const META_UP_TO_BYTES: usize = 1024 * 1024;

/// Copies everything except `run.json`. Files that name their side name `baseline` in the copy; all other bytes are equal.
pub(super) fn copy(reader: &RunReader, to: &Utf8Path) -> Result<(), AcceptError> {
    let from = reader.folder();
    let write = |name: &str, bytes: &[u8]| write::write(&to.join(name), bytes, Durability::Synced);
    for case in &reader.run().selected_case_ids {
        let name = format!("{case}.json");
        let text = text(from, &name)?;
        // The text is edited and not written from the parsed artifact, so that all other bytes stay the same.
        write(&name, replaced(&text, &[("/version".to_owned(), baseline())]).as_bytes())?;
    }
    let manifest_items = reader.manifest()?.map(|manifest| manifest.items).unwrap_or_default();
    let metadata_of: HashSet<&str> = manifest_items
        .iter()
        .filter(|item| item.kind == AssetKind::FailureMeta)
        .map(|item| item.href.as_str())
        .collect();
    let mut changed = BTreeMap::new();
    for href in files_below(from, ASSETS_FOLDER)? {
        let target = to.join(&href);
        if let Some(folder) = target.parent() {
            write::create_folder(folder)?;
        }
        // Copied at the end, with the digests of the files that change here.
        if href == MANIFEST_FILE {
            continue;
        }
        // An answer of an agent may look like metadata, and must not change. Only the manifest decides.
        let meta = if metadata_of.contains(href.as_str()) { metadata(from, &href)? } else { None };
        if let Some(meta) = meta {
            let copied = replaced(&meta, &[("/version".to_owned(), baseline())]);
            write(&href, copied.as_bytes())?;
            changed.insert(href, (Sha256Digest::from_bytes(copied.as_bytes()), copied.len()));
        } else {
            let source = confined_path::resolve(from, &href).map_err(|error| failed(from, &href, error))?;
            write::copy(&source, &target, Durability::Synced)?;
        }
    }
    if from.join(MANIFEST_FILE).exists() {
        let text = text(from, MANIFEST_FILE)?;
        write(MANIFEST_FILE, manifest(&text, &changed).as_bytes())?;
    }
    Ok(())
}

/// Returns the manifest with the other side, and with the size and digest of changed assets.
fn manifest(text: &str, changed: &BTreeMap<String, (Sha256Digest, usize)>) -> String {
    let document: Value = serde_json::from_str(text).unwrap_or_default();
    let mut edits = Vec::new();
    for (index, item) in document["items"].as_array().into_iter().flatten().enumerate() {
        let at = |field: &str| format!("/items/{index}/{field}");
        if item["side"].is_string() {
            edits.push((at("side"), baseline()));
        }
        if let Some((digest, size)) = item["href"].as_str().and_then(|href| changed.get(href)) {
            edits.push((at("size_bytes"), size.to_string()));
            edits.push((at("sha256"), format!("\"{digest}\"")));
        }
    }
    replaced(text, &edits)
}

/// Returns the baseline side as a JSON string.
fn baseline() -> String {
    format!("\"{}\"", Side::Baseline)
}

/// Replaces the values at JSON Pointers in a text. Pointers without a value are ignored.
fn replaced(text: &str, changes: &[(String, String)]) -> String {
    let pointers: Vec<&str> = changes.iter().map(|(pointer, _)| pointer.as_str()).collect();
    let spans = spans(text, &pointers);
    let mut places: Vec<(Range<usize>, String)> =
        spans.into_iter().zip(changes).filter_map(|(span, (_, value))| Some((span?, value.clone()))).collect();
    // The spans have the order of `changes`, not of the text.
    places.sort_by_key(|(span, _)| span.start);
    let mut copied = String::with_capacity(text.len() + 16);
    let mut done = 0;
    for (span, value) in places {
        copied.push_str(&text[done..span.start]);
        copied.push_str(&value);
        done = span.end;
    }
    copied.push_str(&text[done..]);
    copied
}

/// Returns the text of an asset if it is the metadata of a body, which names its side.
fn metadata(folder: &Utf8Path, href: &str) -> Result<Option<String>, AcceptError> {
    let path = folder.join(href);
    let is_small = path.metadata().is_ok_and(|file| file.len() <= META_UP_TO_BYTES as u64);
    if path.extension() != Some("json") || !is_small {
        return Ok(None);
    }
    let bytes = confined_path::read(folder, href).map_err(|error| failed(folder, href, error))?;
    let Ok(text) = String::from_utf8(bytes) else { return Ok(None) };
    let document: Value = serde_json::from_str(&text).unwrap_or_default();
    Ok((document["schema_version"] == "failure-meta.v1").then_some(text))
}

fn text(folder: &Utf8Path, name: &str) -> Result<String, AcceptError> {
    let bytes = confined_path::read(folder, name).map_err(|error| failed(folder, name, error))?;
    String::from_utf8(bytes).map_err(|error| failed(folder, name, std::io::Error::other(error)))
}

fn failed(folder: &Utf8Path, name: &str, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> AcceptError {
    ReadError::Io { path: folder.join(name), source: std::io::Error::other(error) }.into()
}

/// Returns the hrefs of all files below a folder of the run, sorted. A missing folder has none.
fn files_below(root: &Utf8Path, folder: &str) -> Result<Vec<String>, ReadError> {
    let path = root.join(folder);
    let read = |source| ReadError::Io { path: path.clone(), source };
    let entries = match path.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(read(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(read)?;
        let href = format!("{folder}/{}", entry.file_name());
        if entry.file_type().map_err(read)?.is_dir() {
            files.append(&mut files_below(root, &href)?);
        } else if !entry.file_name().starts_with(TEMPORARY_PREFIX) {
            files.push(href);
        }
    }
    files.sort_unstable();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_values_at_the_pointers_are_replaced() {
        let text = "{ \"version\":\"new\", \"n\": 1.50e1,\n \"other\": {\"version\": \"new\"}}";
        let copied = replaced(text, &[("/version".to_owned(), baseline()), ("/absent".to_owned(), "1".to_owned())]);
        assert_eq!(copied, text.replacen("\"new\"", "\"baseline\"", 1));
    }

    #[test]
    fn a_manifest_has_the_digests_of_changed_assets() {
        let text = r#"{"items": [{"href": "assets/a.json", "side": "new", "size_bytes": 1, "sha256": "00"}, {"href": "assets/b.bin", "side": null, "size_bytes": 2}]}"#;
        let digest = Sha256Digest::from_bytes(b"x");
        let copied = manifest(text, &BTreeMap::from([("assets/a.json".to_owned(), (digest, 17))]));
        let expected = format!(
            r#"{{"items": [{{"href": "assets/a.json", "side": "baseline", "size_bytes": 17, "sha256": "{digest}"}}, {{"href": "assets/b.bin", "side": null, "size_bytes": 2}}]}}"#
        );
        assert_eq!(copied, expected);
    }
}
