//! Saves the body of a failed response as an asset, with a second asset for its metadata. Both are redacted.

use std::borrow::Cow;

use counterproof_artifact::{AssetKind, CaseId, Extra, FailureMeta, Href, ManifestItem, PROGRAM};
use counterproof_redaction::Applied;
use counterproof_store::write::WriteError;
use reqwest::Method;
use reqwest::header::LOCATION;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::attempt_recorder::AttemptRecorder;
use crate::body_sink::{BodyBytes, Extent};
use crate::exchange::AgentResponse;
use crate::failure::Reason;
use crate::settings::strip_secrets;

/// Response headers to save: they explain a failure and contain no secrets. Headers with the time of day are left out, so
/// that equal runs have equal files.
const SAVED_HEADERS: [&str; 10] = [
    "content-type",
    "content-length",
    "content-encoding",
    "transfer-encoding",
    "retry-after",
    "allow",
    "server",
    "x-request-id",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
];

/// The longest saved header value.
const MAX_HEADER_CHARS: usize = 400;

/// The field with the names of the redaction rules that masked something. The contract allows it as an extra field.
pub(super) const REDACTIONS_APPLIED: &str = "redactions_applied";

pub(super) struct SavedBody {
    pub(crate) body: Href,
    pub(crate) meta: Href,
    pub(crate) snippet: String,
}

/// The attempt that a body belongs to.
#[derive(Clone, Copy)]
pub(super) struct AttemptRef<'a> {
    pub(crate) case_id: &'a CaseId,
    pub(crate) number: u32,
    pub(crate) reason: Reason,
}

impl AttemptRecorder {
    /// Saves a body and its metadata, and adds the applied redaction rules to `applied`. Returns `None` for an empty body.
    pub(super) fn save_body(
        &self,
        body: BodyBytes,
        response: &AgentResponse,
        attempt: AttemptRef<'_>,
        applied: &mut Applied,
    ) -> Result<Option<SavedBody>, WriteError> {
        let Some((saved, snippet)) = self.save_bytes(body, response.body.extent, attempt, applied)? else {
            return Ok(None);
        };
        let headers = self.saved_headers(response, applied);
        let mut meta = FailureMeta {
            case_id: Some(attempt.case_id.clone()),
            version: Some(self.run.side()),
            class: Some(attempt.reason.class().as_str().to_owned()),
            content_type: self.saved_header(response, "content-type", applied).into(),
            encoding: self.saved_header(response, "content-encoding", applied).into(),
            bytes_written: Some(saved.size_bytes),
            bytes_total: response.body.total.map(Into::into).into(),
            truncated: Some(response.body.extent == Extent::Truncated),
            sha256: saved.sha256,
            headers: Some(headers),
            note: note(response, applied),
            ..FailureMeta::default()
        };
        if !applied.is_empty() {
            meta.extra.insert(REDACTIONS_APPLIED.to_owned(), applied.names().into());
        }
        let bytes = serde_json::to_string_pretty(&meta)
            .map_err(|error| WriteError { path: self.run.folder().join(saved.href.as_str()), source: error.into() })?;
        let file = format!("{}.attempt{}.meta.json", attempt.case_id, attempt.number);
        let bytes = bytes + "\n";
        let meta = self.run.write_asset(&file, AssetKind::FailureMeta, Some(attempt.case_id), bytes.as_bytes())?;
        Ok(Some(SavedBody { body: saved.href, meta: meta.href, snippet }))
    }

    fn save_bytes(
        &self,
        body: BodyBytes,
        extent: Extent,
        attempt: AttemptRef<'_>,
        applied: &mut Applied,
    ) -> Result<Option<(ManifestItem, String)>, WriteError> {
        // Never `.json`: every `.json` file of a run folder is a document that the runner itself wrote.
        let name = |is_text: bool| {
            let extension = if is_text { "txt" } else { "bin" };
            format!("{}.attempt{}.body.{extension}", attempt.case_id, attempt.number)
        };
        match body {
            BodyBytes::Memory(bytes) if bytes.is_empty() => Ok(None),
            BodyBytes::Memory(bytes) => {
                let bytes: Cow<'_, [u8]> = match extent {
                    Extent::Complete => self.redactor.bytes(&bytes, applied),
                    // The cut can split a secret, so a prefix of one at the end is masked too.
                    Extent::Truncated => self.redactor.truncated_bytes(&bytes, applied),
                };
                let file = name(std::str::from_utf8(&bytes).is_ok());
                let item = self.run.write_asset(&file, AssetKind::FullBody, Some(attempt.case_id), &bytes)?;
                Ok(Some((item, snippet(&bytes, self.limits.snippet))))
            }
            BodyBytes::Disk { asset, start, is_text, applied: while_streaming } => {
                applied.merge(&while_streaming);
                let item = self.run.name_asset(*asset, &name(is_text), AssetKind::FullBody, Some(attempt.case_id))?;
                Ok(Some((item, snippet(&start, self.limits.snippet))))
            }
        }
    }

    fn saved_header(&self, response: &AgentResponse, name: &str, applied: &mut Applied) -> Option<String> {
        // Redacted before it is cut: half of a secret would not be recognised.
        let value = self.redactor.text(response.header(name)?, applied);
        Some(value.chars().take(MAX_HEADER_CHARS).collect())
    }

    fn saved_headers(&self, response: &AgentResponse, applied: &mut Applied) -> Extra {
        let mut headers = Extra::new();
        for name in SAVED_HEADERS {
            if let Some(value) = self.saved_header(response, name, applied) {
                headers.insert(name.to_owned(), value.into());
            }
        }
        // The target of a redirect is saved without its query, because queries often contain tokens.
        let location = response
            .header(LOCATION.as_str())
            .and_then(|target| reqwest::Url::parse(&self.url).ok()?.join(target).ok());
        if let Some(target) = location {
            headers.insert(LOCATION.to_string(), self.redactor.text(&strip_secrets(&target), applied).into());
        }
        headers
    }
}

/// Returns the note about a saved body: why it is truncated, how it was decoded, and whether secrets were masked.
fn note(response: &AgentResponse, applied: &Applied) -> Option<String> {
    let fault = response.body.fault.as_ref().map(|fault| fault.message.as_str());
    let masked = (!applied.is_empty()).then_some("secrets were masked");
    let parts: Vec<&str> = fault.into_iter().chain(response.body.note).chain(masked).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Returns the start of a body as text of at most `limit` bytes.
fn snippet(bytes: &[u8], limit: usize) -> String {
    let mut text = String::from_utf8_lossy(&bytes[..bytes.len().min(limit)]).into_owned();
    // Invalid bytes become replacement characters of three bytes each, which can exceed the limit.
    text.truncate(text.floor_char_boundary(limit));
    text
}

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
    /// The HTTP method.
    #[serde(default = "post", skip_serializing_if = "is_post")]
    pub method: String,
    /// The content type of the body.
    #[serde(default = "json", skip_serializing_if = "is_json")]
    pub content_type: String,
    /// The request body. A body that is not JSON is a string; null if there is none.
    pub body: Value,
    /// Whether a secret was masked in the body. If so, the saved body differs from the one that was sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
}

/// The content type of a body that is saved as the JSON value that it is.
const JSON: &str = "application/json";

fn post() -> String {
    Method::POST.to_string()
}

fn is_post(method: &str) -> bool {
    method == Method::POST.as_str()
}

fn json() -> String {
    JSON.to_owned()
}

fn is_json(content_type: &str) -> bool {
    content_type == JSON
}

impl SavedRequest {
    /// Returns the body as it was sent, apart from masked secrets.
    pub fn body_text(&self) -> String {
        match &self.body {
            Value::Null => String::new(),
            Value::String(text) if !is_json(&self.content_type) => text.clone(),
            body => body.to_string(),
        }
    }

    /// Returns the file name of the agent program, or `None` for a server. The arguments are not saved.
    pub fn program(&self) -> Option<&str> {
        self.url.strip_prefix(PROGRAM)
    }
}

impl AttemptRecorder {
    pub(crate) fn save_request(&self, case_id: &CaseId, body: &[u8]) -> Result<Href, WriteError> {
        let name = format!("{case_id}.request.json");
        let failed = |error: serde_json::Error| WriteError { path: name.clone().into(), source: error.into() };
        // A text can look like JSON, such as `5`.
        let mut body = if self.adapter.content_type() == JSON {
            if body.is_empty() { Value::Null } else { serde_json::from_slice(body).map_err(failed)? }
        } else {
            String::from_utf8_lossy(body).into()
        };
        let mut applied = Applied::default();
        // Masked inside the JSON value, so that the result is valid JSON no matter which characters a secret contains.
        self.redactor.json(&mut body, &mut applied);
        let saved = SavedRequest {
            protocol: self.protocol.to_string(),
            url: self.url.clone(),
            headers: self.header_names.clone(),
            method: self.adapter.method().to_string(),
            content_type: self.adapter.content_type().to_owned(),
            body,
            masked: !applied.is_empty(),
        };
        let text = serde_json::to_string(&saved).map_err(failed)? + "\n";
        Ok(self.run.write_asset(&name, AssetKind::Other, Some(case_id), text.as_bytes())?.href)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_is_text_within_its_limit() {
        assert_eq!(snippet("héllo".as_bytes(), 2), "h");
        assert_eq!(snippet("héllo".as_bytes(), 3), "hé");
        assert_eq!(snippet(b"ab\xff\xff", 4), "ab");
        assert_eq!(snippet(b"", 4), "");
    }
}
