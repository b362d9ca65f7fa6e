//! Rules for files under `assets/`: links to them, `assets/manifest.json`, and the metadata of saved bodies.

use std::collections::{HashMap, HashSet};

use counterproof_artifact::schema::Kind;
use counterproof_artifact::{Href, HrefError, REQUEST_ASSET_HREF, Sha256Digest, escape_invisible};
use counterproof_store::ASSETS_FOLDER;
use counterproof_store::confined_path::ResolveError;
use rayon::prelude::*;
use serde_json::Value;

use super::names;
use crate::document::{count, items};
use crate::document_schema::describe;
use crate::finding::{Findings, quote};
use crate::run_folder::{RecordedValue, RunFolder};
use crate::{Code, contract_schema};

/// Checks the links of events to their assets.
pub(crate) fn check_events(document: &Value, folder: Option<&RunFolder>, findings: &mut Findings) {
    for (index, event) in items(document, "events") {
        let field = match event["type"].as_str() {
            Some("tool_result") => "payload_asset_href",
            Some("retrieval") => "snippets_asset_href",
            _ => continue,
        };
        let Some(href) = parse_asset(&event[field], &format!("/events/{index}/{field}"), findings) else { continue };
        // Only a tool result records the digest of its asset.
        let text = event["payload_asset_sha256"].as_str().filter(|_| field == "payload_asset_href");
        let pointer = format!("/events/{index}/payload_asset_sha256");
        let digest = text.and_then(|text| text.parse().ok()).map(|digest| RecordedDigest { digest, pointer });
        if let Some(folder) = folder {
            check_target(&href, &format!("/events/{index}/{field}"), digest, folder, findings);
        }
    }
}

/// Checks the link of an artifact to its stored request.
pub(crate) fn check_request(document: &Value, folder: Option<&RunFolder>, findings: &mut Findings) {
    let pointer = format!("/{REQUEST_ASSET_HREF}");
    let value = &document[REQUEST_ASSET_HREF];
    // The schema of `case.v1` does not list the field, so its type is checked here.
    if !value.is_string() && !value.is_null() {
        findings.add(Code::WrongType, pointer, describe(value), "a string");
        return;
    }
    let href = parse_asset(value, &pointer, findings);
    if let (Some(href), Some(folder)) = (href, folder) {
        check_target(&href, &pointer, None, folder, findings);
    }
}

/// Parses an href under `assets/`. An invalid one becomes a finding.
pub(crate) fn parse_asset(value: &Value, pointer: &str, findings: &mut Findings) -> Option<Href> {
    let text = value.as_str()?;
    match text.parse::<Href>() {
        Ok(href) if is_asset(&href) => Some(href),
        Ok(_) => {
            let message = format!("{} is not under `assets/`", quote(text));
            findings.add(Code::HrefOutsideAssets, pointer, message, "an href such as `assets/body.bin`");
            None
        }
        Err(error) => {
            let (code, what) = match error {
                HrefError::Absolute(_) => (Code::AbsolutePath, "is an absolute path"),
                HrefError::Scheme(_) => (Code::HrefEscapes, "is a URL, not a path within the folder"),
                HrefError::Escapes(_) => (Code::HrefEscapes, "leaves its folder"),
                HrefError::Empty | HrefError::NotPortable(_) => (Code::HrefNotPortable, "is not written portably"),
            };
            findings.add(code, pointer, format!("{} {what}", quote(text)), "an href such as `assets/body.bin`");
            None
        }
    }
}

pub(crate) fn is_asset(href: &Href) -> bool {
    href.as_str().strip_prefix(ASSETS_FOLDER).is_some_and(|rest| rest.starts_with('/'))
}

/// Checks a path that may leave its folder, such as the path of the cases file, but must work on other machines.
pub(crate) fn check_relative_path(value: &Value, pointer: &str, findings: &mut Findings) {
    let Some(text) = value.as_str() else { return };
    let bytes = text.as_bytes();
    // Absolute paths of every system: the document may come from another one.
    let drive = bytes.len() > 1 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':';
    let file_url = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("file:"));
    if drive || file_url || matches!(bytes.first(), Some(b'/' | b'\\')) {
        let message = format!("{} is an absolute path", quote(text));
        findings.add(Code::AbsolutePath, pointer, message, "a relative path, such as `cases/cases.json`");
    }
}

/// The digest that a document records next to a link.
pub(crate) struct RecordedDigest {
    pub(crate) digest: Sha256Digest,
    /// The JSON Pointer of the digest.
    pub(crate) pointer: String,
}

/// Checks that the target of a link exists, and that it has the recorded digest and the properties in the manifest.
pub(crate) fn check_target(
    href: &Href,
    pointer: &str,
    digest: Option<RecordedDigest>,
    folder: &RunFolder,
    findings: &mut Findings,
) {
    if let Err(error) = folder.measure(href) {
        let message = escape_invisible(&error.to_string());
        let (code, expected) = match error {
            ResolveError::Missing { .. } => (Code::AssetMissing, "a file at this path in the run folder"),
            ResolveError::NotAFile { .. } => (Code::AssetMissing, "a file, not a folder or a device"),
            ResolveError::Escapes { .. } => (Code::HrefEscapes, "a file within the run folder"),
            ResolveError::Io { .. } => (Code::Unreadable, "a file that can be read"),
        };
        findings.add(code, pointer, message, expected);
        return;
    }
    if let Some(recorded) = digest {
        compare(href, RecordedValue::Digest(recorded.digest), &recorded.pointer, folder, findings);
    }
    // `check_manifest_in_folder` compares each entry with its file, and would add the same finding.
    if !folder.is_manifest_checked_separately() {
        for recorded in folder.listed_values(href) {
            compare(href, recorded, pointer, folder, findings);
        }
    }
}

/// Compares an existing file with a recorded size or digest.
pub(crate) fn compare(
    href: &Href,
    recorded: RecordedValue,
    pointer: &str,
    folder: &RunFolder,
    findings: &mut Findings,
) {
    match recorded {
        RecordedValue::Size(expected) => {
            // Callers have measured the file before and reported an error then.
            if let Ok(size) = folder.measure(href)
                && size != expected
            {
                let message = format!("`{href}` has {size} bytes, but {expected} were recorded");
                findings.add(Code::AssetSizeDiffers, pointer, message, format!("a file of {expected} bytes"));
            }
        }
        RecordedValue::Digest(expected) => match folder.digest(href) {
            Ok(digest) if digest != expected => {
                let message = format!("`{href}` has the SHA-256 {digest}, but {expected} was recorded");
                findings.add(Code::AssetDigestDiffers, pointer, message, format!("a file with the SHA-256 {expected}"));
            }
            Ok(_) => {}
            Err(error) => {
                findings.add(
                    Code::Unreadable,
                    pointer,
                    escape_invisible(&error.to_string()),
                    "a file that can be read",
                );
            }
        },
    }
}

/// Checks the document alone. Returns false if it is another kind of document.
pub(crate) fn check_manifest(manifest: &Value, findings: &mut Findings) -> bool {
    if !contract_schema::check(Kind::AssetsManifest, manifest, findings) {
        return false;
    }
    names::time(&manifest["generated_at"], "/generated_at", findings);
    for (index, item) in items(manifest, "items") {
        names::case_id(&item["case_id"], &format!("/items/{index}/case_id"), findings);
    }
    for field in ["asset_id", "href"] {
        let mut first: HashMap<&str, usize> = HashMap::new();
        for (index, item) in items(manifest, "items") {
            let Some(name) = item[field].as_str() else { continue };
            if let Some(earlier) = first.get(name) {
                let message = format!("the {field} {} is already used at `/items/{earlier}`", quote(name));
                let expected = format!("a unique {field}");
                findings.add(Code::DuplicateAsset, format!("/items/{index}/{field}"), message, expected);
            } else {
                first.insert(name, index);
            }
        }
    }
    true
}

/// Checks the entries against their files. Hashes the files in parallel.
pub(crate) fn check_manifest_in_folder(manifest: &Value, folder: &RunFolder, findings: &mut Findings) {
    let hashed: Vec<Href> = items(manifest, "items")
        .filter(|(_, item)| item["sha256"].is_string())
        .filter_map(|(_, item)| item["href"].as_str()?.parse().ok())
        .collect();
    // Fills the cache of digests. An error occurs again below and becomes a finding there.
    hashed.par_iter().for_each(|href| drop(folder.digest(href)));

    for (index, item) in items(manifest, "items") {
        let at = |field: &str| format!("/items/{index}/{field}");
        if let Some(side) = folder.side() {
            names::side(&item["side"], &at("side"), side, "run", findings);
        }
        let Some(href) = parse_asset(&item["href"], &at("href"), findings) else { continue };
        match folder.measure(&href) {
            Ok(_) => {
                if let Some(size) = count(&item["size_bytes"]) {
                    compare(&href, RecordedValue::Size(size), &at("size_bytes"), folder, findings);
                }
                if let Some(digest) = item["sha256"].as_str().and_then(|text| text.parse().ok()) {
                    compare(&href, RecordedValue::Digest(digest), &at("sha256"), folder, findings);
                }
            }
            Err(ResolveError::Missing { .. } | ResolveError::NotAFile { .. }) => {
                let message = format!("{} does not exist", quote(href.as_str()));
                findings.add(Code::ManifestEntryStale, at("href"), message, "a file at this path in the run folder");
            }
            Err(error @ ResolveError::Escapes { .. }) => {
                findings.add(
                    Code::HrefEscapes,
                    at("href"),
                    escape_invisible(&error.to_string()),
                    "a file within the run folder",
                );
            }
            Err(error @ ResolveError::Io { .. }) => {
                findings.add(
                    Code::Unreadable,
                    at("href"),
                    escape_invisible(&error.to_string()),
                    "a file that can be read",
                );
            }
        }
    }
}

/// Checks that every file under `assets/`, given as an href, has an entry.
pub(crate) fn check_files(manifest: &Value, files: &[String], findings: &mut Findings) {
    let listed: HashSet<&str> = items(manifest, "items").filter_map(|(_, item)| item["href"].as_str()).collect();
    for file in files.iter().filter(|file| !listed.contains(file.as_str())) {
        let message = format!("{} is not listed", quote(file));
        findings.add(Code::ManifestEntryMissing, "/items", message, format!("an entry with the href {}", quote(file)));
    }
}

/// Checks the document alone. Returns false if it is another kind of document.
pub(crate) fn check_meta(meta: &Value, findings: &mut Findings) -> bool {
    if !contract_schema::check(Kind::FailureMeta, meta, findings) {
        return false;
    }
    names::case_id(&meta["case_id"], "/case_id", findings);
    let (written, total) = (count(&meta["bytes_written"]), count(&meta["bytes_total"]));
    // A mask and its secret differ in length, so the sizes of a redacted body do not show whether it was truncated.
    let is_redacted = meta["redactions_applied"].as_array().is_some_and(|rules| !rules.is_empty());
    if let (Some(written), Some(total), Some(truncated)) = (written, total, meta["truncated"].as_bool())
        && !is_redacted
        && truncated != (written < total)
    {
        let message = format!("`truncated` is {truncated}, but {written} of {total} bytes were saved");
        findings.add(Code::WrongValue, "/truncated", message, format!("`{}`", !truncated));
    }
    true
}

/// Checks the document against its case and its body.
pub(crate) fn check_meta_in_folder(
    meta: &Value,
    case_id: Option<&str>,
    body: Option<&Href>,
    folder: &RunFolder,
    findings: &mut Findings,
) {
    if let (Some(owner), Some(id)) = (case_id, meta["case_id"].as_str())
        && owner != id
    {
        let message = format!("the `case_id` is {}, but the metadata belong to {}", quote(id), quote(owner));
        findings.add(Code::CaseIdDiffers, "/case_id", message, quote(owner));
    }
    if let Some(side) = folder.side() {
        names::side(&meta["version"], "/version", side, "run", findings);
    }
    // A body that does not exist has its finding at the link.
    let Some(body) = body.filter(|body| folder.measure(body).is_ok()) else { return };
    if let Some(written) = count(&meta["bytes_written"]) {
        compare(body, RecordedValue::Size(written), "/bytes_written", folder, findings);
    }
    if let Some(digest) = meta["sha256"].as_str().and_then(|text| text.parse().ok()) {
        compare(body, RecordedValue::Digest(digest), "/sha256", folder, findings);
    }
}
