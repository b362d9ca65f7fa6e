//! Rules for links: the syntax of an href, its target, and the size and digest of the target.

use serde_json::Value;

use crate::Code;
use crate::document_schema::describe;
use crate::excerpt::quote;
use crate::finding::Findings;
use crate::json_value::items;
use crate::run_folder::{RecordedValue, RunFolder};
use counterproof_artifact::HrefError;
use counterproof_artifact::escape_invisible;
use counterproof_artifact::{Href, REQUEST_ASSET_HREF, Sha256Digest};
use counterproof_store::ASSETS_FOLDER;
use counterproof_store::confined_path::ResolveError;

/// Checks the links of events to their assets.
pub(crate) fn check_events(document: &Value, folder: Option<&RunFolder>, findings: &mut Findings) {
    for (index, event) in items(document, "events") {
        let field = match event["type"].as_str() {
            Some("tool_result") => "payload_asset_href",
            Some("retrieval") => "snippets_asset_href",
            _ => continue,
        };
        let Some(href) = parse_asset(&event[field], &format!("/events/{index}/{field}"), findings) else { continue };
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

/// Checks a path that may leave its folder, such as that of the cases file, but must work on other machines.
pub(crate) fn check_relative_path(value: &Value, pointer: &str, findings: &mut Findings) {
    let Some(text) = value.as_str() else { return };
    let bytes = text.as_bytes();
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
