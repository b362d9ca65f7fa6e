//! Moves large tool payloads from the artifact into assets. The artifact retains a digest and a summary.

use counterproof_artifact::{AssetKind, Case, Content, EventBody, Outcome};

use super::RunWriter;
use crate::write::WriteError;

/// The length of the summary that replaces a moved payload, in characters.
const SUMMARY_CHARS: usize = 240;

impl RunWriter {
    /// Moves every payload of more than `limit` bytes, as compact JSON, to `assets/full_payload_<side>_<case>_e<event>.json`.
    pub fn move_large_payloads(&self, case: &mut Case, limit: usize) -> Result<(), WriteError> {
        let (case_id, side) = (case.case_id.clone(), case.version);
        let Outcome::Ok(answer) = &mut case.outcome else { return Ok(()) };
        for (index, event) in answer.events.iter_mut().enumerate() {
            let EventBody::ToolResult(result) = &mut event.body else { continue };
            let Some(large) = result.payload_summary.as_ref().and_then(|payload| large_payload(payload, limit)) else {
                continue;
            };
            let name = format!("full_payload_{side}_{case_id}_e{index}.json");
            let item = self.write_asset(&name, AssetKind::FullPayload, Some(&case_id), large.json.as_bytes())?;
            result.payload_summary = Some(Content::Text(large.summary));
            result.payload_asset_href = Some(item.href);
            result.payload_asset_sha256 = item.sha256;
        }
        Ok(())
    }
}

/// A payload that becomes an asset.
struct LargePayload {
    /// The content of the asset.
    json: String,
    /// What replaces the payload.
    summary: String,
}

/// Returns the asset of a payload above the limit. The limit applies to the compact form, so the indentation of the asset does not
/// decide.
fn large_payload(payload: &Content, limit: usize) -> Option<LargePayload> {
    let json = match payload {
        Content::Text(text) => serde_json::Value::from(text.as_str()),
        Content::Json(object) => serde_json::Value::Object(object.clone()),
    };
    let compact = json.to_string();
    if compact.len() <= limit {
        return None;
    }
    let text = if let Content::Text(text) = payload { text } else { &compact };
    let summary = text.chars().take(SUMMARY_CHARS).chain(['…']).collect();
    Some(LargePayload { json: format!("{json:#}\n"), summary })
}
