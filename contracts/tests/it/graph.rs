//! Reads graphs from stores.

use counterproof_contracts::graph::{Graph, GraphError, GraphQuery, MAX_NODES};
use counterproof_contracts::{ContractId, Store};
use counterproof_store::write::{Durability, write};

use crate::kit::{Sandbox, add, contract, id};

fn ids(graph: &Graph) -> Vec<&str> {
    graph.nodes().iter().map(|node| node.id.as_str()).collect()
}

fn around(store: &Store, ids: &[ContractId], max_nodes: usize) -> Result<Graph, GraphError> {
    Graph::read(store, &GraphQuery { around: ids, max_nodes })
}

fn diamond() -> Sandbox {
    let sandbox = Sandbox::new();
    let contracts = [
        contract("base", &[]),
        contract("left", &["base"]),
        contract("right", &["base"]),
        contract("top", &["left", "right"]),
        contract("alone", &[]),
    ];
    add(&sandbox.store(), &contracts).unwrap();
    sandbox
}

#[test]
fn a_graph_has_all_contracts_or_the_part_around_some() {
    let sandbox = diamond();
    let store = sandbox.store();
    let all = around(&store, &[], MAX_NODES).unwrap();
    assert_eq!(ids(&all), ["alone", "base", "left", "right", "top"]);
    assert_eq!((all.edges().len(), all.layers().count()), (4, 3));
    let part = around(&store, &[id("left")], MAX_NODES).unwrap();
    assert_eq!(ids(&part), ["base", "left", "top"]);
    let top = part.nodes().last().unwrap();
    assert_eq!((top.depth, top.outside_dependencies, top.is_selected), (2, 1, false));
    assert!(part.nodes()[1].is_selected);
    let empty = around(&Sandbox::new().store(), &[], MAX_NODES).unwrap();
    assert!(ids(&empty).is_empty());
}

#[test]
fn a_new_version_replaces_the_dependencies_of_the_old_one() {
    let sandbox = diamond();
    let store = sandbox.store();
    add(&store, &[contract("top@2", &["alone"])]).unwrap();
    let part = around(&store, &[id("top")], MAX_NODES).unwrap();
    assert_eq!(ids(&part), ["alone", "top"]);
    assert_eq!(part.nodes()[1].version.get(), 2);
}

#[test]
fn a_graph_over_the_limit_and_an_unknown_contract_are_errors() {
    let sandbox = diamond();
    let store = sandbox.store();
    let error = around(&store, &[], 4).unwrap_err();
    assert_eq!(error.to_string(), "the graph has 5 contracts; at most 4 are possible here");
    assert_eq!((error.code(), error.hint()), ("graph_too_large", Some("name contracts to get the part around them")));
    let error = around(&store, &[id("base")], 2).unwrap_err();
    assert!(matches!(error, GraphError::TooLarge { found: 3, limit: 2 }), "{error}");
    assert!(around(&store, &[id("base")], 4).is_ok());
    assert_eq!(around(&store, &[id("none")], 4).unwrap_err().code(), "not_found");
}

#[test]
fn a_cycle_in_a_file_that_was_changed_by_hand_is_an_error() {
    let sandbox = diamond();
    let text = sandbox.text().replacen("\"dependencies\":[]", "\"dependencies\":[\"top\"]", 1);
    assert!(text.contains("[\"top\"]"), "{text}");
    write(&sandbox.path(), text.as_bytes(), Durability::Cached).unwrap();
    let error = around(&sandbox.store(), &[], MAX_NODES).unwrap_err();
    assert_eq!(error.to_string(), "circular dependency: `base` → `top` → `left` → `base`");
    let error = around(&sandbox.store(), &[id("left")], MAX_NODES).unwrap_err();
    assert_eq!(error.code(), "circular_dependency");
}
