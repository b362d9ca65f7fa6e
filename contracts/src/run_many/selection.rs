//! Which contracts a run executes, and in which order.

use std::collections::{BTreeMap, BTreeSet};
use std::env;

use camino::Utf8Path;
use counterproof_store::read_file;
use serde_json::Value;

use crate::contract::{Contract, ContractId, ContractKey, RollbackStrategy};
use crate::execution::{OutputSource, RollbackMode, RunSettings, rollback_problem, unavailable, was_interrupted};
use crate::lifecycle::State;
use crate::process::MAX_AGENT_OUTPUT_BYTES;
use crate::store::{Store, StoreError, VersionHistory};
use crate::verification::{OutputCheck, OutputSchema, VerificationPlan};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    Ids(Vec<ContractId>),
    /// Every contract that is pending or ready, and those of this owner whose execution was interrupted.
    All {
        owner: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Selected {
    /// Its latest version.
    pub contract: Contract,
    pub state: State,
    /// Its dependencies within the selection.
    pub after: Vec<ContractId>,
    /// Its open dependencies outside of the selection, with their states.
    pub open: Vec<(ContractId, State)>,
}

#[derive(Debug, thiserror::Error)]
pub enum SelectionError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("`{0}` is named twice")]
    Twice(ContractId),
}

/// Returns the selected contracts: each one after its dependencies, otherwise in the order of their ids.
pub fn select(store: &Store, selection: &Selection) -> Result<Vec<Selected>, SelectionError> {
    let mut found: BTreeMap<ContractId, VersionHistory> = BTreeMap::new();
    for id in ids(store, selection)? {
        let version = store.version(&ContractKey { id: id.clone(), version: None })?;
        // The second execution would only wait for the first, which holds the contract.
        if found.insert(id.clone(), version).is_some() {
            return Err(SelectionError::Twice(id));
        }
    }
    let mut selected = BTreeMap::new();
    for (id, version) in &found {
        let (mut after, mut open) = (Vec::new(), Vec::new());
        for dependency in version.contract.dependencies() {
            if found.contains_key(dependency) {
                after.push(dependency.clone());
            } else {
                let state = store.status(dependency)?.map_or(State::Pending, |status| status.state);
                open.extend((state != State::Completed).then(|| (dependency.clone(), state)));
            }
        }
        let state = version.state();
        selected.insert(id.clone(), Selected { contract: version.contract.clone(), state, after, open });
    }
    Ok(in_order(selected))
}

fn ids(store: &Store, selection: &Selection) -> Result<Vec<ContractId>, StoreError> {
    let owner = match selection {
        Selection::Ids(ids) => return Ok(ids.clone()),
        Selection::All { owner } => owner,
    };
    let mut candidates = Vec::new();
    for status in store.statuses()? {
        // What waits for a person is not continued by a run.
        let is_own = status.owner.as_ref() == Some(owner) && !status.awaits_approval;
        match status.state {
            State::Pending | State::Ready => candidates.push((status.id.clone(), true)),
            State::Failed => candidates.extend(is_own.then(|| (status.id.clone(), false))),
            state if state.is_active() => candidates.extend(is_own.then(|| (status.id.clone(), true))),
            _ => {}
        }
    }
    let mut ids = Vec::new();
    for (id, is_certain) in candidates {
        // A failed contract is executed again only if its execution was interrupted; otherwise a person decides.
        if is_certain || was_interrupted(&store.version(&ContractKey { id: id.clone(), version: None })?) {
            ids.push(id);
        }
    }
    Ok(ids)
}

fn in_order(mut left: BTreeMap<ContractId, Selected>) -> Vec<Selected> {
    let mut ordered = Vec::with_capacity(left.len());
    let mut done: BTreeSet<ContractId> = BTreeSet::new();
    while !left.is_empty() {
        let next: Vec<ContractId> = left
            .iter()
            .filter(|(_, it)| it.after.iter().all(|id| done.contains(id)))
            .map(|(id, _)| id.clone())
            .collect();
        // The store has no cycles, so some contract is always free. Otherwise the rest keeps the order of its ids.
        let next = if next.is_empty() { left.keys().cloned().collect() } else { next };
        for id in next {
            ordered.extend(left.remove(&id));
            done.insert(id);
        }
    }
    ordered
}

/// Characters of a first word that the shell would interpret.
const SPECIAL: &str = "$`\"'\\*?[]{}()<>|&;~!=#";

/// Words that are commands of the shell itself.
const BUILTINS: [&str; 26] = [
    ":", ".", "[", "alias", "cd", "case", "command", "echo", "eval", "exec", "exit", "export", "false", "for", "if",
    "printf", "read", "set", "shift", "test", "trap", "true", "ulimit", "umask", "until", "while",
];

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Preview {
    pub steps: Vec<String>,
    pub problems: Vec<String>,
}

/// Checks everything about the execution of a contract that can be checked without running a command.
pub fn preview(store: &Store, selected: &Selected, settings: &RunSettings) -> Result<Preview, StoreError> {
    let mut preview = Preview::default();
    let contract = &selected.contract;
    check_state(store, selected, settings, &mut preview)?;
    if selected.state == State::Completed {
        preview.steps.push("nothing: the contract is completed".to_owned());
        return Ok(preview);
    }
    for dependency in &selected.after {
        preview.steps.push(format!("waits for `{dependency}`"));
    }
    // All problems are collected, so that one preview is enough.
    if let Err(errors) = VerificationPlan::new(contract) {
        preview.problems.extend(errors.iter().map(ToString::to_string));
    }
    preview_output(contract, settings, &mut preview);
    let command = &contract.verification.command;
    preview.steps.push(format!("verifies with `{}`", one_line(command)));
    let assertions = contract.verification.assertions.as_ref().map_or(0, Vec::len);
    if assertions > 0 {
        preview.steps.push(format!("checks {assertions} assertions"));
    }
    preview.problems.extend(command_problem(command, &settings.workdir));
    match unavailable(contract, store, settings) {
        Ok(conflicts) => preview.problems.extend(conflicts),
        Err(error) => preview.problems.push(error.to_string()),
    }
    preview_rollback(contract, settings, &mut preview);
    match rollback_problem(contract, settings) {
        Ok(problem) => preview.problems.extend(problem),
        Err(error) => preview.problems.push(error.to_string()),
    }
    Ok(preview)
}

fn check_state(
    store: &Store,
    selected: &Selected,
    settings: &RunSettings,
    preview: &mut Preview,
) -> Result<(), StoreError> {
    for (dependency, state) in &selected.open {
        preview.problems.push(match store.status(dependency)? {
            Some(_) => format!("its dependency `{dependency}` is {state}, not completed"),
            None => format!("its dependency `{dependency}` is not in the store"),
        });
    }
    if matches!(selected.state, State::RolledBack | State::Cancelled) {
        preview.problems.push(format!("the contract is {}; add a new version to run it", selected.state));
    }
    let status = store.status(&selected.contract.id)?;
    let owner = status.and_then(|status| status.owner).filter(|owner| *owner != settings.owner);
    if let Some(owner) = owner
        && !selected.state.is_terminal()
    {
        preview.problems.push(format!("the contract is {}; its owner is `{owner}`", selected.state));
    }
    Ok(())
}

fn preview_output(contract: &Contract, settings: &RunSettings, preview: &mut Preview) {
    match (&settings.source, settings.source.file(&contract.id)) {
        (OutputSource::Command(line), _) => {
            preview.steps.push(format!("runs the agent `{}`", one_line(line)));
            preview.problems.extend(command_problem(line, &settings.workdir));
        }
        (_, Some(path)) if path.as_str().is_empty() => {
            preview.problems.push("no output: pass `--output` or `--agent-cmd`".to_owned());
        }
        (_, Some(path)) => {
            preview.steps.push(format!("reads the output `{path}`"));
            preview.problems.extend(output_problem(contract, &path));
        }
        (_, None) => {}
    }
}

fn output_problem(contract: &Contract, path: &Utf8Path) -> Option<String> {
    let bytes = match read_file::read(path, MAX_AGENT_OUTPUT_BYTES) {
        Ok(bytes) => bytes,
        Err(error) => return Some(format!("the output `{path}` cannot be read: {error}")),
    };
    let output: Value = match serde_json::from_slice(&bytes) {
        Ok(output) => output,
        Err(error) => return Some(format!("the output `{path}` is not one JSON value: {error}")),
    };
    match OutputSchema::compile(&contract.output.schema).ok()?.check(&output) {
        OutputCheck::Valid => None,
        OutputCheck::Invalid { violations, .. } => {
            let first = violations.first().map_or_else(String::new, |it| format!(": {} {}", it.pointer, it.message));
            Some(format!("the output `{path}` does not have the declared shape{first}"))
        }
        OutputCheck::Undecided { reason } => Some(format!("the output schema cannot be checked: {reason}")),
    }
}

fn preview_rollback(contract: &Contract, settings: &RunSettings, preview: &mut Preview) {
    let step = match (settings.rollback, contract.rollback.strategy) {
        (RollbackMode::Never, _) => "leaves failed work in place".to_owned(),
        (_, RollbackStrategy::GitReset) => "on failure: resets the repository to the commit of the start".to_owned(),
        (_, RollbackStrategy::RestoreSnapshot) => "on failure: restores the declared paths".to_owned(),
        (_, RollbackStrategy::Custom) => {
            let command = contract.rollback.custom.as_deref().unwrap_or_default();
            preview.problems.extend(command_problem(command, &settings.workdir));
            format!("on failure: runs `{}`", one_line(command))
        }
    };
    preview.steps.push(step);
}

/// Checks that the program of a command line exists. A first word that the shell would expand is not checked.
fn command_problem(line: &str, folder: &Utf8Path) -> Option<String> {
    let Some(word) = line.split_whitespace().next() else { return Some("a command is empty".to_owned()) };
    // Only the shell knows what such a word becomes.
    if word.contains(|c| SPECIAL.contains(c)) || BUILTINS.contains(&word) {
        return None;
    }
    // As the shell does: a word with a slash is a path, any other is looked up.
    let exists = if word.contains('/') {
        is_program(&folder.join(word))
    } else {
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path)
            .any(|folder| Utf8Path::from_path(&folder).is_some_and(|folder| is_program(&folder.join(word))))
    };
    (!exists).then(|| format!("the command `{word}` is not found, or is not executable"))
}

fn is_program(path: &Utf8Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
