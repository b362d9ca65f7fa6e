//! Moves large tool payloads from the artifact into assets. The artifact retains a digest and a summary.

use counterproof_artifact::{AssetKind, Case, CaseId, Content, EventBody, Outcome, ToolResult};

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
            if let EventBody::ToolResult(result) = &mut event.body {
                move_one(result, limit, self, &case_id, &format!("full_payload_{side}_{case_id}_e{index}.json"))?;
            }
        }
        Ok(())
    }
}

fn move_one(
    result: &mut ToolResult,
    limit: usize,
    run: &RunWriter,
    case_id: &CaseId,
    name: &str,
) -> Result<(), WriteError> {
    let Some(payload) = &result.payload_summary else { return Ok(()) };
    let json = match payload {
        Content::Text(text) => serde_json::Value::from(text.as_str()),
        Content::Json(object) => serde_json::Value::Object(object.clone()),
    };
    // The limit applies to the compact form, so the indentation of the asset does not decide.
    let compact = json.to_string();
    if compact.len() <= limit {
        return Ok(());
    }
    let item = run.write_asset(name, AssetKind::FullPayload, Some(case_id), format!("{json:#}\n").as_bytes())?;
    let text = if let Content::Text(text) = payload { text } else { &compact };
    let summary = text.chars().take(SUMMARY_CHARS).chain(['…']).collect();
    result.payload_summary = Some(Content::Text(summary));
    result.payload_asset_href = Some(item.href);
    result.payload_asset_sha256 = item.sha256;
    Ok(())
}
