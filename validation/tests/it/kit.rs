//! A small valid run folder in a temporary folder, and functions that change it.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{AssetKind, Case, CaseId, Run, Sha256Digest, Side};
use counterproof_store::RunWriter;
use counterproof_store::write::{self, Durability};
use counterproof_validation::{Code, Finding, Report, validate_path};
use serde_json::{Value, json};

/// `runs/new/r1` below a temporary folder: an answer with every kind of event and evidence, and an HTTP error with its body.
pub(crate) struct Kit {
    directory: tempfile::TempDir,
    pub(crate) folder: Utf8PathBuf,
}

impl Kit {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let out = Utf8Path::from_path(directory.path()).unwrap().join("runs");
        let writer = RunWriter::create(&out, Side::New, &"r1".parse().unwrap()).unwrap();
        let (answer, failed): (CaseId, CaseId) = ("answer".parse().unwrap(), "failed".parse().unwrap());
        writer.write_asset("payload.json", AssetKind::FullPayload, Some(&answer), b"{\"rows\": 1}").unwrap();
        writer.write_asset("snippets.json", AssetKind::RetrievalSnippets, Some(&answer), b"[]").unwrap();
        writer.write_asset("failed.body.txt", AssetKind::FullBody, Some(&failed), b"oops").unwrap();
        let meta = json!({
            "schema_version": "failure-meta.v1", "case_id": "failed", "version": "new", "class": "http_error",
            "content_type": "text/plain", "encoding": null, "bytes_written": 4, "bytes_total": 4, "truncated": false,
            "sha256": Sha256Digest::from_bytes(b"oops").to_string()
        });
        let meta = serde_json::to_vec_pretty(&meta).unwrap();
        writer.write_asset("failed.meta.json", AssetKind::FailureMeta, Some(&failed), &meta).unwrap();
        for document in [answer_document(), failed_document()] {
            writer.write_case(&serde_json::from_value::<Case>(document).unwrap()).unwrap();
        }
        writer.write_manifest("2026-01-31T12:00:09Z").unwrap();
        writer.write_run(&serde_json::from_value::<Run>(run_document()).unwrap()).unwrap();
        let folder = writer.folder().to_owned();
        let kit = Self { directory, folder };
        kit.write("evaluation.json", evaluation_document().to_string().as_bytes());
        kit
    }

    /// The temporary folder, the parent of `runs`.
    pub(crate) fn root(&self) -> &Utf8Path {
        Utf8Path::from_path(self.directory.path()).unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> Utf8PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        write::write(&self.path(name), bytes, Durability::Cached).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(name)).unwrap()).unwrap()
    }

    /// Changes a document of the folder.
    pub(crate) fn edit(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut document = self.read(name);
        change(&mut document);
        write::write_json(&self.path(name), &document, Durability::Cached).unwrap();
    }

    /// Sets one value of a document.
    pub(crate) fn set(&self, name: &str, pointer: &str, value: Value) {
        self.edit(name, |document| *document.pointer_mut(pointer).unwrap() = value);
    }

    pub(crate) fn remove(&self, name: &str) {
        std::fs::remove_file(self.path(name)).unwrap();
    }

    pub(crate) fn check(&self) -> Report {
        validate_path(&self.folder).unwrap()
    }

    /// Returns the code, file and pointer of each finding in the run folder.
    pub(crate) fn found(&self) -> Vec<(Code, String, String)> {
        let place = |finding: Finding| {
            let file = finding.file.strip_prefix(&self.folder).map_or(finding.file.clone(), Utf8Path::to_owned);
            (finding.code, file.to_string(), finding.pointer)
        };
        self.check().findings.into_iter().map(place).collect()
    }
}

pub(crate) fn run_document() -> Value {
    json!({
        "schema_version": "run.v1", "run_id": "r1", "version": "new", "generated_at": "2026-01-31T12:00:00Z",
        "base_url": "http://127.0.0.1:8787", "cases_path": "../../../cases.json", "out_dir": "../..",
        "cases_path_as_passed": "cases.json",
        "selected_case_ids": ["answer", "failed"], "runner_version": "counterproof 0.1.0", "timeout_ms": 15000.0,
        "retries": 2.0, "retry_policy": {"classes": ["timeout", "http_5xx"], "backoff": "exponential", "jitter": true},
        "limits": {"max_body_bytes": 2_000_000}, "later": {"unknown": null},
        "stats": {"cases_total": 2, "cases_completed": 1, "cases_failed": 1, "duration_ms": 900}
    })
}

pub(crate) fn answer_document() -> Value {
    json!({
        "schema_version": "case.v1", "case_id": "answer", "version": "new", "status": "ok", "workflow_id": "refunds",
        "attempts": [
            {"attempt": 1, "started_at": "2026-01-31T12:00:00Z", "outcome": "runner_error", "error_class": "timeout"},
            {"attempt": 2, "started_at": "2026-01-31T12:00:01.5+01:00", "latency_ms": 12.5, "outcome": "ok"}
        ],
        "proposed_actions": [{
            "action_id": "a1", "action_type": "refund", "tool_name": "refund", "params": {"amount": 5},
            "risk_level": "high", "risk_tags": ["money"],
            "evidence_refs": [
                {"kind": "tool_result", "call_id": "c1"}, {"kind": "retrieval_doc", "doc_id": "d1"},
                {"kind": "event", "id": "events[0]"}, {"kind": "asset", "id": "payload.json"},
                {"kind": "asset", "id": "assets/snippets.json"}
            ]
        }],
        "events": [
            {"type": "tool_call", "ts": 1, "call_id": "c1", "tool": "find", "args": {}, "risk_level": "low"},
            {
                "type": "tool_result", "ts": 2, "call_id": "c1", "status": "ok", "latency_ms": 5,
                "payload_summary": {"rows": 1}, "payload_asset_href": "assets/payload.json",
                "payload_asset_sha256": Sha256Digest::from_bytes(b"{\"rows\": 1}").to_string()
            },
            {
                "type": "retrieval", "ts": 3, "query": "policy", "doc_ids": ["d1"],
                "snippets_asset_href": "assets/snippets.json"
            },
            {"type": "thought", "ts": 4, "text": "unknown types are preserved", "nothing": null},
            {"type": "final_output", "ts": 5, "content_type": "text", "content": "done"}
        ],
        "final_output": {"content_type": "text", "content": "done", "later": [1]}
    })
}

pub(crate) fn failed_document() -> Value {
    json!({
        "schema_version": "case.v1", "case_id": "failed", "version": "new", "status": "runner_error",
        "runner_failure": {
            "class": "http_error", "url": "http://127.0.0.1:8787/run-case", "attempt": 1, "timeout_ms": 15000,
            "status": 500, "body_snippet": "oops", "full_body_saved_to": "assets/failed.body.txt",
            "full_body_meta_saved_to": "assets/failed.meta.json"
        }
    })
}

pub(crate) fn evaluation_document() -> Value {
    let run = json!({
        "run_id": "r1", "generated_at": "2026-01-31T12:00:00Z", "runner_version": "counterproof 0.1.0",
        "cases_selected": 2
    });
    json!({
        "schema_version": "evaluation.v1", "evaluator_version": "counterproof 0.1.0", "baseline": run, "new": run,
        "counts": {"unchanged": 1.0, "still_broken": 1},
        "gate": {
            "passed": true, "outcome": "passed",
            "rules": [{"code": "regressed", "bound": "at_most", "limit": 0, "actual": 0, "passed": true}]
        },
        "cases": [
            {"case_id": "answer", "verdict": "unchanged", "reasons": []},
            {"case_id": "failed", "verdict": "still_broken", "reasons": [
                {"code": "both-failed", "message": "neither could be run", "pointers": [{"side": "new", "pointer": "/status"}]}
            ]}
        ]
    })
}
