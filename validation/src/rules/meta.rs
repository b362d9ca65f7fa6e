//! Rules for the metadata of a saved body: they name the case that links to them and match the body.

use serde_json::Value;

use crate::Code;
use crate::excerpt::quote;
use crate::finding::Findings;
use crate::json_value::count;
use crate::rules::hrefs;
use crate::rules::names;
use crate::rules::schema;
use crate::run_folder::{RecordedValue, RunFolder};
use counterproof_artifact::Href;
use counterproof_artifact::schema::Kind;

/// Checks the document alone. Returns false where it is another kind of document.
pub(crate) fn check(meta: &Value, findings: &mut Findings) -> bool {
    if !schema::check(Kind::FailureMeta, meta, findings) {
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
pub(crate) fn check_folder(
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
    let Some(body) = body.filter(|body| folder.measure(body).is_ok()) else { return };
    if let Some(written) = count(&meta["bytes_written"]) {
        hrefs::compare(body, RecordedValue::Size(written), "/bytes_written", folder, findings);
    }
    if let Some(digest) = meta["sha256"].as_str().and_then(|text| text.parse().ok()) {
        hrefs::compare(body, RecordedValue::Digest(digest), "/sha256", folder, findings);
    }
}
