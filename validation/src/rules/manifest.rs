//! Rules for `assets/manifest.json`, alone and against the files under `assets/`.

use std::collections::{HashMap, HashSet};

use rayon::prelude::*;
use serde_json::Value;

use crate::Code;
use crate::excerpt::quote;
use crate::finding::Findings;
use crate::json_value::{count, items};
use crate::rules::hrefs;
use crate::rules::names;
use crate::rules::schema;
use crate::run_folder::{RecordedValue, RunFolder};
use counterproof_artifact::Href;
use counterproof_artifact::escape_invisible;
use counterproof_artifact::schema::Kind;
use counterproof_store::confined_path::ResolveError;

/// Checks the document alone. Returns false where it is another kind of document.
pub(crate) fn check(manifest: &Value, findings: &mut Findings) -> bool {
    if !schema::check(Kind::AssetsManifest, manifest, findings) {
        return false;
    }
    names::time(&manifest["generated_at"], "/generated_at", findings);
    for (index, item) in items(manifest, "items") {
        names::case_id(&item["case_id"], &format!("/items/{index}/case_id"), findings);
    }
    for field in ["asset_id", "href"] {
        let mut first: HashMap<&str, usize> = HashMap::new();
        for (index, item) in items(manifest, "items") {
            let Some(name) = item[field].as_str() else { continue };
            if let Some(earlier) = first.get(name) {
                let message = format!("the {field} {} is already used at `/items/{earlier}`", quote(name));
                let expected = format!("a unique {field}");
                findings.add(Code::DuplicateAsset, format!("/items/{index}/{field}"), message, expected);
            } else {
                first.insert(name, index);
            }
        }
    }
    true
}

/// Checks the entries against their files. Hashes the files in parallel.
pub(crate) fn check_folder(manifest: &Value, folder: &RunFolder, findings: &mut Findings) {
    let hashed: Vec<Href> = items(manifest, "items")
        .filter(|(_, item)| item["sha256"].is_string())
        .filter_map(|(_, item)| item["href"].as_str()?.parse().ok())
        .collect();
    // Fills the cache of digests. An error occurs again below and becomes a finding there.
    hashed.par_iter().for_each(|href| drop(folder.digest(href)));

    for (index, item) in items(manifest, "items") {
        let at = |field: &str| format!("/items/{index}/{field}");
        if let Some(side) = folder.side() {
            names::side(&item["side"], &at("side"), side, "run", findings);
        }
        let Some(href) = hrefs::parse_asset(&item["href"], &at("href"), findings) else { continue };
        match folder.measure(&href) {
            Ok(_) => {
                if let Some(size) = count(&item["size_bytes"]) {
                    hrefs::compare(&href, RecordedValue::Size(size), &at("size_bytes"), folder, findings);
                }
                if let Some(digest) = item["sha256"].as_str().and_then(|text| text.parse().ok()) {
                    hrefs::compare(&href, RecordedValue::Digest(digest), &at("sha256"), folder, findings);
                }
            }
            Err(ResolveError::Missing { .. } | ResolveError::NotAFile { .. }) => {
                let message = format!("{} does not exist", quote(href.as_str()));
                findings.add(Code::ManifestEntryStale, at("href"), message, "a file at this path in the run folder");
            }
            Err(error @ ResolveError::Escapes { .. }) => {
                findings.add(
                    Code::HrefEscapes,
                    at("href"),
                    escape_invisible(&error.to_string()),
                    "a file within the run folder",
                );
            }
            Err(error @ ResolveError::Io { .. }) => {
                findings.add(
                    Code::Unreadable,
                    at("href"),
                    escape_invisible(&error.to_string()),
                    "a file that can be read",
                );
            }
        }
    }
}

/// Checks that every file under `assets/`, given as an href, has an entry.
pub(crate) fn check_files(manifest: &Value, files: &[String], findings: &mut Findings) {
    let listed: HashSet<&str> = items(manifest, "items").filter_map(|(_, item)| item["href"].as_str()).collect();
    for file in files.iter().filter(|file| !listed.contains(file.as_str())) {
        let message = format!("{} is not listed", quote(file));
        findings.add(Code::ManifestEntryMissing, "/items", message, format!("an entry with the href {}", quote(file)));
    }
}
