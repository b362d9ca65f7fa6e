//! Small pairs of runs: written to disk as any producer would, then compared.
#![expect(clippy::unwrap_used, reason = "a kit for tests fails by panicking, like the tests themselves")]

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Mutex;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, Verdict};
use counterproof_artifact::{AssetKind, CaseId, Run, Side};
use counterproof_cases::{CaseSpec, Shard};
use counterproof_evaluator::{
    ComparedRun, Differences, Expectations, GateRules, Request, RuleTables, Rules, ShardFacts, SignalSettings,
    Thresholds,
};
use counterproof_store::write::{self, Durability};
use counterproof_store::{RunReader, RunWriter};
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
    rules: Rules,
    signals: SignalSettings,
    /// Fields of each run document.
    fields: [serde_json::Map<String, Value>; 2],
    /// The cases whose input is another one on new.
    edited: Vec<String>,
}

impl Pair {
    /// Two empty run folders.
    pub(crate) fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let out = Utf8Path::from_path(folder.path()).unwrap().join("runs");
        let create = |side, id: &str| RunWriter::create(&out, side, &id.parse().unwrap()).unwrap();
        let (baseline, new) = (create(Side::Baseline, "one"), create(Side::New, "two"));
        Self {
            folder,
            baseline,
            new,
            selected: [Vec::new(), Vec::new()],
            cases: Vec::new(),
            rules: Rules::default(),
            signals: SignalSettings::default(),
            fields: Default::default(),
            edited: Vec::new(),
        }
    }

    /// One case, answered on both sides.
    pub(crate) fn with_answers(baseline: &Value, new: &Value) -> Self {
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

    /// Sets a field of a run document.
    pub(crate) fn with_field(mut self, side: Side, name: &str, value: Value) -> Self {
        self.fields[usize::from(side == Side::New)].insert(name.to_owned(), value);
        self
    }

    /// Edits the input of a case after the baseline was made. The runner recorded what it asked.
    pub(crate) fn editing(mut self, case_id: &str) -> Self {
        self.edited.push(case_id.to_owned());
        self
    }

    /// Adds an asset to a run.
    pub(crate) fn with_asset(self, side: Side, name: &str, bytes: &[u8]) -> Self {
        let case: CaseId = CASE.parse().unwrap();
        self.writer(side).write_asset(name, AssetKind::FullPayload, Some(&case), bytes).unwrap();
        self
    }

    /// Adds an asset under a name that this program's own writer refuses.
    pub(crate) fn with_foreign_asset(self, side: Side, name: &str, bytes: &[u8]) -> Self {
        let assets = self.writer(side).folder().join("assets");
        write::create_folder(&assets).unwrap();
        write::write(&assets.join(name), bytes, Durability::Cached).unwrap();
        self
    }

    /// Adds labels to a run: which cases its agent solved.
    pub(crate) fn labelled(self, side: Side, solved: &Value) -> Self {
        let labels = json!({"schema_version": "labels.v1", "solved": solved});
        write::write_json(&self.writer(side).folder().join("labels.json"), &labels, Durability::Cached).unwrap();
        self
    }

    /// Lets both runs select a case that neither has an artifact of.
    pub(crate) fn selecting(mut self, case_id: &str) -> Self {
        self.selected.iter_mut().for_each(|ids| ids.push(case_id.to_owned()));
        self
    }

    /// Gives every case a title.
    pub(crate) fn titled(mut self, title: &str) -> Self {
        let path = self.path().join("cases.json");
        let mut ids = self.selected.concat();
        ids.sort_unstable();
        ids.dedup();
        let case = |id: &String| json!({"id": id, "title": title, "input": {"user": title}});
        write::write_json(&path, &ids.iter().map(case).collect::<Vec<_>>(), Durability::Cached).unwrap();
        self.cases = counterproof_cases::load(&path).unwrap().cases;
        self
    }

    /// Says what is expected of the case.
    pub(crate) fn expecting(self, expected: &Value) -> Self {
        self.of_case(&json!({"title": "A refund", "input": {"user": "My money, please"}, "expected": expected}))
    }

    /// Sets the case of the cases file; its id is filled in.
    pub(crate) fn of_case(mut self, case: &Value) -> Self {
        let path = self.path().join("cases.json");
        let mut case = case.clone();
        case["id"] = json!(CASE);
        let cases = json!([case]);
        write::write_json(&path, &cases, Durability::Cached).unwrap();
        self.cases = counterproof_cases::load(&path).unwrap().cases;
        self
    }

    /// Compares by these rules.
    pub(crate) fn under(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Trusts these domains only.
    pub(crate) fn trusting(mut self, domains: &str) -> Self {
        self.signals = toml::from_str(&format!("trusted_domains = [{domains}]")).unwrap();
        self
    }

    /// The folder that holds everything.
    pub(crate) fn path(&self) -> Utf8PathBuf {
        Utf8PathBuf::try_from(self.folder.path().to_owned()).unwrap()
    }

    /// A side's run folder.
    pub(crate) fn folder(&self, side: Side) -> &Utf8Path {
        self.writer(side).folder()
    }

    fn writer(&self, side: Side) -> &RunWriter {
        if side == Side::Baseline { &self.baseline } else { &self.new }
    }

    /// Finishes the run folders and opens them as a request.
    pub(crate) fn request(&self) -> Request<'_> {
        Request {
            baseline: self.finished(Side::Baseline).into(),
            new: self.finished(Side::New).into(),
            cases: &self.cases,
            expectations: Expectations::compile(&self.cases).unwrap(),
            rules: self.rules.clone(),
            limits: GateRules::default(),
            thresholds: Thresholds::default(),
            is_deterministic: false,
            signals: self.signals.clone(),
            is_alone: false,
        }
    }

    /// Finishes a run folder. With a cases file, the runner recorded what it asked.
    pub(crate) fn finished(&self, side: Side) -> ComparedRun {
        let selected = &self.selected[usize::from(side == Side::New)];
        let digest = |id: &String| if side == Side::New && self.edited.contains(id) { "2" } else { "1" }.repeat(64);
        let digests: serde_json::Map<_, _> = selected.iter().map(|id| (id.clone(), json!(digest(id)))).collect();
        let mut fields = Value::from(self.fields[usize::from(side == Side::New)].clone());
        if !self.cases.is_empty() || !self.edited.is_empty() {
            fields["case_digests"] = digests.into();
        }
        finished_with(self.writer(side), selected, &fields)
    }

    /// Compares the two runs.
    pub(crate) fn evaluation(&self) -> Evaluation {
        compare(&self.request())
    }

    /// Compares the two runs, and gives all in which the answers to the only case differ.
    pub(crate) fn differences(&self) -> Differences {
        let found = Mutex::new(None);
        counterproof_evaluator::compare::<Infallible>(&self.request(), |case| {
            found.lock().unwrap().clone_from(&case.differences);
            Ok(())
        })
        .unwrap();
        found.into_inner().unwrap().unwrap()
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

/// Compares in one process, and in shards, which must give the same bytes.
#[track_caller]
pub(crate) fn compare(request: &Request<'_>) -> Evaluation {
    let evaluation = counterproof_evaluator::compare::<Infallible>(request, |_| Ok(())).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let folder = Utf8Path::from_path(folder.path()).unwrap();
    for index in 1..=SHARDS {
        counterproof_evaluator::write_shard_facts(request, Shard::new(index, SHARDS).unwrap(), folder).unwrap();
    }
    let facts = ShardFacts::read(request, folder).unwrap();
    let from_facts = facts.compare::<Infallible>(|_| false, |_| Ok(())).unwrap();
    let text = |evaluation: &Evaluation| serde_json::to_string_pretty(evaluation).unwrap();
    assert!(text(&evaluation) == text(&from_facts), "{}\n{}", text(&evaluation), text(&from_facts));
    evaluation
}

const SHARDS: u32 = 3;

/// Finishes a run folder and opens it.
pub(crate) fn finished(writer: &RunWriter, selected: &[String]) -> ComparedRun {
    finished_with(writer, selected, &json!({}))
}

fn finished_with(writer: &RunWriter, selected: &[String], fields: &Value) -> ComparedRun {
    let document = json!({
        "schema_version": "run.v1",
        "run_id": writer.folder().file_name(),
        "version": writer.side(),
        "generated_at": "2026-11-20T00:00:00Z",
        "base_url": "http://agent.example",
        "cases_path": "../../../cases.json",
        "out_dir": "../..",
        "selected_case_ids": selected,
        "runner_version": "test/1",
        "model": "model-1",
    });
    let run: Run = serde_json::from_value(with_fields(document, fields)).unwrap();
    writer.write_run(&run).unwrap();
    writer.write_manifest("2026-11-20T00:00:00Z").unwrap();
    ComparedRun::new(RunReader::open(writer.folder()).unwrap())
}

/// Rules of comparison, each written as a `[[rule]]`.
pub(crate) fn rules(written: &str) -> Rules {
    let mut table: HashMap<String, RuleTables> = toml::from_str(written).unwrap();
    table.remove("rule").unwrap_or_default().compile(written).unwrap()
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

/// An answer that is empty but for what is said of it.
pub(crate) fn answer_of(fields: &Value) -> Value {
    let output = json!({"content_type": "text", "content": "Done."});
    let empty = json!({"schema_version": "case.v1", "status": "ok", "proposed_actions": [], "events": [], "final_output": output});
    with_fields(empty, fields)
}

/// A runner failure with more known of it.
pub(crate) fn failure_of(fields: &Value) -> Value {
    let mut artifact = failure();
    artifact["runner_failure"] = with_fields(artifact["runner_failure"].take(), fields);
    artifact
}

fn with_fields(mut object: Value, fields: &Value) -> Value {
    for (key, value) in fields.as_object().unwrap() {
        object[key] = value.clone();
    }
    object
}

/// A call of a tool and its result, one after the other.
pub(crate) fn step(call_id: &str, tool: &str, args: &Value, payload: &Value) -> [Value; 2] {
    [
        json!({"type": "tool_call", "ts": 1000, "call_id": call_id, "tool": tool, "args": args}),
        json!({
            "type": "tool_result", "ts": 1500, "call_id": call_id, "status": "ok", "latency_ms": 12,
            "payload_summary": payload,
        }),
    ]
}

/// A proposed action of high risk that rests on the results of calls.
pub(crate) fn action(id: &str, tool: &str, params: &Value, call_ids: &[&str]) -> Value {
    let refs: Vec<_> = call_ids.iter().map(|id| json!({"kind": "tool_result", "call_id": id})).collect();
    json!({
        "action_id": id, "action_type": "write", "tool_name": tool, "params": params, "risk_level": "high",
        "risk_tags": [], "evidence_refs": refs,
    })
}
