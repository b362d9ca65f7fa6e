//! The graph as a value: contracts in a topological order, and their dependencies.

use std::num::NonZeroU32;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use super::GraphError;
use crate::contract::ContractId;
use crate::lifecycle::State;
use crate::store::find_cycle;

/// The latest versions of contracts and their dependencies, without a cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    pub id: ContractId,
    pub version: NonZeroU32,
    pub state: State,
    /// One line for people, or the id. Written by others, so it may contain any character.
    pub summary: String,
    /// The length of the longest chain of dependencies in this graph that ends here.
    pub depth: usize,
    /// True if the graph is the part around this contract and others.
    pub is_selected: bool,
    /// The number of dependencies that are not in this part of the graph, or not in the store.
    pub outside_dependencies: usize,
}

/// A dependency, as indexes of [`Graph::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The contract that must be completed first.
    pub dependency: usize,
    pub dependent: usize,
}

#[derive(Debug, Clone)]
pub struct GraphContract {
    pub id: ContractId,
    pub version: NonZeroU32,
    pub state: State,
    pub summary: String,
    pub dependencies: Vec<ContractId>,
    pub is_selected: bool,
}

impl Graph {
    /// Orders contracts by depth, then by id.
    pub fn new(mut contracts: Vec<GraphContract>) -> Result<Self, GraphError> {
        // Sorted by id, so that equal stores give equal graphs and ids are found by a binary search.
        contracts.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        let index_of = |id: &ContractId| contracts.binary_search_by(|it| it.id.cmp(id)).ok();
        let mut edges = Vec::new();
        let mut outside = vec![0; contracts.len()];
        for (dependent, contract) in contracts.iter().enumerate() {
            for id in &contract.dependencies {
                match index_of(id) {
                    Some(dependency) => edges.push(Edge { dependency, dependent }),
                    // In another part of the graph, or not in the store yet.
                    None => outside[dependent] += 1,
                }
            }
        }
        // A contract may name a dependency twice.
        edges.sort_unstable();
        edges.dedup();
        // The order below needs an acyclic graph, and an edited file can have a cycle.
        let depths = depths(contracts.len(), &edges).ok_or_else(|| GraphError::Circular(cycle(&contracts)))?;
        let mut order: Vec<usize> = (0..contracts.len()).collect();
        // Stable: contracts of one depth stay in the order of their ids.
        order.sort_by_key(|&index| depths[index]);
        let mut places = vec![0; order.len()];
        for (place, &index) in order.iter().enumerate() {
            places[index] = place;
        }
        for edge in &mut edges {
            *edge = Edge { dependency: places[edge.dependency], dependent: places[edge.dependent] };
        }
        edges.sort_unstable();
        let mut nodes: Vec<(usize, Node)> = Vec::with_capacity(contracts.len());
        for (index, contract) in contracts.into_iter().enumerate() {
            let GraphContract { id, version, state, summary, is_selected, .. } = contract;
            let (depth, outside_dependencies) = (depths[index], outside[index]);
            nodes.push((places[index], Node { id, version, state, summary, depth, is_selected, outside_dependencies }));
        }
        nodes.sort_unstable_by_key(|(place, _)| *place);
        Ok(Self { nodes: nodes.into_iter().map(|(_, node)| node).collect(), edges })
    }

    /// Returns the contracts in a topological order: by depth, then by id.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    pub fn layers(&self) -> impl Iterator<Item = &[Node]> {
        self.nodes.chunk_by(|a, b| a.depth == b.depth)
    }
}

impl Serialize for Graph {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct NamedEdge<'a> {
            from: &'a ContractId,
            to: &'a ContractId,
        }

        let id = |index: usize| &self.nodes[index].id;
        let named = self.edges.iter().map(|edge| NamedEdge { from: id(edge.dependency), to: id(edge.dependent) });
        let mut document = serializer.serialize_struct("Graph", 2)?;
        document.serialize_field("nodes", &self.nodes)?;
        document.serialize_field("edges", &named.collect::<Vec<_>>())?;
        document.end()
    }
}

/// Returns the depth of each contract, or `None` if there is a cycle. The edges are sorted.
fn depths(count: usize, edges: &[Edge]) -> Option<Vec<usize>> {
    let mut open = vec![0_usize; count];
    for edge in edges {
        open[edge.dependent] += 1;
    }
    let mut depths = vec![0; count];
    let mut ready: Vec<usize> = (0..count).filter(|&index| open[index] == 0).collect();
    let mut finished = 0;
    while let Some(index) = ready.pop() {
        finished += 1;
        // The edges are sorted by their dependency, so its dependents are adjacent.
        let start = edges.partition_point(|edge| edge.dependency < index);
        for edge in edges[start..].iter().take_while(|edge| edge.dependency == index) {
            let dependent = edge.dependent;
            depths[dependent] = depths[dependent].max(depths[index] + 1);
            open[dependent] -= 1;
            if open[dependent] == 0 {
                ready.push(dependent);
            }
        }
    }
    (finished == count).then_some(depths)
}

fn cycle(contracts: &[GraphContract]) -> Vec<ContractId> {
    let ids: Vec<&ContractId> = contracts.iter().map(|it| &it.id).collect();
    let cycle = find_cycle(&ids, |id| {
        let contract = contracts.binary_search_by(|it| it.id.cmp(id));
        contract.map_or_else(|_| Vec::new(), |index| contracts[index].dependencies.clone())
    });
    cycle.unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

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

    #[test]
    fn contracts_are_ordered_by_depth_then_by_id() {
        let graph = graph_of(&[vec![2], vec![], vec![], vec![0, 1, 1]], "x").unwrap();
        let ids: Vec<_> = graph.nodes().iter().map(|node| (node.id.as_str(), node.depth)).collect();
        assert_eq!(ids, [("shop/c001", 0), ("shop/c002", 0), ("shop/c000", 1), ("shop/c003", 2)]);
        let document = serde_json::to_value(&graph).unwrap();
        let edges: Vec<_> = document["edges"].as_array().unwrap().iter().map(|it| [&it["from"], &it["to"]]).collect();
        assert_eq!(edges, [["shop/c001", "shop/c003"], ["shop/c002", "shop/c000"], ["shop/c000", "shop/c003"]]);
    }

    #[test]
    fn a_cycle_is_an_error_that_names_the_contracts_and_a_missing_dependency_is_counted() {
        let error = graph_of(&[vec![1], vec![0], vec![]], "x").unwrap_err();
        assert_eq!(error.to_string(), "circular dependency: `shop/c000` → `shop/c001` → `shop/c000`");
        // It may be added later.
        let graph = graph_of(&[vec![7]], "x").unwrap();
        assert_eq!((graph.nodes()[0].outside_dependencies, graph.edges().len()), (1, 0));
    }

    proptest! {
        #[test]
        fn each_contract_is_one_layer_after_its_last_dependency(dependencies in acyclic()) {
            let graph = graph_of(&dependencies, "x").unwrap();
            prop_assert_eq!(graph.nodes().len(), dependencies.len());
            for (index, node) in graph.nodes().iter().enumerate() {
                let below = graph.edges().iter().filter(|edge| edge.dependent == index);
                let deepest = below.map(|edge| graph.nodes()[edge.dependency].depth + 1).max();
                prop_assert_eq!(node.depth, deepest.unwrap_or(0));
            }
            prop_assert!(graph.edges().iter().all(|edge| edge.dependency < edge.dependent));
            prop_assert!(graph.layers().enumerate().all(|(depth, layer)| layer.iter().all(|node| node.depth == depth)));
        }
    }
}
