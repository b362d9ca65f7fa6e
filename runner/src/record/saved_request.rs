//! The request of a case, saved as an asset so that it can be sent again. All attempts of a case share one file.

use counterproof_artifact::{AssetKind, CaseId, Href, PROGRAM};
use counterproof_redaction::Applied;
use counterproof_store::write::WriteError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::attempt_recorder::AttemptRecorder;

/// A saved request: the body, and the names of the headers. It contains no secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "an object with the fields of a saved request")]
pub struct SavedRequest {
    /// The name of the protocol.
    pub protocol: String,
    /// The URL without credentials and query; for a program, `cmd:` and its file name.
    pub url: String,
    /// The names of the configured headers.
    #[serde(default)]
    pub headers: Vec<String>,
    /// The request body.
    pub body: Value,
    /// Whether a secret was masked in the body. If so, the saved body differs from the one that was sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
}

impl SavedRequest {
    /// Returns the file name of the agent program, or `None` for a server. The arguments are not saved.
    pub fn program(&self) -> Option<&str> {
        self.url.strip_prefix(PROGRAM)
    }
}

impl AttemptRecorder {
    pub(crate) fn save_request(&self, case_id: &CaseId, body: &[u8]) -> Result<Href, WriteError> {
        let name = format!("{case_id}.request.json");
        let failed = |error: serde_json::Error| WriteError { path: name.clone().into(), source: error.into() };
        let mut body = serde_json::from_slice(body).map_err(failed)?;
        let mut applied = Applied::default();
        // Masked inside the JSON value, so that the result is valid JSON no matter which characters a secret contains.
        self.redactor.json(&mut body, &mut applied);
        let saved = SavedRequest {
            protocol: self.protocol.to_string(),
            url: self.url.clone(),
            headers: self.header_names.clone(),
            body,
            masked: !applied.is_empty(),
        };
        let text = serde_json::to_string(&saved).map_err(failed)? + "\n";
        Ok(self.run.write_asset(&name, AssetKind::Other, Some(case_id), text.as_bytes())?.href)
    }
}
