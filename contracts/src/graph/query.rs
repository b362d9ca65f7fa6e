//! Reads a graph from a store: all contracts, or the part around some of them.

use std::collections::{BTreeMap, BTreeSet};

use super::dependency_graph::GraphContract;
use super::{Graph, GraphError};
use crate::contract::{ContractId, ContractKey};
use crate::store::{Status, Store, StoreError};

/// The limit of graphs as text, in contracts.
pub const MAX_NODES: usize = 100_000;

/// The limit of graphs as pages, in contracts.
pub const MAX_HTML_NODES: usize = 5_000;

#[derive(Debug, Clone, Copy)]
pub struct GraphQuery<'a> {
    /// These contracts, everything that they depend on, and everything that depends on them. Empty means all contracts.
    pub around: &'a [ContractId],
    pub max_nodes: usize,
}

impl Graph {
    pub fn read(store: &Store, query: &GraphQuery<'_>) -> Result<Self, GraphError> {
        if query.around.is_empty() {
            return Self::new(all(store, query.max_nodes)?);
        }
        let mut part = Part { store, limit: query.max_nodes, contracts: BTreeMap::new() };
        // Each direction on its own: the dependents of a dependency are not around the selection.
        part.walk(query.around, |_, contract| Ok(contract.dependencies.clone()))?;
        part.walk(query.around, |store, contract| {
            Ok(store.dependents(&contract.id)?.into_iter().map(|status| status.id).collect())
        })?;
        for id in query.around {
            if let Some(contract) = part.contracts.get_mut(id) {
                contract.is_selected = true;
            }
        }
        Self::new(part.contracts.into_values().collect())
    }
}

fn all(store: &Store, limit: usize) -> Result<Vec<GraphContract>, GraphError> {
    let statuses = store.statuses()?;
    if statuses.len() > limit {
        return Err(GraphError::TooLarge { found: statuses.len() as u64, limit });
    }
    Ok(statuses.into_iter().map(graph_contract).collect())
}

fn graph_contract(status: Status) -> GraphContract {
    GraphContract {
        id: status.id,
        version: status.version,
        state: status.state,
        summary: status.summary.chars().take(MAX_SUMMARY).collect(),
        dependencies: status.dependencies,
        is_selected: false,
    }
}

/// Longest summary in a graph, in characters.
const MAX_SUMMARY: usize = 200;

struct Part<'s> {
    store: &'s Store,
    limit: usize,
    contracts: BTreeMap<ContractId, GraphContract>,
}

impl Part<'_> {
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
                // A dependency may be added later.
                if visited.insert(id.clone()) && self.store.status(&id)?.is_some() {
                    waiting.push(id);
                }
            }
        }
        Ok(())
    }

    fn contract(&self, id: &ContractId) -> Result<GraphContract, GraphError> {
        // Checked while walking: the part around one contract can be the whole store.
        if self.contracts.len() == self.limit {
            return Err(GraphError::TooLarge { found: self.limit as u64 + 1, limit: self.limit });
        }
        let not_found = || StoreError::NotFound(ContractKey { id: id.clone(), version: None });
        Ok(graph_contract(self.store.status(id)?.ok_or_else(not_found)?))
    }
}
