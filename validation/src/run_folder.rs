//! A run folder as the rules see it: its side, its manifest and its assets.
//!
//! Files are measured and hashed on demand. Digests are cached; two threads may compute the same digest concurrently.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use crate::document::{count, items};
use counterproof_artifact::{Href, Manifest, Sha256Digest, Side};
use counterproof_store::confined_path::{self, ResolveError};

/// A property of a file that a document records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordedValue {
    Size(u64),
    Digest(Sha256Digest),
}

#[derive(Debug, Clone)]
struct Entry {
    asset_id: String,
    href: String,
    size: Option<u64>,
    digest: Option<Sha256Digest>,
}

/// A run folder for validating many artifacts. Threads can share it.
#[derive(Debug)]
pub struct RunFolder {
    path: Utf8PathBuf,
    side: Option<Side>,
    entries: Vec<Entry>,
    by_id: HashMap<String, usize>,
    by_href: HashMap<String, usize>,
    /// The manifest is checked against the files separately, so links of artifacts skip that check.
    is_manifest_checked_separately: bool,
    digests: Mutex<HashMap<String, Sha256Digest>>,
}

impl RunFolder {
    /// A run folder of a side, with its manifest if there is one.
    pub fn new(path: &Utf8Path, side: Side, manifest: Option<&Manifest>) -> Self {
        let entries = manifest.into_iter().flat_map(|manifest| &manifest.items).map(|item| Entry {
            asset_id: item.asset_id.clone(),
            href: item.href.to_string(),
            size: Some(item.size_bytes.get()),
            digest: item.sha256,
        });
        Self::with(path, Some(side), entries.collect())
    }

    /// Creates it from a manifest that may be invalid.
    pub(crate) fn from_manifest_value(path: &Utf8Path, side: Option<Side>, manifest: Option<&Value>) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let entries = manifest.into_iter().flat_map(|manifest| items(manifest, "items")).map(|(_, item)| Entry {
            asset_id: text(&item["asset_id"]),
            href: text(&item["href"]),
            size: count(&item["size_bytes"]),
            digest: item["sha256"].as_str().and_then(|text| text.parse().ok()),
        });
        Self::with(path, side, entries.collect())
    }

    fn with(path: &Utf8Path, side: Option<Side>, entries: Vec<Entry>) -> Self {
        let index = |name: fn(&Entry) -> &String| {
            let mut by_name = HashMap::with_capacity(entries.len());
            for (index, entry) in entries.iter().enumerate() {
                // The first of two equal entries counts; the check of the manifest reports the second.
                by_name.entry(name(entry).clone()).or_insert(index);
            }
            by_name
        };
        let (by_id, by_href) = (index(|entry| &entry.asset_id), index(|entry| &entry.href));
        let path = path.to_owned();
        Self { path, side, entries, by_id, by_href, is_manifest_checked_separately: false, digests: Mutex::default() }
    }

    /// Leaves the comparison of manifest and files to [`crate::rules::assets`].
    #[must_use]
    pub(crate) fn with_manifest_checked_separately(mut self) -> Self {
        self.is_manifest_checked_separately = true;
        self
    }

    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    pub(crate) const fn side(&self) -> Option<Side> {
        self.side
    }

    pub(crate) const fn is_manifest_checked_separately(&self) -> bool {
        self.is_manifest_checked_separately
    }

    /// Returns the href of the manifest entry with this asset id.
    pub(crate) fn listed_href(&self, id: &str) -> Option<&str> {
        self.by_id.get(id).map(|&index| self.entries[index].href.as_str())
    }

    /// Returns the size and digest that the manifest records for a file.
    pub(crate) fn listed_values(&self, href: &Href) -> impl Iterator<Item = RecordedValue> {
        let entry = self.by_href.get(href.as_str()).map(|&index| &self.entries[index]);
        let size = entry.and_then(|entry| entry.size).map(RecordedValue::Size);
        size.into_iter().chain(entry.and_then(|entry| entry.digest).map(RecordedValue::Digest))
    }

    /// Returns the size of a linked file.
    pub(crate) fn measure(&self, href: &Href) -> Result<u64, ResolveError> {
        let path = confined_path::resolve(&self.path, href.as_str())?;
        path.metadata().map(|metadata| metadata.len()).map_err(|source| failed(href, source))
    }

    /// Returns the digest of a linked file.
    pub(crate) fn digest(&self, href: &Href) -> Result<Sha256Digest, ResolveError> {
        // A poisoned lock is harmless: an insertion is the only change of the map.
        let known = || self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&digest) = known().get(href.as_str()) {
            return Ok(digest);
        }
        // Not under the lock: hashing a large file must not stop the other threads. At worst a file is hashed twice.
        let file = confined_path::open(&self.path, href.as_str())?;
        let (digest, _) = Sha256Digest::from_reader(file).map_err(|source| failed(href, source))?;
        known().insert(href.as_str().to_owned(), digest);
        Ok(digest)
    }
}

fn failed(href: &Href, source: std::io::Error) -> ResolveError {
    ResolveError::Io { name: href.to_string(), source }
}
