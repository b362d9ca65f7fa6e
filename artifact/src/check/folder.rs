//! A run folder as the rules see it: its side, what its manifest lists, and what lies under `assets/`. Files are measured
//! when a rule asks for them, and each is hashed at most once.

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use super::value::{count, items};
use crate::{Href, Manifest, ResolveError, Sha256Digest, Side};

/// What a document says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Size(u64),
    Digest(Sha256Digest),
}

/// What the manifest says of one file.
#[derive(Debug, Clone)]
struct Entry<'m> {
    asset_id: &'m str,
    href: &'m str,
    size: Option<u64>,
    digest: Option<Sha256Digest>,
}

/// A run folder, to read many artifacts of.
#[derive(Debug)]
pub struct RunFolder<'m> {
    path: Utf8PathBuf,
    side: Option<Side>,
    entries: Vec<Entry<'m>>,
    /// Entries by their id and by their href.
    by_name: HashMap<&'m str, usize>,
    /// The manifest is held against the files by itself, so an artifact that links to one need not repeat it.
    judges_manifest: bool,
    digests: Mutex<HashMap<String, Sha256Digest>>,
}

impl<'m> RunFolder<'m> {
    /// A run folder of a side, with its manifest, if it has one.
    pub fn new(path: &Utf8Path, side: Side, manifest: Option<&'m Manifest>) -> Self {
        let entries = manifest.into_iter().flat_map(|manifest| &manifest.items).map(|item| Entry {
            asset_id: &item.asset_id,
            href: item.href.as_str(),
            size: Some(item.size_bytes.get()),
            digest: item.sha256,
        });
        Self::with(path, Some(side), entries.collect())
    }

    /// The same from a manifest that may be broken.
    pub(super) fn of_value(path: &Utf8Path, side: Option<Side>, manifest: Option<&'m Value>) -> Self {
        let entries = manifest.into_iter().flat_map(|manifest| items(manifest, "items")).map(|(_, item)| Entry {
            asset_id: item["asset_id"].as_str().unwrap_or_default(),
            href: item["href"].as_str().unwrap_or_default(),
            size: count(&item["size_bytes"]),
            digest: item["sha256"].as_str().and_then(|text| text.parse().ok()),
        });
        Self::with(path, side, entries.collect())
    }

    fn with(path: &Utf8Path, side: Option<Side>, entries: Vec<Entry<'m>>) -> Self {
        let mut by_name = HashMap::with_capacity(2 * entries.len());
        for (index, entry) in entries.iter().enumerate() {
            by_name.entry(entry.asset_id).or_insert(index);
            by_name.entry(entry.href).or_insert(index);
        }
        Self { path: path.to_owned(), side, entries, by_name, judges_manifest: false, digests: Mutex::default() }
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

    /// True where the manifest has an entry with this id or href.
    pub(super) fn lists(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// What the manifest says of a file.
    pub(super) fn listed_marks(&self, href: &Href) -> impl Iterator<Item = Mark> {
        let entry = self.by_name.get(href.as_str()).map(|&index| &self.entries[index]);
        let entry = entry.filter(|entry| entry.href == href.as_str());
        let size = entry.and_then(|entry| entry.size).map(Mark::Size);
        size.into_iter().chain(entry.and_then(|entry| entry.digest).map(Mark::Digest))
    }

    /// The size of the file that a link leads to.
    pub(super) fn measure(&self, href: &Href) -> Result<u64, ResolveError> {
        let path = href.resolve(&self.path)?;
        path.metadata().map(|metadata| metadata.len()).map_err(|source| ResolveError::Io { href: href.clone(), source })
    }

    /// The digest of the file that a link leads to.
    pub(super) fn digest(&self, href: &Href) -> Result<Sha256Digest, ResolveError> {
        let known = || self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&digest) = known().get(href.as_str()) {
            return Ok(digest);
        }
        let path = href.resolve(&self.path)?;
        let (digest, _) = File::open(&path)
            .and_then(Sha256Digest::of_reader)
            .map_err(|source| ResolveError::Io { href: href.clone(), source })?;
        known().insert(href.as_str().to_owned(), digest);
        Ok(digest)
    }
}
