//! Sessions as artifacts: what a case contains, that two recordings of one agent compare as unchanged, and that any records
//! give a valid artifact.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

#[path = "../../sessions/tests/samples/mod.rs"]
mod samples;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::{Evaluation, Verdict};
use counterproof_artifact::{RunId, Side};
use counterproof_cases::load;
use counterproof_evaluator::{ComparedRun, Expectations, Request, SideRuns, compare};
use counterproof_export::Destination;
use counterproof_export::sessions::{
    CaseKey, ExportedSession, SessionExport, SessionExportError, case_id, check_distinct, run_id, write_cases,
};
use counterproof_sessions::event::{EventBody, SessionEvent};
use counterproof_sessions::session::{SessionHead, SessionStatus};
use counterproof_store::RunReader;
use counterproof_store::write::{Durability, write};
use counterproof_validation::validate_path;
use jiff::Timestamp;
use proptest::prelude::*;
use samples::{Sample, bad, good, long};
use serde_json::{Value, json};

type Session = (SessionHead, Vec<SessionEvent>);

/// A folder of all runs.
struct Runs(tempfile::TempDir);

impl Runs {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.0.path()).unwrap()
    }

    /// Exports sessions as one run, adds their cases, and checks that the folder is valid.
    fn export(&self, side: Side, id: &str, sessions: &[Session]) -> (Utf8PathBuf, Vec<ExportedSession>) {
        let run_id: RunId = id.parse().unwrap();
        let destination =
            Destination { out: self.path(), side, run_id: &run_id, writer: "test".to_owned(), is_deterministic: false };
        let mut export = SessionExport::new(&destination).unwrap();
        for (head, events) in sessions {
            export.add(head, events, case_id(head, CaseKey::Task).unwrap()).unwrap();
        }
        let (folder, exported) = export.finish("../../sessions.cases.json".to_owned()).unwrap();
        let report = validate_path(&folder).unwrap();
        assert!(report.findings.is_empty(), "{:#?}", report.findings);
        write_cases(&self.cases(), &exported).unwrap();
        (folder, exported)
    }

    fn cases(&self) -> Utf8PathBuf {
        self.path().join("sessions.cases.json")
    }

    fn artifact(&self, session: Session) -> Value {
        let (folder, exported) = self.export(Side::New, "one", &[session]);
        json_file(&folder.join(format!("{}.json", exported[0].case_id)))
    }

    fn compare(&self, baseline: &[Session], new: &[Session]) -> Evaluation {
        let folders =
            [(Side::Baseline, baseline), (Side::New, new)].map(|(side, sessions)| self.export(side, "run", sessions).0);
        let open = |folder: &Utf8PathBuf| SideRuns::from(ComparedRun::new(RunReader::open(folder).unwrap()));
        let cases = load(&self.cases()).unwrap().cases;
        let request = Request {
            cases: &cases,
            expectations: Expectations::compile(&cases).unwrap(),
            ..Request::new(open(&folders[0]), open(&folders[1]))
        };
        compare::<std::convert::Infallible>(&request, |_| Ok(())).unwrap()
    }
}

fn json_file(path: &Utf8Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn codes(evaluation: &Evaluation) -> Vec<String> {
    evaluation.cases[0].reasons.iter().map(|reason| format!("{}: {}", reason.code, reason.message)).collect()
}

#[test]
fn two_recordings_of_one_agent_are_unchanged() {
    for session in [good, bad, long] {
        let evaluation = Runs::new().compare(&[session(1)], &[session(2)]);
        assert_eq!(evaluation.cases[0].verdict, Verdict::Unchanged, "{:#?}", codes(&evaluation));
    }
}

#[test]
fn a_version_that_fails_is_worse() {
    let evaluation = Runs::new().compare(&[good(1)], &[bad(2)]);
    assert_eq!(evaluation.cases[0].case_id.as_str(), "dates-1");
    assert_eq!(evaluation.cases[0].verdict, Verdict::Regressed);
    let codes = codes(&evaluation).join("\n");
    for expected in [
        "the session succeeds",
        "the last model call succeeds",
        "the last test run passes",
        "git push --force origin main",
        "test_dates.py",
    ] {
        assert!(codes.contains(expected), "{expected}:\n{codes}");
    }
    let improved = Runs::new().compare(&[bad(1)], &[good(2)]);
    assert_eq!(improved.cases[0].verdict, Verdict::Improved);
}

#[test]
fn a_case_has_steps_actions_and_the_end_of_the_session() {
    let case = Runs::new().artifact(good(3));
    assert_eq!(case["final_output"]["content"]["status"], "SUCCEEDED");
    assert_eq!(case["final_output"]["content"]["tests"], "passed");
    assert_eq!(case["usage"]["cost"], 0.012);
    let calls: Vec<_> =
        case["events"].as_array().unwrap().iter().filter(|event| event["type"] == "tool_call").collect();
    assert_eq!(
        calls.iter().map(|call| call["call_id"].as_str().unwrap()).collect::<Vec<_>>(),
        ["call-1", "call-2", "call-3", "call-4", "call-5"]
    );
    assert_eq!(calls[2]["args"]["path"], "<workspace>/dates.py");
    let results: Vec<_> =
        case["events"].as_array().unwrap().iter().filter(|event| event["type"] == "tool_result").collect();
    assert_eq!(results[1]["payload_summary"]["exit_code"], 1);
    assert!(results[1]["payload_summary"]["output"].as_str().unwrap().contains("<workspace>/test_dates.py:7"));
    let actions: Vec<_> = case["proposed_actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|action| {
            format!(
                "{} {} {}",
                action["tool_name"].as_str().unwrap(),
                action["params"]["path"].as_str().or(action["params"]["command"].as_str()).unwrap(),
                action["risk_level"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(
        actions,
        [
            "file.modify dates.py medium",
            "command python -m pytest -q low",
            "command git add -A && git commit -m 'Parse dates with one digit' medium"
        ]
    );
    // The last run decides.
    assert_eq!(case["proposed_actions"][1]["params"]["exit_code"], 0);
    assert_eq!(
        case["proposed_actions"][0]["evidence_refs"],
        json!([{"kind": "tool_result", "call_id": "call-1"}, {"kind": "tool_result", "call_id": "call-3"}])
    );
}

#[test]
fn a_refused_call_is_an_expectation_that_is_not_met() {
    let runs = Runs::new();
    let mut allowed = long(1);
    for event in &mut allowed.1 {
        if let EventBody::ToolCall(call) = &mut event.body
            && call.decision.is_some()
        {
            call.decision = Some(json!({"action": "ALLOW"}));
            call.result.success = Some(true);
            call.result.error = None;
        }
    }
    let evaluation = runs.compare(&[allowed], &[long(2)]);
    let codes = codes(&evaluation).join("\n");
    assert!(codes.contains("pull requests need a review"), "{codes}");
    assert_eq!(evaluation.cases[0].verdict, Verdict::Regressed);
}

#[test]
fn repeats_of_one_task_are_runs_of_their_own() {
    let ids = [good(1).0, good(2).0].map(|head| (case_id(&head, CaseKey::Task).unwrap(), head.session_id));
    let error = check_distinct(ids.iter().map(|(case_id, session)| (case_id, session.as_str()))).unwrap_err();
    let SessionExportError::DuplicateCaseId { sessions, .. } = &error else { panic!("{error}") };
    assert_eq!(sessions.len(), 2);
    assert!(error.to_string().contains("`dates-1`") && error.to_string().contains(&ids[1].1), "{error}");
}

#[test]
fn a_session_without_a_title_is_the_case_session() {
    let mut head = good(1).0;
    head.title = None;
    assert_eq!(case_id(&head, CaseKey::Title).unwrap().as_str(), "session");
    head.session_id = "../x".to_owned();
    assert!(run_id(&head).unwrap().as_str().starts_with("run-x-"));
}

#[test]
fn cases_that_the_file_has_stay() {
    let runs = Runs::new();
    write(&runs.cases(), br#"[{"id": "dates-1", "input": {"user": "mine"}, "expected": {}}]"#, Durability::Cached)
        .unwrap();
    runs.export(Side::New, "a", &[good(1)]);
    assert_eq!(json_file(&runs.cases())[0]["input"]["user"], "mine");
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,20}", "(?s).{0,12}", Just("\u{202e}/tmp/x".to_owned()), Just("rm -rf /; git push".to_owned())]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn any_session_gives_a_valid_artifact(
        steps in proptest::collection::vec((0..8_u8, text(), text(), any::<i64>()), 0..12),
        title in text(), id in text(), before_epoch in any::<bool>(), failed in any::<bool>(),
    ) {
        let mut it = Sample::new(&title, 1);
        it.head.session_id = id;
        for (kind, one, other, number) in steps {
            match kind {
                0 => {
                    it.answer(&one, &[(&other, json!([one]))]);
                }
                1 => {
                    it.shell(&one, &other, number, &one);
                }
                2 => {
                    it.edit(&one, &other, Some(&one), &other);
                }
                3 => {
                    it.file(&one, None, Some(&other));
                }
                4 => {
                    it.file(&one, Some(&other), None);
                }
                5 => {
                    it.failed(Some(429), &one);
                }
                6 => {
                    it.result(&one, &other, json!({ (one.as_str()): number }), &other, number > 0);
                }
                _ => {
                    it.subagent(&one, &other, |it| {
                        it.shell("", &other, 0, "");
                    });
                }
            }
        }
        let (mut head, mut events) = it.finish(if failed { SessionStatus::Interrupted } else { SessionStatus::Paused });
        if before_epoch {
            head.started_at = Timestamp::MIN;
            for event in &mut events {
                event.timestamp = Timestamp::from_second(-5).unwrap();
            }
        }
        Runs::new().artifact((head, events));
    }
}
