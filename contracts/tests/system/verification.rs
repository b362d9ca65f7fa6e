//! Verifications with real commands: what passes, what is tried again, and what is recorded.

use std::fs;
use std::thread;
use std::time::Duration;

use counterproof_contracts::Contract;
use counterproof_contracts::process::{Cancellation, EvidenceFolder, StopReason};
use counterproof_contracts::verification::{
    AssertionOutcome, ExitCodeRule, OutputCheck, VerificationPlan, Verified, VerifySettings,
};
use counterproof_redaction::Redactor;
use serde_json::{Value, json};

use crate::kit::{Folder, processes_with, unique_sleep, wait_until, worker};

fn contract(verification: &Value) -> Contract {
    serde_json::from_value(json!({
        "id": "shop/refund/001", "version": 1, "created_at": "2026-02-02T14:30:00Z",
        "input": {"type": "t", "data": {}, "constraints": {"memory_baseline": 100}},
        "output": {"type": "o", "schema": {"ok": "boolean", "peak_memory_mb?": "number"}, "artifacts": ["made.txt"]},
        "verification": verification, "rollback": {"strategy": "git_reset"}
    }))
    .unwrap()
}

struct Kit {
    work: Folder,
    evidence: Folder,
    cancellation: Cancellation,
}

impl Kit {
    fn new() -> Self {
        Self { work: Folder::new(), evidence: Folder::new(), cancellation: Cancellation::default() }
    }

    fn verify(&self, verification: &Value, output: &Value) -> Verified {
        let (contract, redactor) = (contract(verification), Redactor::new(["hunter2-hunter2"]).unwrap());
        let (work, evidence) = (self.work.path(), self.evidence.path());
        let evidence = EvidenceFolder { path: &evidence, redactor: &redactor };
        let settings = VerifySettings { supervisor: Some(worker()), ..VerifySettings::new(&work, evidence) };
        VerificationPlan::new(&contract).unwrap().verify(output, &settings, &self.cancellation).unwrap()
    }

    fn evidence_files(&self) -> Vec<String> {
        let files = fs::read_dir(self.evidence.path()).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn ok() -> Value {
    json!({"ok": true, "peak_memory_mb": 105.5})
}

#[test]
fn a_contract_passes_with_its_command_assertions_shape_and_artifacts() {
    let kit = Kit::new();
    let assertions =
        ["output.ok", "output.peak_memory_mb <= input.constraints.memory_baseline * 1.1", r"stdout == 'done\n'"];
    let verified = kit.verify(&json!({"command": "touch made.txt; echo done", "assertions": assertions}), &ok());
    let report = &verified.report;
    assert!(report.passed && !report.cancelled, "{report:#?}");
    assert_eq!((report.exit_code_rule, report.attempts.len()), (ExitCodeRule::Zero, 1));
    assert_eq!(verified.stdout.unwrap().bytes, b"done\n");
    assert_eq!(kit.evidence_files(), ["attempt-1.jsonl", "attempt-1.log"]);
    let stored: Value = serde_json::to_value(report).unwrap();
    assert_eq!(stored["assertions"][0], json!({"assertion": "output.ok", "outcome": "met"}));
    assert_eq!(stored["artifacts"][0]["bytes"], 0);
    assert_eq!(
        serde_json::from_value::<counterproof_contracts::verification::VerificationReport>(stored).unwrap(),
        *report
    );
}

#[test]
fn each_part_alone_fails_the_verification() {
    let passes = |verification: &Value| Kit::new().verify(verification, &ok()).report.passed;
    assert!(passes(&json!({"command": "touch made.txt"})));
    assert!(!passes(&json!({"command": "touch made.txt; exit 1"})), "the exit code");
    assert!(!passes(&json!({"command": "true"})), "the artifact");
    assert!(!passes(&json!({"command": "touch made.txt", "assertions": ["output.ok", "!output.ok"]})), "an assertion");
    assert!(!passes(&json!({"command": "touch made.txt", "assertions": ["output.none"]})), "an error");
}

#[test]
fn an_output_of_another_shape_fails_without_running_the_command() {
    let kit = Kit::new();
    let verified = kit.verify(&json!({"command": "touch made.txt", "assertions": ["true"]}), &json!({"ok": "yes"}));
    let OutputCheck::Invalid { violations, .. } = &verified.report.output else { panic!("{verified:?}") };
    assert_eq!(violations[0].pointer, "/ok");
    assert!(!verified.report.passed && verified.report.attempts.is_empty());
    assert!(matches!(verified.report.assertions[0].outcome, AssertionOutcome::Error { .. }));
    assert!(!kit.work.path().join("made.txt").exists());
}

#[test]
fn assertions_about_the_exit_code_replace_the_rule_of_zero() {
    let verification = json!({"command": "touch made.txt; exit 3", "assertions": ["exit_code in [0, 3]"]});
    let report = Kit::new().verify(&verification, &ok()).report;
    assert_eq!(
        (report.passed, report.exit_code_rule, report.attempts[0].exit_code),
        (true, ExitCodeRule::Assertions, 3)
    );
}

#[test]
fn a_command_that_is_stopped_never_passes() {
    let verification = json!({
        "command": "touch made.txt; trap 'exit 0' TERM; while :; do sleep 0.01; done", "timeout_ms": 200,
        "assertions": ["exit_code == 0"]
    });
    let report = Kit::new().verify(&verification, &ok()).report;
    assert_eq!((report.passed, report.attempts[0].stopped), (false, Some(StopReason::TimedOut)));
    let AssertionOutcome::Error { message, .. } = &report.assertions[0].outcome else { panic!("{report:#?}") };
    assert_eq!(message, "the command did not end within its time limit");
}

#[test]
fn failed_checks_are_tried_again_as_often_as_declared() {
    let count = "echo x >> count; touch made.txt; test $(wc -l < count) -ge 3";
    let kit = Kit::new();
    let report = kit.verify(&json!({"command": count, "retry": {"max": 4, "delay_ms": 1}}), &ok()).report;
    let passed: Vec<_> = report.attempts.iter().map(|attempt| (attempt.number, attempt.passed)).collect();
    assert_eq!((report.passed, passed), (true, vec![(1, false), (2, false), (3, true)]));
    assert_eq!(kit.evidence_files().len(), 6);
    let report = Kit::new().verify(&json!({"command": count, "retry": {"max": 1, "delay_ms": 0}}), &ok()).report;
    assert_eq!((report.passed, report.attempts.len()), (false, 2));
    let assertion = json!({"command": count, "assertions": ["exit_code == 1"], "retry": {"max": 1, "delay_ms": 0}});
    assert_eq!(Kit::new().verify(&assertion, &ok()).report.attempts.len(), 1, "the first attempt passes");
}

#[test]
fn a_stored_contract_with_too_many_retries_is_tried_a_hundred_times_more() {
    let kit = Kit::new();
    let report =
        kit.verify(&json!({"command": "false", "retry": {"max": 4_000_000_000_u32, "delay_ms": 0}}), &ok()).report;
    assert_eq!(report.attempts.len(), 101);
}

#[test]
fn a_cancellation_ends_the_running_attempt_and_the_wait_for_the_next() {
    let kit = Kit::new();
    let sleep = unique_sleep();
    let verification = json!({"command": format!("sleep {sleep}"), "retry": {"max": 9, "delay_ms": 0}});
    let report = thread::scope(|scope| {
        let running = scope.spawn(|| kit.verify(&verification, &ok()).report);
        wait_until("the command runs", || processes_with(&sleep) > 0);
        kit.cancellation.cancel();
        running.join().unwrap()
    });
    assert_eq!((report.passed, report.cancelled, report.attempts.len()), (false, true, 1));
    assert_eq!(report.attempts[0].stopped, Some(StopReason::Cancelled));

    let kit = Kit::new();
    let verification = json!({"command": "echo x >> count; exit 1", "retry": {"max": 9, "delay_ms": u64::MAX}});
    let report = thread::scope(|scope| {
        let running = scope.spawn(|| kit.verify(&verification, &ok()).report);
        wait_until("the evidence is stored", || kit.evidence_files().contains(&"attempt-1.jsonl".to_owned()));
        thread::sleep(Duration::from_millis(50));
        kit.cancellation.cancel();
        running.join().unwrap()
    });
    assert_eq!((report.cancelled, report.attempts.len()), (true, 1));
    assert_eq!(kit.work.read("count"), "x\n");
}

#[test]
fn the_evidence_has_no_secret_and_the_assertions_see_it() {
    let kit = Kit::new();
    let verification =
        json!({"command": "touch made.txt; echo hunter2-hunter2", "assertions": ["stdout.contains('hunter2')"]});
    assert!(kit.verify(&verification, &ok()).report.passed);
    assert!(!kit.evidence.read("attempt-1.log").contains("hunter2"));
}

#[test]
fn an_invalid_contract_has_one_error_for_each_part() {
    let mut contract = contract(&json!({"command": "true", "assertions": ["output.ok", "outputs.ok", "("]}));
    contract.output.schema = json!({"a": "strng"});
    let errors = VerificationPlan::new(&contract).unwrap_err();
    let pointers: Vec<_> = errors.iter().map(counterproof_contracts::verification::PlanError::pointer).collect();
    assert_eq!(pointers, ["/verification/assertions/1", "/verification/assertions/2", "/output/schema/a"]);
    assert!(errors.iter().all(|error| error.code() == "invalid_contract"));
}
