//! Small run folders, built artifact by artifact, and the report of a pair of them.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::Evaluation;
use counterproof_artifact::store::{RunReader, RunWriter};
use counterproof_artifact::write::{self, Durability};
use counterproof_artifact::{AssetKind, CaseId, Run, Side};
use counterproof_cases::CaseSpec;
use counterproof_evaluator::comparison::{self, Request};
use counterproof_evaluator::gate::GateLimits;
use counterproof_evaluator::load::ComparedRun;
use counterproof_evaluator::report::{ReportError, ReportWriter};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with a run of each side, gone when dropped.
pub(crate) struct Pair {
    folder: TempDir,
    runs: [RunWriter; 2],
}

impl Pair {
    /// Two runs that selected the cases and have no artifact yet.
    pub(crate) fn selecting(ids: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let out = Utf8Path::from_path(folder.path()).unwrap().join("runs");
        let runs = Side::BOTH.map(|side| {
            let run = RunWriter::create(&out, side, &format!("{side}-run").parse().unwrap()).unwrap();
            run.write_run(&run_document(side, ids)).unwrap();
            run
        });
        Self { folder, runs }
    }

    /// Where the runs and the reports are.
    pub(crate) fn root(&self) -> &Utf8Path {
        Utf8Path::from_path(self.folder.path()).unwrap()
    }

    /// A side's run folder.
    pub(crate) fn folder(&self, side: Side) -> &Utf8Path {
        self.run(side).folder()
    }

    fn run(&self, side: Side) -> &RunWriter {
        &self.runs[usize::from(side == Side::New)]
    }

    /// Writes an artifact as it is, whether it keeps to the contract or not.
    pub(crate) fn artifact(&self, side: Side, id: &str, artifact: &Value) -> &Self {
        let path = self.folder(side).join(format!("{id}.json"));
        write::write_json(&path, artifact, Durability::Cached).unwrap();
        self
    }

    /// Writes the same answer on both sides.
    pub(crate) fn answers(&self, id: &str, answer: &Value) -> &Self {
        for side in Side::BOTH {
            self.artifact(side, id, &answered(side, id, answer));
        }
        self
    }

    /// Writes an asset.
    pub(crate) fn asset(&self, side: Side, name: &str, bytes: &[u8]) -> &Self {
        self.run(side).write_asset(name, AssetKind::Other, None, bytes).unwrap();
        self
    }

    /// Writes a file under a name that this program's own writer refuses.
    pub(crate) fn foreign_asset(&self, side: Side, name: &str, bytes: &[u8]) -> &Self {
        let assets = self.folder(side).join("assets");
        write::create_folder(&assets).unwrap();
        write::write(&assets.join(name), bytes, Durability::Cached).unwrap();
        self
    }

    /// Compares the two runs and writes the report into `out`.
    pub(crate) fn try_report(&self, cases: &[CaseSpec], out: &Utf8Path) -> Result<Evaluation, ReportError> {
        let open = |side| ComparedRun::new(RunReader::open(self.folder(side)).unwrap());
        let (baseline, new) = (open(Side::Baseline), open(Side::New));
        let request = Request { baseline, new, cases, limits: GateLimits::default() };
        let report = ReportWriter::create(out, &request)?;
        let evaluation = comparison::compare(&request, |case| report.write_case(case)).unwrap();
        assert_eq!(report.finish(&evaluation)?, out.join("index.html"));
        Ok(evaluation)
    }

    /// The report of the two runs.
    pub(crate) fn report(&self) -> Utf8PathBuf {
        self.report_with(&[])
    }

    /// The report of the two runs, with the cases that were asked.
    pub(crate) fn report_with(&self, cases: &[CaseSpec]) -> Utf8PathBuf {
        let out = self.root().join("report");
        self.try_report(cases, &out).unwrap();
        out
    }
}

fn run_document(side: Side, ids: &[&str]) -> Run {
    serde_json::from_value(json!({
        "schema_version": "run.v1",
        "run_id": format!("{side}-run"),
        "version": side,
        "generated_at": "2026-01-31T12:00:00Z",
        "base_url": "http://127.0.0.1:8787",
        "cases_path": "../../../cases.json",
        "out_dir": "../..",
        "selected_case_ids": ids,
        "runner_version": "test/1",
        "model": if side == Side::New { "large-2" } else { "large-1" },
    }))
    .unwrap()
}

/// An artifact with an answer; what `answer` does not say is empty.
pub(crate) fn answered(side: Side, id: &str, answer: &Value) -> Value {
    let mut artifact = json!({
        "schema_version": "case.v1",
        "case_id": id,
        "version": side,
        "status": "ok",
        "proposed_actions": [],
        "events": [],
        "final_output": {"content_type": "text", "content": "Done."},
    });
    for (key, value) in answer.as_object().unwrap() {
        artifact[key] = value.clone();
    }
    artifact
}

/// An artifact without an answer.
pub(crate) fn failed(side: Side, id: &str, failure: &Value) -> Value {
    let mut artifact = json!({
        "schema_version": "case.v1",
        "case_id": id,
        "version": side,
        "status": "runner_error",
        "attempts": [
            {"attempt": 1, "started_at": "2026-01-31T12:00:00Z", "outcome": "runner_error", "error_class": "http_error"},
        ],
        "runner_failure": {
            "class": "http_error",
            "url": "http://127.0.0.1:8787/run-case",
            "attempt": 1,
            "status": 500,
            "body_snippet": null,
            "full_body_saved_to": null,
        },
    });
    for (key, value) in failure.as_object().unwrap() {
        artifact["runner_failure"][key] = value.clone();
    }
    artifact
}

/// A call of a tool and its result, one after the other.
pub(crate) fn step(call_id: &str, tool: &str, args: &Value, payload: &Value) -> [Value; 2] {
    [
        json!({"type": "tool_call", "ts": 1000, "call_id": call_id, "tool": tool, "args": args}),
        json!({
            "type": "tool_result",
            "ts": 1500,
            "call_id": call_id,
            "status": "ok",
            "latency_ms": 12,
            "payload_summary": payload,
        }),
    ]
}

/// A proposed action that rests on the results of calls.
pub(crate) fn action(id: &str, tool: &str, params: &Value, call_ids: &[&str]) -> Value {
    let refs: Vec<_> = call_ids.iter().map(|id| json!({"kind": "tool_result", "call_id": id})).collect();
    json!({
        "action_id": id,
        "action_type": "write",
        "tool_name": tool,
        "params": params,
        "risk_level": "high",
        "risk_tags": [],
        "evidence_refs": refs,
    })
}

/// A case of the cases file.
pub(crate) fn spec(id: &str, title: &str) -> CaseSpec {
    let id: CaseId = id.parse().unwrap();
    CaseSpec {
        id,
        title: Some(title.to_owned()),
        input: counterproof_cases::Input { user: "Help me.".to_owned(), context: None, extra: Default::default() },
        expected: Default::default(),
        metadata: Default::default(),
        suite: None,
        extra: Default::default(),
    }
}
