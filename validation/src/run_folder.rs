//! A run folder as the rules see it: its side, what its manifest lists, and what lies under `assets/`. Files are measured
//! when a rule asks for them, and what is known of one is not asked again; two threads may come to ask at once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use super::value::{count, items};
use counterproof_artifact::{Href, Manifest, Sha256Digest, Side};
use counterproof_store::confined_path::{self, ResolveError};

/// What a document says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Size(u64),
    Digest(Sha256Digest),
}

/// What the manifest says of one file.
#[derive(Debug, Clone)]
struct Entry {
    asset_id: String,
    href: String,
    size: Option<u64>,
    digest: Option<Sha256Digest>,
}

/// A run folder, to read many artifacts of: it can be shared between threads.
#[derive(Debug)]
pub struct RunFolder {
    path: Utf8PathBuf,
    side: Option<Side>,
    entries: Vec<Entry>,
    by_id: HashMap<String, usize>,
    by_href: HashMap<String, usize>,
    /// The manifest is held against the files by itself, so an artifact that links to one need not repeat it.
    judges_manifest: bool,
    digests: Mutex<HashMap<String, Sha256Digest>>,
}

impl RunFolder {
    /// A run folder of a side, with its manifest, if it has one.
    pub fn new(path: &Utf8Path, side: Side, manifest: Option<&Manifest>) -> Self {
        let entries = manifest.into_iter().flat_map(|manifest| &manifest.items).map(|item| Entry {
            asset_id: item.asset_id.clone(),
            href: item.href.to_string(),
            size: Some(item.size_bytes.get()),
            digest: item.sha256,
        });
        Self::with(path, Some(side), entries.collect())
    }

    /// The same from a manifest that may be broken.
    pub(super) fn of_value(path: &Utf8Path, side: Option<Side>, manifest: Option<&Value>) -> Self {
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
                by_name.entry(name(entry).clone()).or_insert(index);
            }
            by_name
        };
        let (by_id, by_href) = (index(|entry| &entry.asset_id), index(|entry| &entry.href));
        let path = path.to_owned();
        Self { path, side, entries, by_id, by_href, judges_manifest: false, digests: Mutex::default() }
    }

    /// The manifest is held against the files by itself.
    #[must_use]
    pub(super) fn judging_manifest(mut self) -> Self {
        self.judges_manifest = true;
        self
    }

    /// The folder.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    pub(super) const fn side(&self) -> Option<Side> {
        self.side
    }

    pub(super) const fn judges_manifest(&self) -> bool {
        self.judges_manifest
    }

    /// The href of the manifest's entry with this id.
    pub(super) fn listed_href(&self, id: &str) -> Option<&str> {
        self.by_id.get(id).map(|&index| self.entries[index].href.as_str())
    }

    /// What the manifest says of a file.
    pub(super) fn listed_marks(&self, href: &Href) -> impl Iterator<Item = Mark> {
        let entry = self.by_href.get(href.as_str()).map(|&index| &self.entries[index]);
        let size = entry.and_then(|entry| entry.size).map(Mark::Size);
        size.into_iter().chain(entry.and_then(|entry| entry.digest).map(Mark::Digest))
    }

    /// The size of the file that a link leads to.
    pub(super) fn measure(&self, href: &Href) -> Result<u64, ResolveError> {
        let path = confined_path::resolve(&self.path, href.as_str())?;
        path.metadata().map(|metadata| metadata.len()).map_err(|source| failed(href, source))
    }

    /// The digest of the file that a link leads to.
    pub(super) fn digest(&self, href: &Href) -> Result<Sha256Digest, ResolveError> {
        let known = || self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&digest) = known().get(href.as_str()) {
            return Ok(digest);
        }
        let file = confined_path::open(&self.path, href.as_str())?;
        let (digest, _) = Sha256Digest::of_reader(file).map_err(|source| failed(href, source))?;
        known().insert(href.as_str().to_owned(), digest);
        Ok(digest)
    }
}

fn failed(href: &Href, source: std::io::Error) -> ResolveError {
    ResolveError::Io { name: href.to_string(), source }
}
