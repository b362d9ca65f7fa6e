//! Rules about the metadata of a saved body: they name the case that links to them, and tell the truth about the body.

use serde_json::Value;

use super::excerpt::quote;
use super::finding::Findings;
use super::folder::{Mark, RunFolder};
use super::value::count;
use super::{Code, hrefs, names, shape};
use counterproof_artifact::Href;
use counterproof_artifact::schema::Kind;

/// The document by itself. False where it is another document.
pub(super) fn check(meta: &Value, findings: &mut Findings) -> bool {
    if !shape::check(Kind::FailureMeta, meta, findings) {
        return false;
    }
    names::case_id(&meta["case_id"], "/case_id", findings);
    let (written, total) = (count(&meta["bytes_written"]), count(&meta["bytes_total"]));
    // A mask is longer or shorter than what it stands for, so the sizes of a body that was redacted say nothing of its end.
    let is_redacted = meta["redactions_applied"].as_array().is_some_and(|rules| !rules.is_empty());
    if let (Some(written), Some(total), Some(truncated)) = (written, total, meta["truncated"].as_bool())
        && !is_redacted
        && truncated != (written < total)
    {
        let message = format!("`truncated` is {truncated}, and {written} of {total} bytes were kept");
        findings.add(Code::WrongValue, "/truncated", message, format!("`{}`", !truncated));
    }
    true
}

/// The document, held against the case that it belongs to and the body that it describes.
pub(super) fn check_folder(
    meta: &Value,
    case_id: Option<&str>,
    body: Option<&Href>,
    folder: &RunFolder,
    findings: &mut Findings,
) {
    if let (Some(owner), Some(id)) = (case_id, meta["case_id"].as_str())
        && owner != id
    {
        let message = format!("the `case_id` is {}, and the metadata belong to {}", quote(id), quote(owner));
        findings.add(Code::CaseIdDiffers, "/case_id", message, quote(owner));
    }
    if let Some(side) = folder.side() {
        names::side(&meta["version"], "/version", side, "run", findings);
    }
    let Some(body) = body.filter(|body| folder.measure(body).is_ok()) else { return };
    if let Some(written) = count(&meta["bytes_written"]) {
        hrefs::compare(body, Mark::Size(written), "/bytes_written", folder, findings);
    }
    if let Some(digest) = meta["sha256"].as_str().and_then(|text| text.parse().ok()) {
        hrefs::compare(body, Mark::Digest(digest), "/sha256", folder, findings);
    }
}
