//! The states never disagree with the lines, whatever happens to the file.

use std::fs;

use camino::Utf8PathBuf;
use counterproof_contracts::{Actor, State, Store};
use counterproof_store::line_log::LockOptions;
use counterproof_store::write::{Durability, write};
use proptest::prelude::*;

use crate::kit::{Sandbox, add, agent, change, complete, contract, human, id, state};

fn ids(store: &Store) -> Vec<String> {
    let statuses = store.statuses().unwrap();
    statuses.iter().map(|it| format!("{}@{} {}", it.id, it.version, it.state)).collect()
}

#[test]
fn an_index_file_of_an_older_version_is_ignored() {
    let sandbox = Sandbox::new();
    let index: Utf8PathBuf = format!("{}.index", sandbox.path()).into();
    write(&index, b"SQLite format 3\0", Durability::Cached).unwrap();
    add(&sandbox.store(), &[contract("a", &[]), contract("b", &["a"])]).unwrap();
    complete(&sandbox.store(), "a");
    assert_eq!(ids(&sandbox.store()), ["a@1 completed", "b@1 ready"]);
    assert_eq!(fs::read(&index).unwrap(), b"SQLite format 3\0");
}

#[test]
fn an_edited_replaced_or_shortened_file_is_read_anew() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    add(&store, &[contract("a", &[]), contract("b", &[])]).unwrap();
    assert_eq!(ids(&sandbox.store()), ["a@1 ready", "b@1 ready"]);
    let text = sandbox.text();
    // The same length, in place and as a new file.
    let edited = text.replace("\"id\":\"b\"", "\"id\":\"c\"");
    write(&sandbox.path(), edited.as_bytes(), Durability::Cached).unwrap();
    assert_eq!(ids(&sandbox.store()), ["a@1 ready", "c@1 ready"]);
    assert_eq!(ids(&store), ["a@1 ready", "c@1 ready"], "also through a store that was open");
    let shorter = text.lines().next().unwrap().to_owned() + "\n";
    write(&sandbox.path(), shorter.as_bytes(), Durability::Cached).unwrap();
    assert_eq!(ids(&sandbox.store()), ["a@1 pending"]);
    fs::remove_file(sandbox.path()).unwrap();
    assert!(ids(&sandbox.store()).is_empty());
}

#[test]
fn lines_of_another_process_are_seen_by_an_open_store() {
    let sandbox = Sandbox::new();
    let (one, two) = (sandbox.store(), sandbox.store());
    add(&one, &[contract("a", &[])]).unwrap();
    assert_eq!(state(&two, "a"), State::Ready);
    change(&two, "a", State::Claimed, &agent("x")).unwrap();
    assert_eq!(state(&one, "a"), State::Claimed);
}

#[test]
fn a_damaged_line_is_an_error_with_file_and_line() {
    let sandbox = Sandbox::new();
    add(&sandbox.store(), &[contract("a", &[]), contract("b", &[])]).unwrap();
    let good = sandbox.text();
    for (damage, expected) in [
        (good.replacen("{\"id\":\"b\"", "[\"id\":\"b\"", 1), ":2: "),
        (
            good.replacen("\"from\":\"pending\",\"to\":\"ready\"", "\"from\":\"ready\",\"to\":\"claimed\"", 1),
            ":3: `a`: a transition from ready, but the state is pending",
        ),
        (good.lines().skip(1).map(|line| line.to_owned() + "\n").collect(), ":2: no contract `a` before this line"),
    ] {
        write(&sandbox.path(), damage.as_bytes(), Durability::Cached).unwrap();
        let error = sandbox.store().status(&id("a")).unwrap_err();
        assert_eq!(error.code(), "store_corrupt");
        assert!(error.to_string().contains(expected), "{error}");
        let error = sandbox.store().edit(&LockOptions::default()).unwrap_err();
        assert_eq!(error.code(), "store_corrupt", "nothing is appended to a damaged store");
    }
    write(&sandbox.path(), good.as_bytes(), Durability::Cached).unwrap();
    assert_eq!(state(&sandbox.store(), "b"), State::Ready);
}

#[test]
fn a_file_that_is_cut_at_any_byte_keeps_every_whole_line() {
    let sandbox = Sandbox::new();
    add(&sandbox.store(), &[contract("a", &[]), contract("b", &["a"])]).unwrap();
    complete(&sandbox.store(), "a");
    let text = sandbox.text();
    let start = text.trim_end().rfind('\n').unwrap() + 1;
    // Every cut of the last line, and of the one before it.
    let before = text[..start - 1].rfind('\n').unwrap() + 1;
    for cut in before..text.len() {
        write(&sandbox.path(), &text.as_bytes()[..cut], Durability::Cached).unwrap();
        let store = sandbox.store();
        let whole = text[..cut].matches('\n').count();
        let torn = cut - text[..cut].rfind('\n').map_or(0, |it| it + 1);
        assert_eq!(store.torn_bytes().unwrap(), torn as u64);
        drop(store.edit(&LockOptions::default()).unwrap());
        let lines = sandbox.text();
        assert!(lines.ends_with('\n') && text.starts_with(lines.as_str()), "{cut}");
        let completed = usize::from(text.as_bytes()[cut] == b'\n' && torn > 0);
        assert_eq!(lines.matches('\n').count(), whole + completed, "{cut}");
    }
}

#[test]
fn a_change_that_is_cut_at_any_byte_leaves_a_whole_store_and_can_be_made_again() {
    let sandbox = Sandbox::new();
    let batch = [contract("c", &["a", "b"]), contract("a", &[]), contract("b", &["a"])];
    let steps: [&dyn Fn(&Store); 2] = [
        // Three contracts, and a line that `a` is ready.
        &|store| add(store, &batch).map(drop).unwrap(),
        // A line that `a` is completed, and a line that `b` is ready.
        &|store| {
            if state(store, "a") != State::Completed {
                change(store, "a", State::Completed, &Actor::System).unwrap();
            }
            if state(store, "b") != State::Ready {
                change(store, "b", State::Ready, &human()).unwrap();
            }
        },
    ];
    for step in steps {
        let before = if sandbox.path().exists() { sandbox.text() } else { String::new() };
        step(&sandbox.store());
        let (text, expected) = (sandbox.text(), ids(&sandbox.store()));
        for cut in before.len()..text.len() {
            write(&sandbox.path(), &text.as_bytes()[..cut], Durability::Cached).unwrap();
            let store = sandbox.store();
            let whole = text[..cut].rfind('\n').map_or(0, |it| it + 1);
            assert_eq!(store.torn_bytes().unwrap(), (cut - whole) as u64, "{cut}");
            // A torn line that lacks only its newline is completed, and then counts.
            drop(store.edit(&LockOptions::default()).unwrap());
            step(&store);
            assert!(sandbox.text().starts_with(&text[..whole]), "{cut}");
            assert_eq!(ids(&sandbox.store()), expected, "{cut}");
            // A store keeps at most 1,000 torn lines.
            let _ = fs::remove_file(format!("{}.torn-1", sandbox.path()));
        }
        write(&sandbox.path(), text.as_bytes(), Durability::Cached).unwrap();
        if state(&sandbox.store(), "a") == State::Ready {
            for to in [State::Claimed, State::Executing, State::Verifying] {
                change(&sandbox.store(), "a", to, &agent("x")).unwrap();
            }
        }
    }
}

#[test]
fn compaction_keeps_the_latest_versions_and_the_whole_old_store() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    add(&store, &[contract("a", &[]), contract("b", &[])]).unwrap();
    change(&store, "a", State::Claimed, &agent("x")).unwrap();
    change(&store, "a", State::Ready, &agent("x")).unwrap();
    add(&store, &[contract("a@2", &[])]).unwrap();
    let (before, states) = (sandbox.text(), ids(&store));
    let plan = store.compaction_plan().unwrap();
    let archive = Utf8PathBuf::from(format!("{}.before", sandbox.path()));
    let compacted = store.edit(&LockOptions::default()).unwrap().compact(archive.clone()).unwrap();
    assert_eq!((compacted.plan, plan.removed_lines, plan.kept_lines), (plan, 4, 4));
    assert_eq!(fs::read_to_string(&archive).unwrap(), before);
    assert_eq!(ids(&store), states);
    assert_eq!(ids(&sandbox.store()), states);
    assert_eq!(store.history(&id("a")).unwrap().versions.len(), 1);
    // The archive is a store as well.
    assert_eq!(ids(&Store::new(archive.clone())), states);
    let again = store.edit(&LockOptions::default()).unwrap().compact(archive);
    assert!(again.is_err(), "an archive is never overwritten");
    add(&store, &[contract("a@3", &[])]).unwrap();
}

#[test]
fn a_reader_finds_its_lines_after_another_process_has_compacted_the_store() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    add(&store, &[contract("a", &[]), contract("b", &[])]).unwrap();
    add(&store, &[contract("a@2", &[])]).unwrap();
    let many: Vec<_> = (0..600).map(|it| contract(&format!("c{it:03}"), &[])).collect();
    add(&store, &many).unwrap();
    let compact = |name: &str| {
        let archive = Utf8PathBuf::from(format!("{}.{name}", sandbox.path()));
        sandbox.store().edit(&LockOptions::default()).unwrap().compact(archive).unwrap();
    };
    for (number, status) in store.statuses().unwrap().iter().enumerate() {
        if number == 1 {
            compact("one");
        }
        let contract = store.latest(status).unwrap();
        assert_eq!((&contract.id, contract.version), (&status.id, status.version));
    }
    add(&store, &[contract("a@3", &[])]).unwrap();
    let status = store.status(&id("c007")).unwrap().unwrap();
    let superseded = store.status(&id("b")).unwrap().unwrap();
    add(&store, &[contract("b@2", &[])]).unwrap();
    compact("two");
    assert_eq!(store.latest(&status).unwrap().id, id("c007"));
    let error = store.latest(&superseded).unwrap_err();
    assert_eq!((error.code(), error.hint()), ("storage_error", Some("try again")), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A store that stays open, and one that reads the whole file for each step, agree with a copy of the file.
    #[test]
    fn any_sequence_of_changes_gives_the_same_states_to_a_store_that_stays_open_and_to_a_new_one(
        steps in proptest::collection::vec((0_usize..4, 0_usize..10, any::<bool>()), 1..30)
    ) {
        let sandbox = Sandbox::new();
        let open = sandbox.store();
        add(&open, &[contract("c0", &[]), contract("c1", &["c0"]), contract("c2", &["c0", "c1"]), contract("c3", &[])]).unwrap();
        for (which, to, is_system) in steps {
            let actor = if is_system { Actor::System } else { agent("x") };
            let _ = change(&sandbox.store(), &format!("c{which}"), State::ALL[to], &actor);
        }
        let followed = ids(&open);
        let copy = Sandbox::new();
        write(&copy.path(), sandbox.text().as_bytes(), Durability::Cached).unwrap();
        prop_assert_eq!(ids(&copy.store()), followed.clone());
        prop_assert_eq!(ids(&sandbox.store()), followed);
    }
}
