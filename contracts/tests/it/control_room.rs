//! The tiers of the control room, from the lines of a store.

use std::num::NonZeroU32;

use counterproof_contracts::control_room::{AttentionCode, ControlRoom, ControlRoomOptions, Tier, WorkProcess};
use counterproof_contracts::store::{NewTransition, Note, NoteKind};
use counterproof_contracts::{Actor, Contract, Details, State, Store};
use counterproof_store::line_log::LockOptions;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::kit::{Sandbox, add, agent, contract, human, id, key, now};

/// A time after the contracts were added.
fn minute(minute: i64) -> Timestamp {
    now() + SignedDuration::from_mins(minute)
}

fn details(document: Value) -> Details {
    serde_json::from_value(document).unwrap()
}

/// A change of a contract at a minute.
struct Change<'a> {
    store: &'a Store,
    name: &'a str,
}

impl Change<'_> {
    fn to(&self, to: State, at: i64, actor: Actor, reason: &str, evidence: Value) -> &Self {
        let request = NewTransition {
            key: key(self.name),
            to,
            actor,
            reason: reason.to_owned(),
            owner: None,
            details: details(evidence),
        };
        self.store.edit(&LockOptions::default()).unwrap().transition(request, minute(at)).unwrap();
        self
    }

    /// Claims and starts the contract.
    fn start(&self, at: i64, evidence: Value) -> &Self {
        self.to(State::Claimed, at, agent("ada"), "work", json!({}));
        self.to(State::Executing, at, agent("ada"), "started", evidence)
    }

    fn verify(&self, at: i64) -> &Self {
        self.to(State::Verifying, at, agent("ada"), "done", json!({}))
    }

    fn fail(&self, at: i64, evidence: Value) -> &Self {
        self.to(State::Failed, at, Actor::System, "the verification failed", evidence)
    }

    fn note(&self, kind: NoteKind, at: i64, reason: &str, evidence: Value) -> &Self {
        let note = Note {
            id: id(self.name),
            version: NonZeroU32::MIN,
            at: minute(at),
            actor: Actor::System,
            kind,
            reason: reason.to_owned(),
            details: details(evidence),
        };
        self.store.edit(&LockOptions::default()).unwrap().note(note).unwrap();
        self
    }
}

fn on<'a>(store: &'a Store, name: &'a str) -> Change<'a> {
    Change { store, name }
}

fn described(name: &str, project: &str, summary: &str, dependencies: &[&str]) -> Contract {
    let mut document = serde_json::to_value(contract(name, dependencies)).unwrap();
    document["metadata"] = json!({"project": project, "human_summary": summary});
    serde_json::from_value(document).unwrap()
}

/// No process is known.
fn unknown(_: &WorkProcess) -> Option<bool> {
    None
}

fn room(store: &Store, at: i64) -> ControlRoom {
    ControlRoom::read(store, &ControlRoomOptions::new(minute(at), &unknown)).unwrap()
}

fn ids(room: &ControlRoom, tier: Tier) -> Vec<&str> {
    room.tier(tier).unwrap().items.iter().map(|item| item.id.as_str()).collect()
}

fn passed() -> Value {
    let changes = json!({"files": 3, "insertions": 1200, "deletions": 2});
    json!({"verification": {"passed": true, "exit_code": 0, "duration_ms": 900, "reasons": [], "changes": changes}})
}

fn failed() -> Value {
    json!({"verification": {"passed": false, "exit_code": 1, "reasons": ["the command ended with exit code 1", "more"]}})
}

/// A store with a contract of each kind.
fn all_kinds() -> Sandbox {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    let contracts = [
        described("shop/approve", "shop", "Refund orders that were paid twice", &[]),
        described("shop/refused", "shop", "Change the tax table", &[]),
        described("shop/failed", "shop", "shop/failed", &[]),
        described("docs/undone", "website", "Publish the prices", &[]),
        contract("shop/done", &[]),
        contract("shop/verifying", &[]),
        contract("shop/executing", &[]),
        contract("shop/claimed", &[]),
        contract("shop/ready", &["shop/done"]),
        contract("shop/pending", &["shop/failed"]),
        contract("shop/cancelled", &[]),
    ];
    add(&store, &contracts).unwrap();
    let approve = on(&store, "shop/approve");
    approve.start(1, json!({})).verify(3);
    approve.note(NoteKind::ApprovalRequested, 4, "the check passed, and a person must approve the work", passed());
    let refused = on(&store, "shop/refused");
    refused.start(1, json!({})).verify(2).fail(3, failed());
    let rollback = json!({"rollback": {
        "strategy": "git_reset", "outcome": "refused", "message": "`tax.csv` was changed before the execution",
        "way_back": "git stash pop",
    }});
    refused.note(NoteKind::NotRolledBack, 4, "the rollback would remove work of others", rollback);
    on(&store, "shop/failed").start(1, json!({})).verify(2).fail(5, failed());
    let undone = on(&store, "docs/undone");
    undone.start(1, json!({})).fail(2, failed());
    undone.to(State::RollingBack, 3, agent("ada"), "undo", json!({}));
    undone.to(State::RolledBack, 4, Actor::System, "the work is undone", json!({}));
    on(&store, "shop/done").start(1, json!({})).verify(8).to(State::Completed, 9, Actor::System, "passed", passed());
    on(&store, "shop/verifying").start(50, json!({})).verify(55);
    on(&store, "shop/executing").start(52, json!({}));
    on(&store, "shop/claimed").to(State::Claimed, 58, agent("bob"), "mine", json!({}));
    on(&store, "shop/cancelled").to(State::Cancelled, 2, human(), "not needed", json!({}));
    sandbox
}

#[test]
fn each_contract_is_in_the_tier_of_the_attention_that_it_needs() {
    let sandbox = all_kinds();
    let room = room(&sandbox.store(), 60);
    assert_eq!(ids(&room, Tier::NeedsDecision), ["shop/approve", "shop/refused"]);
    assert_eq!(ids(&room, Tier::Anomaly), ["docs/undone", "shop/failed"]);
    assert_eq!(ids(&room, Tier::Completed), ["shop/done"]);
    assert_eq!(ids(&room, Tier::Running), ["shop/executing", "shop/verifying"]);
    assert_eq!(ids(&room, Tier::Queued), ["shop/pending", "shop/ready", "shop/claimed"]);
    assert_eq!((room.cancelled, room.contracts), (1, 11));
    insta::assert_snapshot!(room.to_text(20).replace('\u{202f}', " "), @r##"
Needs a decision (2)
  ◕ shop/approve@1  verifying for 57 min
      Refund orders that were paid twice
      the check passed, and a person must approve the work
      verification PASSED; 3 files +1 200 −2; worked 3 min; owner ada
      counterproof contract approve shop/approve@1 --reason 'approved from the control room'  (completes the contract)
      counterproof contract reject shop/approve@1 --reason 'rejected from the control room'  (fails the contract)
  ✗ shop/refused@1  failed for 57 min
      Change the tax table
      the command ended with exit code 1; the rollback would remove work of others
      verification FAILED; worked 2 min; owner ada
      git stash pop  (restores what the rollback removed)
      counterproof contract approve shop/refused@1 --reason 'approved from the control room'  (makes it ready for another attempt)
      counterproof contract reject shop/refused@1 --reason 'rejected from the control room'  (cancels the contract)
Anomalies (2)
  ↺ docs/undone@1  rolled back for 56 min
      Publish the prices
      the command ended with exit code 1; the work is undone (by system)
      verification FAILED; worked 1 min; owner ada; project website
  ✗ shop/failed@1  failed for 55 min
      the command ended with exit code 1; the verification failed (by system)
      verification FAILED; worked 4 min; owner ada
Completed (1)
  ✓ shop/done@1  completed for 51 min
      verification PASSED; 3 files +1 200 −2; worked 8 min; owner ada
Running (2)
  ▸ shop/executing@1  executing for 8 min
      worked 8 min; owner ada
  ◕ shop/verifying@1  verifying for 5 min
      worked 10 min; owner ada
Queued (3)
  ○ shop/pending@1  pending for 1 h
  ◔ shop/ready@1  ready for 51 min
  ◑ shop/claimed@1  claimed for 2 min
      owner bob
Cancelled (1)
    "##);
}

#[test]
fn the_same_is_a_json_document() {
    let sandbox = all_kinds();
    let mut document = serde_json::to_value(room(&sandbox.store(), 60)).unwrap();
    assert_eq!(document["tiers"][0]["tier"], "needs_decision");
    let history = document["tiers"][0]["items"][1]["history"].take();
    let events: Vec<&str> = history.as_array().unwrap().iter().map(|it| it["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["ready", "claimed", "executing", "verifying", "failed", "not rolled back"]);
    assert_eq!(
        (history[4]["actor"].as_str(), history[4]["at"].as_str()),
        (Some("system"), Some("2026-01-31T12:03:00Z"))
    );
    insta::assert_snapshot!(serde_json::to_string_pretty(&document["tiers"][0]["items"][1]).unwrap(), @r##"
{
  "project": "shop",
  "id": "shop/refused",
  "version": 1,
  "state": "failed",
  "summary": "Change the tax table",
  "since": "2026-01-31T12:03:00Z",
  "owner": "ada",
  "attention": {
    "code": "rollback_refused",
    "message": "the command ended with exit code 1; the rollback would remove work of others"
  },
  "verification": {
    "result": "failed",
    "reason": "the command ended with exit code 1"
  },
  "changes": null,
  "duration_ms": 120000,
  "rollback": {
    "outcome": "refused",
    "message": "`tax.csv` was changed before the execution",
    "way_back": "git stash pop"
  },
  "evidence": [],
  "history": null,
  "commands": [
    {
      "command": "counterproof contract approve shop/refused@1 --reason 'approved from the control room'",
      "effect": "makes it ready for another attempt"
    },
    {
      "command": "counterproof contract reject shop/refused@1 --reason 'rejected from the control room'",
      "effect": "cancels the contract"
    }
  ]
}
    "##);
}

#[test]
fn work_without_progress_or_without_its_process_is_an_anomaly() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    let names = ["claimed", "dead", "dead-claim", "dead-verifying", "alive", "elsewhere", "agent"];
    add(&store, &names.map(|name| contract(name, &[]))).unwrap();
    on(&store, "claimed").to(State::Claimed, 0, agent("ada"), "mine", json!({}));
    let process = |pid: u32, host: &str| json!({"execution": {"pid": pid, "host": host, "workdir": "/w"}});
    on(&store, "dead").start(1, process(7, "here"));
    let claim = json!({"process": {"pid": 7, "host": "here"}});
    on(&store, "dead-claim").to(State::Claimed, 1, agent("ada"), "work", claim);
    on(&store, "dead-verifying").start(2, process(7, "here")).verify(2);
    on(&store, "alive").start(3, process(8, "here"));
    on(&store, "elsewhere").start(3, process(7, "there"));
    on(&store, "agent").start(3, json!({"execution": {"workdir": "/w"}}));
    let is_running = |process: &WorkProcess| (process.host.as_deref() == Some("here")).then_some(process.pid != 7);
    let read = |at| ControlRoom::read(&store, &ControlRoomOptions::new(minute(at), &is_running)).unwrap();
    let now = read(5);
    assert_eq!(ids(&now, Tier::Anomaly), ["dead", "dead-claim", "dead-verifying"]);
    assert_eq!(ids(&now, Tier::Running), ["agent", "alive", "elsewhere"]);
    assert_eq!(ids(&now, Tier::Queued), ["claimed"]);
    let attention = now.tier(Tier::Anomaly).unwrap().items[0].attention.clone().unwrap();
    assert_eq!(attention.code, AttentionCode::ProcessEnded);
    assert_eq!(attention.message, "process 7 worked on the contract and does not run any more");
    let later = read(6);
    assert_eq!(ids(&later, Tier::Anomaly), ["claimed", "dead", "dead-claim", "dead-verifying"]);
    let attention = later.tier(Tier::Anomaly).unwrap().items[0].attention.clone().unwrap();
    assert_eq!(
        (attention.code, attention.message.as_str()),
        (AttentionCode::NoProgress, "claimed for 6 min and not started")
    );
    assert!(ids(&read(24 * 60 + 3), Tier::Running).contains(&"alive"));
    assert!(ids(&read(24 * 60 + 4), Tier::Running).is_empty());
}

#[test]
fn evidence_of_any_form_is_read_and_what_it_lacks_is_unknown() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    let evidence = [
        json!({}),
        json!({"verification": null}),
        json!({"verification": {"passed": "yes", "reasons": "none", "changes": 3, "duration_ms": -1}}),
        json!({"verification": {"passed": false, "timed_out": true}, "rollback": []}),
        json!({"verification": {"passed": false, "exit_code": 3}}),
        json!({"verification": {"passed": false, "assertions": [{"outcome": "met"}, {"expression": "a", "outcome": "error"}]}}),
        json!({"verification": {"passed": false, "reasons": ["x".repeat(9_000)], "changes": {"files": 1}}}),
    ];
    let names: Vec<String> = (0..evidence.len()).map(|index| format!("c{index}")).collect();
    add(&store, &names.iter().map(|name| contract(name, &[])).collect::<Vec<_>>()).unwrap();
    for (name, evidence) in names.iter().zip(evidence) {
        on(&store, name).start(1, json!({"execution": 5})).verify(1).fail(2, evidence);
    }
    let room = room(&store, 3);
    let lines: Vec<String> = room
        .tier(Tier::Anomaly)
        .unwrap()
        .items
        .iter()
        .map(|item| {
            let verification = item.verification.clone().unwrap();
            let reason = verification.reason.unwrap_or_default();
            format!(
                "{:?} {} {:?}",
                verification.result,
                &reason[..reason.len().min(60)],
                item.changes.map(|it| it.files)
            )
        })
        .collect();
    assert_eq!(
        lines,
        [
            "Unknown  None",
            "Unknown  None",
            "Unknown  None",
            "Failed the time limit was exceeded None",
            "Failed the command ended with exit code 3 None",
            "Failed a: assertion failed None",
            "Failed xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx Some(Some(1))",
        ]
    );
    let longest = room.tier(Tier::Anomaly).unwrap().items[6].verification.clone().unwrap().reason.unwrap();
    assert_eq!(longest.chars().count(), 501);
}

#[test]
fn the_reason_begins_with_the_assertion_that_failed() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    let unmet = json!({"expression": "exit_code == 0", "outcome": "not_met", "got": "exit_code is 1"});
    let undecided = json!({"expression": "output.a > 1", "outcome": "error", "message": "missing field `a`"});
    let check = |reason: &str, assertions: &[&Value]| {
        json!({"verification": {
            "passed": false, "reasons": [reason, "more"], "assertions": assertions, "evidence": ["a/v1/1/output.json"],
        }})
    };
    let cases = [
        // The transition repeats a reason of the verification.
        (
            check("assertion not met: exit_code == 0; exit_code is 1", &[&unmet]),
            "exit_code == 0: assertion not met, exit_code is 1",
        ),
        (
            check("other", &[&unmet]),
            "exit_code == 0: assertion not met, exit_code is 1; the verification failed (by system)",
        ),
        (
            check("assertion failed: output.a > 1: missing field `a`", &[&undecided]),
            "output.a > 1: assertion failed, missing field `a`; the verification failed (by system)",
        ),
        // A command that was stopped decides no assertion.
        (
            check("verification: the time limit was exceeded", &[&undecided]),
            "verification: the time limit was exceeded; the verification failed (by system)",
        ),
    ];
    for (index, (evidence, expected)) in cases.into_iter().enumerate() {
        let name = format!("c{index}");
        add(&store, &[contract(&name, &[])]).unwrap();
        let reason = evidence["verification"]["reasons"][0].as_str().unwrap().to_owned();
        let change = on(&store, &name);
        change.start(1, json!({})).verify(2);
        let shown = if index == 0 { &*reason } else { "the verification failed" };
        change.to(State::Failed, 3, Actor::System, shown, evidence);
        let room = room(&store, 4);
        let item = room.tier(Tier::Anomaly).unwrap().items.last().unwrap().clone();
        assert_eq!(item.attention.unwrap().message, expected);
        assert_eq!(item.evidence, ["a/v1/1/output.json"]);
        assert!(!room.to_text(20).contains("FAILED:"), "the reason is shown once");
    }
}

#[test]
fn a_decision_names_the_store_and_a_restoring_command_is_whole() {
    let sandbox = all_kinds();
    let options = ControlRoomOptions {
        command: "counterproof contract --store 'my store'",
        ..ControlRoomOptions::new(minute(60), &unknown)
    };
    let room = ControlRoom::read(&sandbox.store(), &options).unwrap();
    let commands = room.tiers.iter().flat_map(|list| &list.items).flat_map(|item| &item.commands);
    for command in commands {
        assert!(command.command.starts_with("counterproof contract --store 'my store' "), "{command:?}");
        assert!(!command.command.contains('…') && !command.command.contains("..."), "{command:?}");
    }
    let store = sandbox.store();
    let way_back = format!("git -C '/{}' stash pop", "deep folder/".repeat(30));
    add(&store, &[contract("shop/long", &[])]).unwrap();
    let change = on(&store, "shop/long");
    change.start(1, json!({})).verify(2);
    change.fail(3, json!({"rollback": {"outcome": "refused", "message": "x", "way_back": way_back}}));
    let text = ControlRoom::read(&store, &options).unwrap().to_text(20);
    assert!(text.contains(&format!("{way_back}  (restores")), "{text}");
}

#[test]
fn another_attempt_starts_without_the_evidence_of_the_last_one() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    add(&store, &[contract("a", &[])]).unwrap();
    let change = on(&store, "a");
    change.start(1, json!({})).verify(2).fail(3, failed());
    change.to(State::Ready, 4, human(), "again", json!({}));
    let waiting = room(&store, 5).tier(Tier::Queued).unwrap().items[0].clone();
    assert_eq!((waiting.verification, waiting.duration_ms), (None, None));
    change.start(6, json!({}));
    let running = room(&store, 8).tier(Tier::Running).unwrap().items[0].clone();
    assert_eq!((running.verification, running.duration_ms), (None, Some(120_000)));
}

#[test]
fn a_tier_lists_the_oldest_contracts_and_counts_all() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    let names: Vec<String> = (0..7).map(|index| format!("p{}/c", 9 - index)).collect();
    add(&store, &names.iter().map(|name| contract(name, &[])).collect::<Vec<_>>()).unwrap();
    for (minute, name) in names[..4].iter().enumerate() {
        let at = i64::try_from(minute).unwrap();
        on(&store, name).start(at, json!({})).verify(at).to(State::Completed, at, Actor::System, "passed", passed());
    }
    let options = ControlRoomOptions { listed: 2, listed_completed: 2, ..ControlRoomOptions::new(minute(9), &unknown) };
    let room = ControlRoom::read(&store, &options).unwrap();
    // The same time: by project.
    assert_eq!(ids(&room, Tier::Queued), ["p3/c", "p4/c"]);
    assert_eq!(ids(&room, Tier::Completed), ["p7/c", "p6/c"]);
    let text = room.to_text(20);
    assert!(text.contains("Queued (3): the oldest 2; 1 more are not listed"), "{text}");
    assert!(text.contains("Completed (4): the latest 2; 2 earlier ones are not listed"), "{text}");
    assert!(room.to_text(1).contains("Completed (4): the latest 1; 3 earlier ones are not listed\n  ✓ p6/c@1"));
}

#[test]
fn texts_of_agents_control_no_terminal() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    let hostile = "::error::x\u{1b}[2J\u{202e}x\n::error::y\rz";
    add(&store, &[described("a", hostile, hostile, &[])]).unwrap();
    let change = on(&store, "a");
    change.start(1, json!({})).verify(2);
    change.note(
        NoteKind::ApprovalRequested,
        3,
        hostile,
        json!({
            "verification": {"passed": false, "reasons": [hostile]}, "rollback": {"way_back": hostile},
        }),
    );
    let text = room(&store, 4).to_text(20);
    assert!(text.chars().all(|c| c == '\n' || !counterproof_artifact::is_invisible(c)), "{text:?}");
    assert!(text.lines().all(|line| !line.trim_start().starts_with("::")), "{text}");
}

#[test]
fn an_empty_store_has_empty_tiers() {
    let room = room(&Sandbox::new().store(), 0);
    assert!(room.tiers.iter().all(|list| list.count == 0 && list.items.is_empty()));
    assert_eq!(room.tiers.len(), 5);
}

#[cfg(unix)]
#[test]
fn a_process_that_was_waited_for_does_not_run() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let process = WorkProcess { pid: child.id(), host: Some("here".to_owned()) };
    assert_eq!((process.is_running_on("here"), process.is_running_on("there")), (Some(true), None));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(process.is_running_on("here"), Some(false));
    assert_eq!(WorkProcess { host: None, ..process }.is_running_on("here"), None);
    let nowhere = WorkProcess { pid: 1, host: Some(String::new()) };
    assert_eq!(nowhere.is_running_on(""), None, "two machines without a name are not the same");
}

#[test]
fn times_are_compared_by_their_meaning() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    let created = |name: &str, at: &str| {
        let mut document = serde_json::to_value(contract(name, &["base"])).unwrap();
        document["created_at"] = at.into();
        serde_json::from_value(document).unwrap()
    };
    let contracts = [
        contract("base", &[]),
        created("a", "2026-01-31T12:00:00.5Z"),
        created("b", "2026-01-31T12:59:59+01:00"),
        created("c", "yesterday"),
    ];
    add(&store, &contracts).unwrap();
    assert_eq!(ids(&room(&store, 1), Tier::Queued), ["c", "b", "base", "a"]);
}
