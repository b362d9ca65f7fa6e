//! `assets/manifest.json`: the files of the assets folder and their owners.

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

/// The list of the assets of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always `assets-manifest.v1`.
    pub schema_version: ManifestSchema,
    /// The time of writing, in ISO 8601.
    pub generated_at: String,
    /// One entry for each file, sorted by href.
    pub items: Vec<ManifestItem>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One asset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ManifestItem {
    /// The id for evidence refs.
    pub asset_id: String,
    /// The path relative to the run folder.
    pub href: Href,
    /// The kind of content.
    pub kind: AssetKind,
    /// The case that it belongs to; null if there is none.
    pub case_id: Option<CaseId>,
    /// The side that it belongs to; null if there is none.
    pub side: Option<Side>,
    /// The size in bytes.
    pub size_bytes: Count,
    /// The digest of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256Digest>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The kind of content of an asset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssetKind {
    /// The body of a response that was not a valid answer.
    FullBody,
    /// A `failure-meta.v1` document.
    FailureMeta,
    /// The complete payload of a tool result.
    FullPayload,
    /// The snippets of a retrieval.
    RetrievalSnippets,
    /// Any other content.
    Other,
}
