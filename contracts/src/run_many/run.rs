//! The workers of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::Selected;
use crate::contract::{ContractId, ContractKey};
use crate::execution::{Execution, ExecutionError, RunSettings, VerificationStatus, execute};
use crate::lifecycle::State;
use crate::store::{Store, StoreError};

#[derive(Debug)]
pub enum ContractEnd {
    Executed(Box<Execution>),
    Refused(ExecutionError),
    Blocked {
        by: ContractId,
        /// Its state before the run, if it is not a part of the run.
        state: Option<State>,
    },
    /// The run was interrupted before it began.
    NotBegun,
    /// The run was interrupted between two of its steps. The next run continues there.
    Interrupted,
}

#[derive(Debug)]
pub enum RunStep<'a> {
    Began(&'a Selected),
    Ended(&'a Selected, &'a ContractEnd),
}

/// Receives the steps of a run, from several threads.
pub type RunObserver<'o> = dyn Fn(&RunStep<'_>) + Sync + 'o;

impl ContractEnd {
    fn is_interrupted(&self) -> bool {
        match self {
            ContractEnd::Executed(execution) => execution.verdict == VerificationStatus::Interrupted,
            ContractEnd::Interrupted => true,
            ContractEnd::Refused(_) | ContractEnd::Blocked { .. } | ContractEnd::NotBegun => false,
        }
    }

    pub fn is_met(&self) -> bool {
        matches!(self, ContractEnd::Executed(execution) if execution.verdict.is_met())
    }
}

/// Executes contracts, as many at the same time as `jobs` and their dependencies allow. Returns how each one ended, in the same
/// order.
pub fn run_many(
    store: &Store,
    selected: &[Selected],
    settings: &RunSettings,
    jobs: NonZeroUsize,
    observer: &RunObserver<'_>,
) -> Result<Vec<ContractEnd>, StoreError> {
    let mut ends: Vec<Option<ContractEnd>> = selected.iter().map(|_| None).collect();
    let queue = Queue::new(selected.iter().map(|it| (it.contract.id.clone(), it.after.iter().cloned().collect())));
    let shared = Shared { state: Mutex::new((queue, &mut ends)), changed: Condvar::new(), selected, observer };
    let workers = jobs.get().min(selected.len().max(1));
    // The states that a store has read belong to one thread. Each worker reads the file once.
    let stores: Vec<Store> = (0..workers).map(|_| Store::new(store.path())).collect();
    // Threads and not tasks: an execution blocks on its command.
    thread::scope(|scope| {
        for store in stores {
            let shared = &shared;
            scope.spawn(move || work(&store, settings, shared));
        }
    });
    drop(shared);
    Ok(ends.into_iter().map(|end| end.unwrap_or(ContractEnd::NotBegun)).collect())
}

struct Shared<'a> {
    state: Mutex<(Queue, &'a mut Vec<Option<ContractEnd>>)>,
    changed: Condvar,
    selected: &'a [Selected],
    observer: &'a RunObserver<'a>,
}

type Guard<'g, 'a> = MutexGuard<'g, (Queue, &'a mut Vec<Option<ContractEnd>>)>;

impl<'a> Shared<'a> {
    fn lock(&self) -> Guard<'_, 'a> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the index of the next contract. `None` if the worker can end.
    fn next(&self, settings: &RunSettings) -> Option<usize> {
        let mut state = self.lock();
        loop {
            // Looked at under the lock, so that no contract begins after the others were ended.
            if settings.cancellation.is_cancelled() {
                for index in state.0.clear() {
                    self.end(&mut state, index, ContractEnd::NotBegun);
                }
            }
            match state.0.next() {
                Next::Execute(index) => return Some(index),
                Next::End => return None,
                Next::Wait => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn end(&self, state: &mut Guard<'_, 'a>, index: usize, end: ContractEnd) {
        (self.observer)(&RunStep::Ended(&self.selected[index], &end));
        state.1[index] = Some(end);
    }

    fn finish(&self, index: usize, end: ContractEnd) {
        let mut state = self.lock();
        let id = &self.selected[index].contract.id;
        let (is_met, is_interrupted) = (end.is_met(), end.is_interrupted());
        self.end(&mut state, index, end);
        if is_met {
            state.0.met(id);
        } else {
            for (index, by) in state.0.not_met(id) {
                // An interruption says nothing about the contract, so its dependents are not blocked by it.
                let end = if is_interrupted { ContractEnd::NotBegun } else { ContractEnd::Blocked { by, state: None } };
                self.end(&mut state, index, end);
            }
        }
        // All of them: several contracts can become free at once, or none is left.
        self.changed.notify_all();
    }
}

fn work(store: &Store, settings: &RunSettings, shared: &Shared<'_>) {
    while let Some(index) = shared.next(settings) {
        let selected = &shared.selected[index];
        let executed = catch_unwind(AssertUnwindSafe(|| match selected.open.first() {
            // A dependency outside of the run does not change while it lasts, so it blocks at once.
            Some((by, state)) => ContractEnd::Blocked { by: by.clone(), state: Some(*state) },
            None => execute_selected(store, settings, selected, shared.observer),
        }));
        match executed {
            Ok(end) => shared.finish(index, end),
            Err(panic) => {
                // The other workers must not wait for this contract forever.
                shared.finish(index, ContractEnd::Interrupted);
                resume_unwind(panic);
            }
        }
    }
}

fn execute_selected(
    store: &Store,
    settings: &RunSettings,
    selected: &Selected,
    observer: &RunObserver<'_>,
) -> ContractEnd {
    observer(&RunStep::Began(selected));
    // With the version that was selected: another process may have added a newer one since.
    let key = ContractKey { id: selected.contract.id.clone(), version: Some(selected.contract.version) };
    match execute(store, &key, settings) {
        Ok(execution) => ContractEnd::Executed(Box::new(execution)),
        Err(error) if error.is_interruption() => ContractEnd::Interrupted,
        Err(error) => ContractEnd::Refused(error),
    }
}

#[derive(Debug)]
pub(super) struct Queue {
    /// The contracts that have not begun, in order, each with the dependencies that it waits for.
    waiting: Vec<(usize, ContractId, BTreeSet<ContractId>)>,
    running: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Execute(usize),
    Wait,
    End,
}

impl Queue {
    /// Creates a queue of contracts in the order in which they should begin, each with its dependencies.
    pub(super) fn new(contracts: impl Iterator<Item = (ContractId, BTreeSet<ContractId>)>) -> Self {
        let waiting = contracts.enumerate().map(|(index, (id, after))| (index, id, after)).collect();
        Self { waiting, running: 0 }
    }

    pub(super) fn next(&mut self) -> Next {
        match self.waiting.iter().position(|(_, _, after)| after.is_empty()) {
            Some(at) => {
                self.running += 1;
                Next::Execute(self.waiting.remove(at).0)
            }
            // Nothing runs and nothing is free: only a cycle leads here, and waiting for it would never end.
            None if self.waiting.is_empty() || self.running == 0 => Next::End,
            None => Next::Wait,
        }
    }

    /// Ends a contract that is met. Its dependents need no longer wait for it.
    pub(super) fn met(&mut self, id: &ContractId) {
        self.running -= 1;
        for (_, _, after) in &mut self.waiting {
            after.remove(id);
        }
    }

    /// Ends a contract that is not met. Returns the indexes of all contracts that can no longer begin, each with the contract
    /// that it depends on directly.
    pub(super) fn not_met(&mut self, id: &ContractId) -> Vec<(usize, ContractId)> {
        self.running -= 1;
        let mut failed = BTreeSet::from([id.clone()]);
        let mut blocked = BTreeMap::new();
        loop {
            let waiting = self.waiting.iter();
            let next = waiting.enumerate().find_map(|(at, (_, _, after))| {
                let by = after.iter().find(|id| failed.contains(*id))?.clone();
                Some((at, by))
            });
            let Some((at, by)) = next else { return blocked.into_iter().collect() };
            let (index, id, _) = self.waiting.remove(at);
            failed.insert(id);
            blocked.insert(index, by);
        }
    }

    pub(super) fn clear(&mut self) -> Vec<usize> {
        self.waiting.drain(..).map(|(index, _, _)| index).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> ContractId {
        text.parse().unwrap()
    }

    fn queue(contracts: &[(&str, &[&str])]) -> Queue {
        Queue::new(contracts.iter().map(|(name, after)| (id(name), after.iter().map(|it| id(it)).collect())))
    }

    #[test]
    fn a_contract_begins_when_its_dependencies_are_met() {
        let mut queue = queue(&[("a", &[]), ("b", &["a"]), ("c", &[])]);
        assert_eq!((queue.next(), queue.next(), queue.next()), (Next::Execute(0), Next::Execute(2), Next::Wait));
        queue.met(&id("a"));
        assert_eq!((queue.next(), queue.next()), (Next::Execute(1), Next::End));
    }

    #[test]
    fn a_contract_that_is_not_met_blocks_everything_after_it() {
        let mut queue = queue(&[("a", &[]), ("b", &["a"]), ("c", &["b"]), ("d", &[])]);
        assert_eq!(queue.next(), Next::Execute(0));
        assert_eq!(queue.not_met(&id("a")), [(1, id("a")), (2, id("b"))]);
        assert_eq!((queue.next(), queue.next()), (Next::Execute(3), Next::End));
    }
}
