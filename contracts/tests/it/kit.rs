//! Contracts and stores for tests.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_contracts::store::{Added, NewTransition};
use counterproof_contracts::{Actor, Contract, ContractId, ContractKey, State, Store, StoreError, Transition};
use counterproof_store::line_log::LockOptions;
use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The example of the contract schema.
pub(crate) fn example() -> Value {
    serde_json::from_str(include_str!("../example.json")).unwrap()
}

/// A store in a temporary folder.
pub(crate) struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().join("contracts.jsonl")
    }

    pub(crate) fn store(&self) -> Store {
        Store::new(self.path())
    }

    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap()
    }
}

pub(crate) fn now() -> Timestamp {
    "2026-01-31T12:00:00Z".parse().unwrap()
}

pub(crate) fn id(text: &str) -> ContractId {
    text.parse().unwrap()
}

pub(crate) fn key(text: &str) -> ContractKey {
    text.parse().unwrap()
}

/// A contract with these dependencies. `name` is an id with a version, such as `a@2`.
pub(crate) fn contract(name: &str, dependencies: &[&str]) -> Contract {
    let key = key(name);
    let document: Value = json!({
        "id": key.id, "version": key.version.map_or(1, std::num::NonZeroU32::get), "created_at": "2026-01-31T12:00:00Z",
        "input": {"type": "task", "data": {}},
        "output": {"type": "result", "schema": {"ok": "boolean"}},
        "verification": {"command": "true"},
        "rollback": {"strategy": "restore_snapshot"},
        "dependencies": dependencies,
    });
    serde_json::from_value(document).unwrap()
}

pub(crate) fn add(store: &Store, contracts: &[Contract]) -> Result<Vec<Added>, StoreError> {
    store.edit(&LockOptions::default())?.add(contracts, now())
}

pub(crate) fn change(store: &Store, name: &str, to: State, actor: &Actor) -> Result<Transition, StoreError> {
    let request = NewTransition {
        key: key(name),
        to,
        actor: actor.clone(),
        reason: "test".to_owned(),
        owner: None,
        details: serde_json::Map::new(),
    };
    store.edit(&LockOptions::default())?.transition(request, now())
}

pub(crate) fn agent(name: &str) -> Actor {
    Actor::Agent(name.to_owned())
}

pub(crate) fn human() -> Actor {
    Actor::Human("ada".to_owned())
}

pub(crate) fn state(store: &Store, name: &str) -> State {
    store.status(&id(name)).unwrap().unwrap().state
}

/// Moves a ready contract to completed.
pub(crate) fn complete(store: &Store, name: &str) {
    let owner = agent("a");
    for (to, actor) in [
        (State::Claimed, &owner),
        (State::Executing, &owner),
        (State::Verifying, &owner),
        (State::Completed, &Actor::System),
    ] {
        change(store, name, to, actor).unwrap();
    }
}
