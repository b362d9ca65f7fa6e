//! The request of a case, kept as an asset so that it can be sent again. One file a case, whatever the number of attempts.

use counterproof_artifact::{AssetKind, CaseId, Href, PROGRAM};
use counterproof_redaction::Applied;
use counterproof_store::write::WriteError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::attempt_recorder::Keeper;

/// The field of the artifact that leads to the request.
pub const REQUEST_HREF: &str = "request_asset_href";

/// A request as it is kept: what was sent, and the names of what went with it. It holds no secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedRequest {
    /// The protocol's name.
    pub protocol: String,
    /// Where it went, without credentials and query; `cmd:` and a name for a program.
    pub url: String,
    /// The names of the configured headers.
    #[serde(default)]
    pub headers: Vec<String>,
    /// The body.
    pub body: Value,
    /// True where a secret of the runner's own stood in the body and was masked: sent again, it is another request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
}

impl SavedRequest {
    /// The name of the program that was asked, where the agent was one. Its arguments are kept nowhere.
    pub fn program(&self) -> Option<&str> {
        self.url.strip_prefix(PROGRAM)
    }
}

impl Keeper {
    /// Keeps the request of a case.
    pub(crate) fn keep_request(&self, case_id: &CaseId, body: &[u8]) -> Result<Href, WriteError> {
        let name = format!("{case_id}.request.json");
        let failed = |error: serde_json::Error| WriteError { path: name.clone().into(), source: error.into() };
        let mut body = serde_json::from_slice(body).map_err(failed)?;
        let mut applied = Applied::default();
        // Within its JSON, which stays JSON whatever a secret holds.
        self.redactor.json(&mut body, &mut applied);
        let kept = SavedRequest {
            protocol: self.protocol.to_string(),
            url: self.url.clone(),
            headers: self.header_names.clone(),
            body,
            masked: !applied.is_empty(),
        };
        let text = serde_json::to_string(&kept).map_err(failed)? + "\n";
        Ok(self.run.write_asset(&name, AssetKind::Other, Some(case_id), text.as_bytes())?.href)
    }
}
