//! Rollbacks by their strategy.

use std::fs;
use std::time::Duration;

use counterproof_contracts::Contract;
use counterproof_contracts::execution::ExecutionStart;
use counterproof_contracts::process::{Cancellation, EvidenceFolder};
use counterproof_contracts::resources::ResourceRequest;
use counterproof_contracts::rollback::snapshot::SnapshotLimits;
use counterproof_contracts::rollback::{RollbackEnd, RollbackPlan, RollbackSettings, RollbackStart, declared_paths};
use counterproof_redaction::Redactor;
use serde_json::json;

use crate::kit::{Folder, processes_with, unique_sleep, worker};

struct Kit {
    work: Folder,
    state: Folder,
}

impl Kit {
    fn new() -> Self {
        Self { work: Folder::new(), state: Folder::new() }
    }

    /// Calls `run` with the settings of a rollback with this command.
    fn with<T>(&self, command: Option<&str>, run: impl FnOnce(&RollbackSettings<'_>) -> T) -> T {
        let (folder, path) = (self.work.path(), self.state.path().join("evidence"));
        let redactor = Redactor::new(["hunter2-hunter2"]).unwrap();
        let evidence = EvidenceFolder { path: &path, redactor: &redactor };
        let settings = RollbackSettings {
            command,
            supervisor: Some(worker()),
            timeout: Duration::from_millis(500),
            grace: Duration::from_millis(50),
            ..RollbackSettings::new(&folder, evidence)
        };
        run(&settings)
    }

    fn roll_back(&self, command: &str) -> RollbackEnd {
        let began = RollbackStart::custom(Some(command)).unwrap();
        self.with(Some(command), |settings| began.roll_back(settings, &Cancellation::default()).unwrap())
    }
}

#[test]
fn a_command_undoes_the_work_and_its_record_is_stored() {
    let kit = Kit::new();
    let end = kit.roll_back("echo hunter2-hunter2 > undone");
    let RollbackEnd::RolledBack { done, way_back: None, evidence: Some(evidence) } = end else { panic!("{end:?}") };
    assert_eq!((done, evidence.log.as_str()), (vec!["ran `echo [redacted] > undone`".to_owned()], "rollback.log"));
    assert_eq!(kit.work.read("undone"), "hunter2-hunter2\n");
    assert!(!kit.state.read("evidence/rollback.jsonl").contains("hunter2"));
}

#[test]
fn a_command_that_fails_or_hangs_has_not_undone_the_work() {
    let sleep = unique_sleep();
    for (command, expected) in [
        ("exit 3", "the command ended with exit code 3"),
        ("kill -9 $$", "the command ended with signal 9"),
        (&*format!("trap '' TERM; sleep {sleep}"), "the command did not end within its time limit"),
    ] {
        let end = Kit::new().roll_back(command);
        let RollbackEnd::Failed { reason, evidence } = end else { panic!("{end:?}") };
        assert_eq!((reason.as_str(), evidence.events.as_str()), (expected, "rollback.jsonl"));
    }
    assert_eq!(processes_with(&sleep), 0);
}

#[test]
fn a_custom_rollback_needs_a_command() {
    for command in [None, Some(" ")] {
        let error = RollbackStart::custom(command).unwrap_err();
        assert_eq!(error.code(), "no_rollback_command");
        let kit = Kit::new();
        let error = kit.with(command, |settings| RollbackStart::Custom.roll_back(settings, &Cancellation::default()));
        assert_eq!(error.unwrap_err().code(), "no_rollback_command");
    }
    let plan = Kit::new().with(Some("make undo"), |settings| RollbackStart::Custom.plan(settings).unwrap());
    assert_eq!(plan, RollbackPlan::Steps(vec!["run `make undo`".to_owned()]));
}

#[test]
fn a_snapshot_survives_as_json_and_says_what_is_done_and_how_to_get_it_back() {
    let kit = Kit::new();
    let folder = kit.state.path().join("snapshot");
    fs::create_dir(kit.work.path().join("d")).unwrap();
    let began =
        RollbackStart::snapshot(&kit.work.path(), &["d".to_owned()], &folder, SnapshotLimits::default()).unwrap();
    let stored = serde_json::to_value(&began).unwrap();
    assert_eq!((&stored["strategy"], &stored["entries"]), (&json!("restore_snapshot"), &json!(1)));
    let began: RollbackStart = serde_json::from_value(stored).unwrap();
    fs::create_dir(kit.work.path().join("d/new")).unwrap();
    let plan = kit.with(None, |settings| began.plan(settings).unwrap());
    assert_eq!(plan, RollbackPlan::Steps(vec!["remove `d/new`".to_owned()]));
    let end = kit.with(None, |settings| began.roll_back(settings, &Cancellation::default()).unwrap());
    let RollbackEnd::RolledBack { done, way_back: Some(way_back), evidence: None } = &end else { panic!("{end:?}") };
    assert_eq!(*done, ["removed `d/new`"]);
    let expected = format!(
        "the files as they were before the rollback are in `{folder}/before-rollback-1/files`; copy them back with `cp -a`"
    );
    assert_eq!(*way_back, expected);
    assert!(folder.join("before-rollback-1/files/d/new").is_dir() && !kit.work.path().join("d/new").exists());
    assert_eq!(serde_json::from_value::<RollbackEnd>(serde_json::to_value(&end).unwrap()).unwrap(), end);
}

#[test]
fn an_execution_that_an_older_version_began_is_not_rolled_back_and_says_why() {
    // As version 0.1.0 wrote it.
    let start: ExecutionStart = serde_json::from_value(json!({
        "workdir": "/shop", "pid": 17, "host": "here", "started_at": "2026-02-02T14:30:00Z",
        "rollback": {
            "strategy": "git_reset", "root": "/shop", "commit": "1f7a7a472abf3dd9643fd615f6da379c4acb3e3a",
            "branch": "refs/heads/main", "changed": [], "untracked": []
        }
    }))
    .unwrap();
    assert_eq!(start.process.map(|process| process.pid), Some(17));
    let plan = Kit::new().with(None, |settings| start.rollback.plan(settings).unwrap());
    let RollbackPlan::Refused(refusal) = plan else { panic!("{plan:?}") };
    assert!(refusal.reason.contains("begun by an older version"), "{refusal:?}");
}

#[test]
fn a_contract_declares_its_artifacts_and_locked_files() {
    let contract: Contract = serde_json::from_value(json!({
        "id": "a/1", "version": 1, "created_at": "2026-02-02T14:30:00Z", "input": {"type": "t", "data": {}},
        "output": {"type": "o", "schema": true, "artifacts": ["out/report.md"]},
        "verification": {"command": "true"}, "rollback": {"strategy": "restore_snapshot"},
        "resources": [{"type": "file_lock", "spec": {"paths": ["src/memory/*", "Cargo.toml"]}}]
    }))
    .unwrap();
    let resources = ResourceRequest::parse_all(contract.resources()).unwrap();
    assert_eq!(declared_paths(&contract, &resources), ["out/report.md", "src/memory", "Cargo.toml"]);
}
