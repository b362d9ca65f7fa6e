//! `assets/manifest.json`: what lies in the assets folder, and whose it is.

use serde::{Deserialize, Serialize};

use crate::{CaseId, Count, Extra, Href, Sha256Digest, Side};

/// The version of the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ManifestSchema {
    /// `assets-manifest.v1`
    #[default]
    #[serde(rename = "assets-manifest.v1")]
    V1,
}

/// What lies in the assets folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always `assets-manifest.v1`.
    pub schema_version: ManifestSchema,
    /// When it was written, in ISO 8601.
    pub generated_at: String,
    /// One for each file, sorted by href.
    pub items: Vec<ManifestItem>,
    /// What this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One asset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ManifestItem {
    /// What evidence refs may call it.
    pub asset_id: String,
    /// Where it is, relative to the run folder.
    pub href: Href,
    /// What it holds.
    pub kind: AssetKind,
    /// The case that it belongs to; null where it belongs to none.
    pub case_id: Option<CaseId>,
    /// The side that it belongs to; null where it belongs to none.
    pub side: Option<Side>,
    /// Its size.
    pub size_bytes: Count,
    /// Its digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256Digest>,
    /// What this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What an asset holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssetKind {
    /// The body of a response that was no valid answer.
    FullBody,
    /// A `failure-meta.v1` document.
    FailureMeta,
    /// What a tool returned.
    FullPayload,
    /// What a retrieval found.
    RetrievalSnippets,
    /// Anything else.
    Other,
}
