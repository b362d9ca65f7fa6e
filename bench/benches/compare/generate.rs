//! Two run folders of made-up artifacts, as a runner would have left them behind.

use std::sync::Mutex;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Sha256Digest, Side};
use counterproof_bench::Outcome;
use counterproof_store::write::{self, Durability};
use counterproof_store::{ASSETS_FOLDER, MANIFEST_FILE, RUN_FILE};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::agent::{self, Part};

const GENERATED_AT: &str = "2026-03-03T08:00:00.000Z";

/// The run folder of a side below `root`.
pub(crate) fn run_folder(root: &Utf8Path, side: Side) -> Utf8PathBuf {
    root.join("runs").join(side.as_str()).join(format!("bench-{side}"))
}

/// Writes both run folders; the same seed and count give the same bytes.
pub(crate) fn write_runs(root: &Utf8Path, seed: u64, cases: usize) -> Outcome {
    Side::BOTH.into_iter().try_for_each(|side| write_run(&run_folder(root, side), side, seed, cases))
}

fn write_run(folder: &Utf8Path, side: Side, seed: u64, cases: usize) -> Outcome {
    write::create_folder(&folder.join(ASSETS_FOLDER))?;
    let assets = Assets { folder, items: Mutex::default() };
    let failed: Vec<bool> = (0..cases)
        .into_par_iter()
        .map(|index| write_case(&assets, Part { seed, index, side }).map_err(|error| error.to_string()))
        .collect::<Result<_, _>>()?;
    let failures = failed.iter().filter(|failed| **failed).count();
    let run = json!({
        "schema_version": "run.v1", "run_id": folder.file_name(), "version": side, "generated_at": GENERATED_AT,
        "base_url": "http://agent.example", "cases_path": "../../../cases.json", "out_dir": "../..",
        "selected_case_ids": (0..cases).map(case_id).collect::<Vec<_>>(), "runner_version": "bench/1",
        "stats": {"cases_total": cases, "cases_completed": cases - failures, "cases_failed": failures, "duration_ms": 60_000},
    });
    write::write_json(&folder.join(RUN_FILE), &run, Durability::Cached)?;
    let mut items = assets.items.into_inner()?;
    items.sort_by(|a, b| a["href"].as_str().cmp(&b["href"].as_str()));
    let manifest = json!({"schema_version": "assets-manifest.v1", "generated_at": GENERATED_AT, "items": items});
    Ok(write::write_json(&folder.join(MANIFEST_FILE), &manifest, Durability::Cached)?)
}

fn case_id(index: usize) -> String {
    format!("order_question_{index:06}")
}

/// Writes one artifact with its assets; true where it is a failure.
fn write_case(assets: &Assets<'_>, part: Part) -> Outcome<bool> {
    let case_id = case_id(part.index);
    let fails = agent::fails(part);
    let artifact = if fails { failed(assets, part, &case_id)? } else { answered(assets, part, &case_id)? };
    write::write_json(&assets.folder.join(format!("{case_id}.json")), &artifact, Durability::Cached)?;
    Ok(fails)
}

fn answered(assets: &Assets<'_>, part: Part, case_id: &str) -> Outcome<Value> {
    let (mut artifact, payload) = agent::answer(part, case_id);
    if let Some(payload) = payload {
        let name = format!("full_payload_{case_id}.json");
        let (href, digest) = assets.write(&name, "full_payload", part.side, case_id, &payload.value)?;
        artifact["events"][payload.event]["payload_asset_href"] = json!(href);
        artifact["events"][payload.event]["payload_asset_sha256"] = json!(digest);
    }
    Ok(artifact)
}

fn failed(assets: &Assets<'_>, part: Part, case_id: &str) -> Outcome<Value> {
    let mut artifact = agent::failure(part, case_id);
    let body = agent::failure_body(part);
    let (href, digest) =
        assets.write(&format!("{case_id}.attempt1.body.txt"), "full_body", part.side, case_id, &body)?;
    let size = bytes_of(&body)?.len();
    let meta = json!({
        "schema_version": "failure-meta.v1", "case_id": case_id, "version": part.side, "class": "http_error",
        "content_type": "application/json", "encoding": null, "bytes_written": size, "bytes_total": size,
        "truncated": false, "sha256": digest,
    });
    let (meta, _) =
        assets.write(&format!("{case_id}.attempt1.meta.json"), "failure_meta", part.side, case_id, &meta)?;
    let failure = &mut artifact["runner_failure"];
    failure["body_snippet"] = json!(body.to_string());
    failure["full_body_saved_to"] = json!(href);
    failure["full_body_meta_saved_to"] = json!(meta);
    Ok(artifact)
}

/// The assets of one run, and their entries in its manifest.
struct Assets<'a> {
    folder: &'a Utf8Path,
    items: Mutex<Vec<Value>>,
}

impl Assets<'_> {
    /// Writes an asset; gives its href and digest.
    fn write(&self, name: &str, kind: &str, side: Side, case_id: &str, content: &Value) -> Outcome<(String, String)> {
        let href = format!("{ASSETS_FOLDER}/{name}");
        let bytes = bytes_of(content)?;
        let digest = Sha256Digest::from_bytes(&bytes).to_string();
        write::write(&self.folder.join(&href), &bytes, Durability::Cached)?;
        let item = json!({
            "asset_id": name, "href": href, "kind": kind, "case_id": case_id, "side": side,
            "size_bytes": bytes.len(), "sha256": digest,
        });
        self.items.lock().map_err(|_| "a thread panicked")?.push(item);
        Ok((href, digest))
    }
}

fn bytes_of(content: &Value) -> Outcome<Vec<u8>> {
    Ok(serde_json::to_vec_pretty(content)?)
}
