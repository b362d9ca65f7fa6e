//! The evidence of a failed response on disk: its body as an asset, and beside it what is known of that body. Both are
//! redacted. Why it failed is decided elsewhere.

use std::borrow::Cow;

use counterproof_artifact::{AssetKind, CaseId, Extra, FailureMeta, Href, ManifestItem};
use counterproof_redaction::Applied;
use counterproof_store::write::WriteError;
use reqwest::header::LOCATION;

use crate::attempt::execute::Reply;
use crate::failure::fault::Reason;
use crate::http::body::header;
use crate::record::attempt_recorder::Keeper;
use crate::response::body_sink::{Extent, Held};
use crate::settings::endpoint::without_secrets;

/// Response headers that are kept: they explain a failure and hold no secrets. Times of day are not among them.
const KEPT_HEADERS: [&str; 10] = [
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

/// Longest header value that is kept.
const MAX_HEADER_CHARS: usize = 400;

/// A field beside the contract's: the rules by which something was masked.
pub(crate) const REDACTIONS_APPLIED: &str = "redactions_applied";

/// Where the evidence is.
pub(crate) struct SavedBody {
    pub(crate) body: Href,
    pub(crate) meta: Href,
    pub(crate) snippet: String,
}

/// Which attempt a body belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Whose<'a> {
    pub(crate) case_id: &'a CaseId,
    pub(crate) attempt: u32,
    pub(crate) reason: Reason,
}

impl Keeper {
    /// Saves a body that is not empty with its metadata; the rules that were applied go to `applied`.
    pub(crate) fn save_body(
        &self,
        held: Held,
        reply: &Reply,
        whose: Whose<'_>,
        applied: &mut Applied,
    ) -> Result<Option<SavedBody>, WriteError> {
        let Some((saved, snippet)) = self.save_bytes(held, reply.body.extent, whose, applied)? else { return Ok(None) };
        let headers = self.kept_headers(reply, applied);
        let mut meta = FailureMeta {
            case_id: Some(whose.case_id.clone()),
            version: Some(self.run.side()),
            class: Some(whose.reason.class().as_str().to_owned()),
            content_type: self.kept_header(reply, "content-type", applied).into(),
            encoding: self.kept_header(reply, "content-encoding", applied).into(),
            bytes_written: Some(saved.size_bytes),
            bytes_total: reply.body.total.map(Into::into).into(),
            truncated: Some(reply.body.extent == Extent::Cut),
            sha256: saved.sha256,
            headers: Some(headers),
            note: note(reply, applied),
            ..FailureMeta::default()
        };
        if !applied.is_empty() {
            meta.extra.insert(REDACTIONS_APPLIED.to_owned(), applied.names().into());
        }
        let bytes = serde_json::to_string_pretty(&meta)
            .map_err(|error| WriteError { path: self.run.folder().join(saved.href.as_str()), source: error.into() })?;
        let file = format!("{}.attempt{}.meta.json", whose.case_id, whose.attempt);
        let bytes = bytes + "\n";
        let meta = self.run.write_asset(&file, AssetKind::FailureMeta, Some(whose.case_id), bytes.as_bytes())?;
        Ok(Some(SavedBody { body: saved.href, meta: meta.href, snippet }))
    }

    fn save_bytes(
        &self,
        held: Held,
        extent: Extent,
        whose: Whose<'_>,
        applied: &mut Applied,
    ) -> Result<Option<(ManifestItem, String)>, WriteError> {
        // Never `.json`: every `.json` file of a run folder is a document that the runner vouches for.
        let name = |is_text: bool| {
            let extension = if is_text { "txt" } else { "bin" };
            format!("{}.attempt{}.body.{extension}", whose.case_id, whose.attempt)
        };
        match held {
            Held::Memory(bytes) if bytes.is_empty() => Ok(None),
            Held::Memory(bytes) => {
                let bytes: Cow<'_, [u8]> = match extent {
                    Extent::Whole => self.redactor.bytes(&bytes, applied),
                    Extent::Cut => self.redactor.cut_bytes(&bytes, applied),
                };
                let file = name(std::str::from_utf8(&bytes).is_ok());
                let item = self.run.write_asset(&file, AssetKind::FullBody, Some(whose.case_id), &bytes)?;
                Ok(Some((item, snippet(&bytes, self.limits.snippet))))
            }
            Held::Disk { spool, start, is_text, applied: on_the_way } => {
                applied.merge(&on_the_way);
                let item = self.run.name_asset(*spool, &name(is_text), AssetKind::FullBody, Some(whose.case_id))?;
                Ok(Some((item, snippet(&start, self.limits.snippet))))
            }
        }
    }

    fn kept_header(&self, reply: &Reply, name: &str, applied: &mut Applied) -> Option<String> {
        let value = self.redactor.text(header(&reply.headers, name)?, applied);
        Some(value.chars().take(MAX_HEADER_CHARS).collect())
    }

    fn kept_headers(&self, reply: &Reply, applied: &mut Applied) -> Extra {
        let mut kept = Extra::new();
        for name in KEPT_HEADERS {
            if let Some(value) = self.kept_header(reply, name, applied) {
                kept.insert(name.to_owned(), value.into());
            }
        }
        // Where a redirect leads is worth knowing; its query is not, since that is where tokens travel.
        let location = header(&reply.headers, LOCATION.as_str())
            .and_then(|target| reqwest::Url::parse(&self.url).ok()?.join(target).ok());
        if let Some(target) = location {
            kept.insert(LOCATION.to_string(), self.redactor.text(&without_secrets(&target), applied).into());
        }
        kept
    }
}

/// What a reader of the saved body should know: how it was saved, and why it is cut where the class does not say.
fn note(reply: &Reply, applied: &Applied) -> Option<String> {
    let cut = reply.body.cut.as_ref().map(|cut| cut.message.as_str());
    let masked = (!applied.is_empty()).then_some("secrets were masked");
    let parts: Vec<&str> = cut.into_iter().chain(reply.body.note).chain(masked).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The start of a body as text of at most `limit` bytes.
fn snippet(bytes: &[u8], limit: usize) -> String {
    let mut text = String::from_utf8_lossy(&bytes[..bytes.len().min(limit)]).into_owned();
    // Bytes that are no text take more room as replacement characters than they took before.
    text.truncate(text.floor_char_boundary(limit));
    text
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
