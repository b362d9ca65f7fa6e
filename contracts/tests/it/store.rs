//! The rules of a store: versions, dependencies, states and owners.

use counterproof_contracts::store::{NewTransition, Note, NoteKind, VersionHistory};
use counterproof_contracts::{Actor, State};
use counterproof_store::line_log::LockOptions;

use crate::kit::{Sandbox, add, agent, change, complete, contract, human, id, key, now, state};

#[track_caller]
fn code<T: std::fmt::Debug>(result: Result<T, counterproof_contracts::StoreError>) -> (&'static str, String) {
    let error = result.unwrap_err();
    (error.code(), error.to_string())
}

#[test]
fn a_contract_without_open_dependencies_is_ready_and_others_wait_for_the_last_one() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    let added = add(&store, &[contract("c", &["a", "b"]), contract("a", &[]), contract("b", &[])]).unwrap();
    let states: Vec<State> = added.iter().map(|it| it.state).collect();
    assert_eq!(states, [State::Pending, State::Ready, State::Ready]);
    complete(&store, "a");
    assert_eq!(state(&store, "c"), State::Pending);
    complete(&store, "b");
    assert_eq!(state(&store, "c"), State::Ready);
    let last = store.version(&key("c")).unwrap();
    let ready = last.transitions().last().unwrap();
    assert_eq!((ready.actor.clone(), ready.reason.as_str()), (Actor::System, "all dependencies are completed"));
}

#[test]
fn a_cycle_and_a_wrong_version_are_refused_and_nothing_is_added() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    let (cycle, text) = code(add(&store, &[contract("a", &["b"]), contract("b", &["c"]), contract("c", &["a"])]));
    assert_eq!((cycle, text.as_str()), ("circular_dependency", "circular dependency: `a` → `b` → `c` → `a`"));
    assert!(store.status(&id("a")).unwrap().is_none());
    add(&store, &[contract("a", &[]), contract("b", &["a"])]).unwrap();
    // A new version can close a cycle over stored contracts.
    let (cycle, text) = code(add(&store, &[contract("a@2", &["b"])]));
    assert_eq!((cycle, text.as_str()), ("circular_dependency", "circular dependency: `a` → `b` → `a`"));
    let (conflict, text) = code(add(&store, &[contract("a@3", &[])]));
    assert_eq!((conflict, text.as_str()), ("version_conflict", "`a` version 3 cannot be added: the next version is 2"));
    let (conflict, _) = code(add(&store, &[contract("a", &["b"])]));
    assert_eq!(conflict, "version_conflict", "a stored version never changes");
}

#[test]
fn a_contract_waits_for_a_dependency_that_is_added_later() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    let added = add(&store, &[contract("a", &["none/b"])]).unwrap();
    assert_eq!((added[0].state, added[0].missing.clone()), (State::Pending, vec![id("none/b")]));
    let (cycle, _) = code(add(&store, &[contract("none/b", &["a"])]));
    assert_eq!(cycle, "circular_dependency");
    assert_eq!(add(&store, &[contract("none/b", &[])]).unwrap()[0].state, State::Ready);
    complete(&store, "none/b");
    assert_eq!(state(&store, "a"), State::Ready);
}

#[test]
fn adding_the_same_version_again_changes_nothing() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    add(&store, &[contract("a", &[])]).unwrap();
    let before = sandbox.text();
    let added = add(&store, &[contract("a", &[])]).unwrap();
    assert_eq!((added[0].is_new, added[0].state, sandbox.text()), (false, State::Ready, before));
}

#[test]
fn a_new_version_starts_anew_and_only_the_latest_one_has_a_state() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    add(&store, &[contract("a", &[])]).unwrap();
    change(&store, "a", State::Claimed, &agent("x")).unwrap();
    let (in_use, _) = code(add(&store, &[contract("a@2", &[])]));
    assert_eq!(in_use, "in_use");
    change(&store, "a", State::Ready, &agent("x")).unwrap();
    add(&store, &[contract("a@2", &[])]).unwrap();
    let (superseded, text) = code(change(&store, "a@1", State::Claimed, &agent("x")));
    assert_eq!((superseded, text.as_str()), ("superseded", "`a` version 1 is superseded by version 2"));
    assert_eq!(code(change(&store, "a@3", State::Claimed, &agent("x"))).0, "not_found");
    complete(&store, "a@2");
    let history = store.history(&id("a")).unwrap();
    assert_eq!(
        history.versions.iter().map(VersionHistory::state).collect::<Vec<_>>(),
        [State::Ready, State::Completed]
    );
    assert_eq!(store.contract(&key("a@1")).unwrap().version.get(), 1);
}

#[test]
fn illegal_transitions_foreign_owners_and_unknown_contracts_have_their_own_codes() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    add(&store, &[contract("a", &[]), contract("b", &["a"])]).unwrap();
    let (illegal, text) = code(change(&store, "a", State::Completed, &Actor::System));
    assert_eq!((illegal, text.as_str()), ("invalid_transition", "`a`: invalid transition from ready to completed"));
    assert_eq!(code(change(&store, "none", State::Claimed, &agent("x"))).0, "not_found");
    let (open, text) = code(change(&store, "b", State::Claimed, &agent("x")));
    assert_eq!(
        (open, text.as_str()),
        ("dependency_not_met", "`b` is not ready: its dependency `a` is ready, not completed")
    );
    let (open, text) = code(change(&store, "b", State::Ready, &Actor::System));
    assert_eq!(
        (open, text.as_str()),
        ("dependency_not_met", "`b` is not ready: its dependency `a` is ready, not completed")
    );
    // The owner gives the contract back, and another one takes it: the first one is stale.
    change(&store, "a", State::Claimed, &agent("old")).unwrap();
    change(&store, "a", State::Ready, &agent("old")).unwrap();
    change(&store, "a", State::Claimed, &agent("new")).unwrap();
    let (stale, text) = code(change(&store, "a", State::Executing, &agent("old")));
    assert_eq!((stale, text.as_str()), ("not_owner", "`a`: `agent:old` does not own the contract; its owner is `new`"));
    assert_eq!(code(change(&store, "a", State::Cancelled, &agent("new"))).0, "not_allowed");
}

#[test]
fn a_person_completes_only_contracts_that_wait_for_an_approval() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    add(&store, &[contract("a", &[])]).unwrap();
    for to in [State::Claimed, State::Executing, State::Verifying] {
        change(&store, "a", to, &agent("x")).unwrap();
    }
    assert_eq!(code(change(&store, "a", State::Completed, &human())).0, "not_allowed");
    let note = Note {
        id: id("a"),
        version: std::num::NonZeroU32::MIN,
        at: now(),
        actor: Actor::System,
        kind: NoteKind::ApprovalRequested,
        reason: "the check passed".to_owned(),
        details: serde_json::Map::new(),
    };
    store.edit(&LockOptions::default()).unwrap().note(note).unwrap();
    assert!(store.status(&id("a")).unwrap().unwrap().awaits_approval);
    change(&store, "a", State::Completed, &human()).unwrap();
    assert_eq!(state(&store, "a"), State::Completed);
}

#[test]
fn the_owner_of_a_claim_can_be_named_and_a_claim_after_a_crash_makes_the_contract_ready_first() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    add(&store, &[contract("a", &[]), contract("b", &["a"])]).unwrap();
    complete(&store, "a");
    // A crash between the two lines of one change leaves the first one.
    let text = sandbox.text();
    let cut = text.trim_end().rfind('\n').unwrap() + 1;
    counterproof_store::write::write(
        &sandbox.path(),
        &text.as_bytes()[..cut],
        counterproof_store::write::Durability::Cached,
    )
    .unwrap();
    let store = sandbox.store();
    assert_eq!(state(&store, "b"), State::Pending);
    let request = NewTransition {
        key: key("b"),
        to: State::Claimed,
        actor: human(),
        reason: "for the night".to_owned(),
        owner: Some("worker".to_owned()),
        details: serde_json::Map::new(),
    };
    store.edit(&LockOptions::default()).unwrap().transition(request, now()).unwrap();
    let status = store.status(&id("b")).unwrap().unwrap();
    assert_eq!((status.state, status.owner.as_deref()), (State::Claimed, Some("worker")));
}

#[test]
fn the_status_has_the_project_and_a_refused_rollback_until_the_next_transition() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    add(&store, &[contract("shop/a", &[]), contract("b", &[])]).unwrap();
    for to in [State::Claimed, State::Executing, State::Failed] {
        change(&store, "shop/a", to, &agent("x")).unwrap();
    }
    let status = || store.status(&id("shop/a")).unwrap().unwrap();
    assert_eq!((status().project.as_str(), status().rollback_refused), ("shop", false));
    let note = Note {
        id: id("shop/a"),
        version: std::num::NonZeroU32::MIN,
        at: now(),
        actor: Actor::System,
        kind: NoteKind::NotRolledBack,
        reason: "other work would be lost".to_owned(),
        details: serde_json::Map::new(),
    };
    store.edit(&LockOptions::default()).unwrap().note(note).unwrap();
    assert!(status().rollback_refused && sandbox.store().status(&id("shop/a")).unwrap().unwrap().rollback_refused);
    assert_eq!(store.counts().unwrap().into_iter().collect::<Vec<_>>(), [(State::Ready, 1), (State::Failed, 1)]);
    change(&store, "shop/a", State::Ready, &human()).unwrap();
    assert!(!status().rollback_refused);
}

#[test]
fn a_contract_that_a_crash_left_pending_becomes_ready_by_adding_it_again_or_by_a_person() {
    for is_added in [true, false] {
        let sandbox = Sandbox::new();
        let batch = [contract("a", &[]), contract("b", &["a"]), contract("a", &[])];
        add(&sandbox.store(), &batch).unwrap();
        let text = sandbox.text();
        // The lines of the contracts have reached the disk, and the line that `a` is ready has not.
        let cut = text.trim_end().rfind('\n').unwrap() + 1;
        let lines = &text.as_bytes()[..cut];
        counterproof_store::write::write(&sandbox.path(), lines, counterproof_store::write::Durability::Cached)
            .unwrap();
        let store = sandbox.store();
        assert_eq!((state(&store, "a"), state(&store, "b")), (State::Pending, State::Pending));
        assert_eq!(code(change(&store, "a", State::Ready, &agent("x"))).0, "not_allowed");
        assert_eq!(code(change(&store, "b", State::Ready, &human())).0, "dependency_not_met");
        if is_added {
            let added = add(&store, &batch).unwrap();
            assert_eq!((added[0].is_new, added[0].state), (false, State::Ready));
        } else {
            assert_eq!(change(&store, "a", State::Ready, &human()).unwrap().actor, Actor::System);
        }
        assert_eq!(sandbox.text(), text);
        assert_eq!(code(change(&store, "a", State::Ready, &human())).0, "invalid_transition");
    }
}
