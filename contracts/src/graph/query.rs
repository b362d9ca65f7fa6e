//! Reads a graph from a store: all contracts, or the part around some of them.

use std::collections::{BTreeMap, BTreeSet};

use super::dependency_graph::{Contents, GraphContract};
use super::{Graph, GraphError};
use crate::contract::{Contract, ContractId, ContractKey};
use crate::store::{Status, Store, StoreError};

/// The limit of graphs as text, in contracts.
pub const MAX_NODES: usize = 100_000;

/// The limit of graphs as pages, in contracts.
pub const MAX_HTML_NODES: usize = 5_000;

/// Which part of the graph to read.
#[derive(Debug, Clone, Copy)]
pub struct GraphQuery<'a> {
    /// These contracts, everything that they depend on, and everything that depends on them. Empty means all contracts.
    pub around: &'a [ContractId],
    /// The limit, in contracts.
    pub max_nodes: usize,
}

impl Graph {
    pub fn read(store: &Store, query: &GraphQuery<'_>) -> Result<Self, GraphError> {
        if query.around.is_empty() {
            return Self::new(all(store, query.max_nodes)?, Contents::All);
        }
        let mut part = Part { store, limit: query.max_nodes, contracts: BTreeMap::new() };
        part.walk(query.around, |_, contract| Ok(contract.dependencies.clone()))?;
        part.walk(query.around, |store, contract| {
            Ok(store.dependents(&contract.id)?.into_iter().map(|status| status.id).collect())
        })?;
        for id in query.around {
            if let Some(contract) = part.contracts.get_mut(id) {
                contract.is_selected = true;
            }
        }
        Self::new(part.contracts.into_values().collect(), Contents::Part)
    }
}

fn all(store: &Store, limit: usize) -> Result<Vec<GraphContract>, GraphError> {
    // Counted first: the contracts of a store over the limit are not read at all.
    let found: u64 = store.counts()?.values().sum();
    if found > limit as u64 {
        return Err(GraphError::TooLarge { found, limit });
    }
    let mut contracts = Vec::new();
    store.for_each_latest(None, |status, contract| {
        contracts.push(graph_contract(status, contract));
        Ok(())
    })?;
    Ok(contracts)
}

fn graph_contract(status: &Status, contract: &Contract) -> GraphContract {
    GraphContract {
        id: contract.id.clone(),
        version: contract.version,
        state: status.state,
        summary: contract.summary().chars().take(MAX_SUMMARY).collect(),
        dependencies: contract.dependencies().to_vec(),
        is_selected: false,
    }
}

/// Longest summary in a graph, in characters.
const MAX_SUMMARY: usize = 200;

/// The part of the graph that is read so far.
struct Part<'s> {
    store: &'s Store,
    limit: usize,
    contracts: BTreeMap<ContractId, GraphContract>,
}

impl Part<'_> {
    /// Adds the contracts that can be reached from `start`.
    fn walk(
        &mut self,
        start: &[ContractId],
        next: impl Fn(&Store, &GraphContract) -> Result<Vec<ContractId>, StoreError>,
    ) -> Result<(), GraphError> {
        let mut visited: BTreeSet<ContractId> = start.iter().cloned().collect();
        let mut waiting: Vec<ContractId> = visited.iter().cloned().collect();
        while let Some(id) = waiting.pop() {
            if !self.contracts.contains_key(&id) {
                let contract = self.contract(&id)?;
                self.contracts.insert(id.clone(), contract);
            }
            for id in next(self.store, &self.contracts[&id])? {
                if visited.insert(id.clone()) {
                    waiting.push(id);
                }
            }
        }
        Ok(())
    }

    fn contract(&self, id: &ContractId) -> Result<GraphContract, GraphError> {
        if self.contracts.len() == self.limit {
            return Err(GraphError::TooLarge { found: self.limit as u64 + 1, limit: self.limit });
        }
        let not_found = || StoreError::NotFound(ContractKey { id: id.clone(), version: None });
        let status = self.store.status(id)?.ok_or_else(not_found)?;
        Ok(graph_contract(&status, &self.store.latest(&status)?))
    }
}
