//! Which contract is executed next.

use std::collections::{BTreeMap, BTreeSet};

use crate::contract::ContractId;

/// The contracts of a run that have not ended.
#[derive(Debug)]
pub(super) struct Queue {
    /// The contracts that have not begun, in order, each with the dependencies that it waits for.
    waiting: Vec<(usize, ContractId, BTreeSet<ContractId>)>,
    /// How many are being executed.
    running: usize,
}

/// What a worker does next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Executes the contract with this index.
    Execute(usize),
    /// Waits until another contract has ended.
    Wait,
    /// Ends: nothing is left.
    End,
}

impl Queue {
    /// Creates a queue of contracts in the order in which they should begin, each with its dependencies.
    pub(super) fn new(contracts: impl Iterator<Item = (ContractId, BTreeSet<ContractId>)>) -> Self {
        let waiting = contracts.enumerate().map(|(index, (id, after))| (index, id, after)).collect();
        Self { waiting, running: 0 }
    }

    /// Takes the next contract that can begin.
    pub(super) fn next(&mut self) -> Next {
        match self.waiting.iter().position(|(_, _, after)| after.is_empty()) {
            Some(at) => {
                self.running += 1;
                Next::Execute(self.waiting.remove(at).0)
            }
            None if self.waiting.is_empty() || self.running == 0 => Next::End,
            None => Next::Wait,
        }
    }

    /// Ends a contract that is met: its dependents need no longer wait for it.
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

    /// Removes all contracts that have not begun, and returns their indexes.
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
