//! Small pairs of runs: written to disk as any producer would, then compared.
#![expect(clippy::unwrap_used, reason = "a kit for tests fails by panicking, like the tests themselves")]

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, Verdict};
use counterproof_artifact::store::{RunReader, RunWriter};
use counterproof_artifact::write::{self, Durability};
use counterproof_artifact::{AssetKind, CaseId, Run, Side};
use counterproof_cases::CaseSpec;
use counterproof_evaluator::comparison::{self, Request};
use counterproof_evaluator::gate::GateLimits;
use counterproof_evaluator::load::ComparedRun;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The case that most pairs are about.
pub(crate) const CASE: &str = "refund_001";

/// Two run folders under construction.
pub(crate) struct Pair {
    folder: TempDir,
    baseline: RunWriter,
    new: RunWriter,
    selected: [Vec<String>; 2],
    cases: Vec<CaseSpec>,
}

impl Pair {
    /// Two empty run folders.
    pub(crate) fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let out = Utf8Path::from_path(folder.path()).unwrap().join("runs");
        let create = |side, id: &str| RunWriter::create(&out, side, &id.parse().unwrap()).unwrap();
        let (baseline, new) = (create(Side::Baseline, "one"), create(Side::New, "two"));
        Self { folder, baseline, new, selected: [Vec::new(), Vec::new()], cases: Vec::new() }
    }

    /// One case, answered on both sides.
    pub(crate) fn of(baseline: &Value, new: &Value) -> Self {
        Self::empty().with(Side::Baseline, CASE, baseline).with(Side::New, CASE, new)
    }

    /// Adds an artifact, as the bytes of this JSON; id and side are filled in.
    pub(crate) fn with(self, side: Side, case_id: &str, artifact: &Value) -> Self {
        let mut artifact = artifact.clone();
        artifact["case_id"] = json!(case_id);
        artifact["version"] = json!(side);
        let bytes = serde_json::to_vec_pretty(&artifact).unwrap();
        self.with_bytes(side, case_id, &bytes)
    }

    /// Adds a file in an artifact's place.
    pub(crate) fn with_bytes(mut self, side: Side, case_id: &str, bytes: &[u8]) -> Self {
        let path = self.writer(side).folder().join(format!("{case_id}.json"));
        write::write(&path, bytes, Durability::Cached).unwrap();
        self.selected[usize::from(side == Side::New)].push(case_id.to_owned());
        self
    }

    /// Adds an asset to a run.
    pub(crate) fn with_asset(self, side: Side, name: &str, bytes: &[u8]) -> Self {
        let case: CaseId = CASE.parse().unwrap();
        self.writer(side).write_asset(name, AssetKind::FullPayload, Some(&case), bytes).unwrap();
        self
    }

    /// Says what is expected of the case.
    pub(crate) fn expecting(mut self, expected: &Value) -> Self {
        let path = self.path().join("cases.json");
        let cases =
            json!([{"id": CASE, "title": "A refund", "input": {"user": "My money, please"}, "expected": expected}]);
        write::write_json(&path, &cases, Durability::Cached).unwrap();
        self.cases = counterproof_cases::load(&path).unwrap().cases;
        self
    }

    /// The folder that holds everything.
    pub(crate) fn path(&self) -> Utf8PathBuf {
        Utf8PathBuf::try_from(self.folder.path().to_owned()).unwrap()
    }

    fn writer(&self, side: Side) -> &RunWriter {
        if side == Side::Baseline { &self.baseline } else { &self.new }
    }

    /// Finishes the run folders and opens them as a request.
    pub(crate) fn request(&self) -> Request<'_> {
        let open = |writer: &RunWriter, selected: &[String]| {
            let run: Run = serde_json::from_value(json!({
                "schema_version": "run.v1",
                "run_id": writer.folder().file_name(),
                "version": writer.side(),
                "generated_at": "2026-11-20T00:00:00Z",
                "base_url": "http://agent.example",
                "cases_path": "../../../cases.json",
                "out_dir": "../..",
                "selected_case_ids": selected,
                "runner_version": "test/1",
            }))
            .unwrap();
            writer.write_run(&run).unwrap();
            writer.write_manifest("2026-11-20T00:00:00Z").unwrap();
            ComparedRun::new(RunReader::open(writer.folder()).unwrap())
        };
        Request {
            baseline: open(&self.baseline, &self.selected[0]),
            new: open(&self.new, &self.selected[1]),
            cases: &self.cases,
            limits: GateLimits::default(),
        }
    }

    /// Compares the two runs.
    pub(crate) fn evaluation(&self) -> Evaluation {
        comparison::compare::<std::convert::Infallible>(&self.request(), |_| Ok(())).unwrap()
    }

    /// Compares the two runs, and gives what is said of the only case.
    pub(crate) fn row(&self) -> CaseEvaluation {
        let mut cases = self.evaluation().cases;
        assert_eq!(cases.len(), 1, "{cases:?}");
        cases.remove(0)
    }

    /// Asserts the verdict on the only case and the codes of its reasons.
    #[track_caller]
    pub(crate) fn is(&self, verdict: Verdict, codes: &[&str]) -> CaseEvaluation {
        let row = self.row();
        let found: Vec<_> = row.reasons.iter().map(|reason| reason.code.as_str()).collect();
        assert_eq!((row.verdict, &found[..]), (verdict, codes), "{:#?}", row.reasons);
        row
    }
}

/// An answer of the agent: it looks an order up, reads the policy, and proposes a refund that rests on both.
pub(crate) fn answer() -> Value {
    json!({
        "schema_version": "case.v1",
        "status": "ok",
        "attempts": [{"attempt": 1, "started_at": "2026-11-20T00:00:00Z", "latency_ms": 12, "outcome": "ok"}],
        "proposed_actions": [{
            "action_id": "a1",
            "action_type": "refund",
            "tool_name": "refund_order",
            "params": {"order_id": "W12", "amount": 50},
            "risk_level": "low",
            "risk_tags": ["money", "write"],
            "evidence_refs": [{"kind": "tool_result", "call_id": "c1"}, {"kind": "retrieval_doc", "doc_id": "policy_v1"}],
        }],
        "events": [
            {"type": "tool_call", "ts": 1000, "call_id": "c1", "tool": "get_order", "args": {"order_id": "W12"}},
            {"type": "tool_result", "ts": 1100, "call_id": "c1", "status": "ok", "latency_ms": 80, "payload_summary": {"total": 50}},
            {"type": "retrieval", "ts": 1200, "query": "refund policy", "doc_ids": ["policy_v1"]},
            {"type": "final_output", "ts": 1300, "content_type": "text", "content": "Your refund of 50 is on its way."},
        ],
        "final_output": {"content_type": "text", "content": "Your refund of 50 is on its way."},
    })
}

/// The answer with one thing changed.
pub(crate) fn answer_with(change: impl FnOnce(&mut Value)) -> Value {
    let mut answer = answer();
    change(&mut answer);
    answer
}

/// A runner failure.
pub(crate) fn failure() -> Value {
    json!({
        "schema_version": "case.v1",
        "status": "runner_error",
        "runner_failure": {
            "class": "http_error", "status": 500, "url": "http://agent.example/run-case", "attempt": 3,
            "body_snippet": null, "full_body_saved_to": null,
        },
    })
}
