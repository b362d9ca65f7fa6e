//! Graphs for tests.

use std::num::NonZeroU32;

use counterproof_contracts::graph::{Graph, GraphContract, GraphError};
use counterproof_contracts::{ContractId, State};
use proptest::prelude::*;

/// The graph of contracts with these numbers as dependencies.
pub(crate) fn graph_of(dependencies: &[Vec<usize>], summary: &str) -> Result<Graph, GraphError> {
    let id = |number: usize| -> ContractId { format!("shop/c{number:03}").parse().unwrap() };
    let contracts = dependencies.iter().enumerate().map(|(number, dependencies)| GraphContract {
        id: id(number),
        version: NonZeroU32::MIN,
        state: State::ALL[number % State::ALL.len()],
        summary: summary.to_owned(),
        dependencies: dependencies.iter().map(|&it| id(it)).collect(),
        is_selected: false,
    });
    Graph::new(contracts.collect())
}

/// Dependencies without a cycle: of contracts with a lower number in a hidden order.
pub(crate) fn acyclic() -> impl Strategy<Value = Vec<Vec<usize>>> {
    (1_usize..24).prop_flat_map(|count| {
        let order = Just((0..count).collect::<Vec<_>>()).prop_shuffle();
        let below = proptest::collection::vec(proptest::collection::vec(0..count, 0..4), count);
        (order, below).prop_map(|(order, below)| {
            let keep = |from: usize, to: &usize| order[*to] < order[from];
            below
                .into_iter()
                .enumerate()
                .map(|(from, to)| to.into_iter().filter(|it| keep(from, it)).collect())
                .collect()
        })
    })
}
