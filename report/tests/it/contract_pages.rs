//! The folders of the pages.

use counterproof_contracts::control_room::{ControlRoom, ControlRoomOptions};
use counterproof_contracts::graph::{Graph, GraphError, GraphQuery, MAX_HTML_NODES, MAX_NODES};
use counterproof_report::ReportError;
use counterproof_report::contracts::{GraphPageError, RoomLinks, write_control_room, write_graph};
use counterproof_store::write::{Durability, create_folder, write};

use crate::contract_kit::{Sandbox, add, contract, now};

#[test]
fn a_page_replaces_its_own_kind_only() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    add(&store, &[contract("a", &[]), contract("b", &["a"])]).unwrap();
    let room = ControlRoom::read(&store, &ControlRoomOptions::new(now(), &|_| None)).unwrap();
    let graph = Graph::read(&store, &GraphQuery { around: &[], max_nodes: MAX_HTML_NODES }).unwrap();
    let folder = sandbox.path().with_file_name("pages");
    for _ in 0..2 {
        let page = write_control_room(&room, &RoomLinks::default(), &folder).unwrap();
        assert_eq!(page, folder.join("index.html"));
        assert!(std::fs::read_to_string(&page).unwrap().contains("No contract needs a decision"));
    }
    let mut names: Vec<_> =
        folder.join("static").read_dir_utf8().unwrap().map(|it| it.unwrap().file_name().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["about.txt", "icon.svg", "style.css"]);
    let error = write_graph(&graph, &folder).unwrap_err();
    assert_eq!(error.to_string(), format!("`{folder}` exists and is not a graph of contracts; nothing was written"));
    let mine = sandbox.path().with_file_name("mine");
    create_folder(&mine).unwrap();
    write(&mine.join("index.html"), b"mine", Durability::Cached).unwrap();
    assert!(matches!(write_control_room(&room, &RoomLinks::default(), &mine), Err(ReportError::Foreign { .. })));
    assert!(matches!(write_graph(&graph, &mine), Err(GraphPageError::Page(ReportError::Foreign { .. }))));
    assert_eq!(std::fs::read_to_string(mine.join("index.html")).unwrap(), "mine");
}

#[test]
fn a_graph_of_more_contracts_than_a_page_may_have_is_an_error() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    let contracts: Vec<_> = (0..=MAX_HTML_NODES).map(|index| contract(&format!("c{index}"), &[])).collect();
    add(&store, &contracts).unwrap();
    let error = Graph::read(&store, &GraphQuery { around: &[], max_nodes: MAX_HTML_NODES }).unwrap_err();
    assert!(matches!(error, GraphError::TooLarge { found: 5001, limit: 5000 }));
    let graph = Graph::read(&store, &GraphQuery { around: &[], max_nodes: MAX_NODES }).unwrap();
    let error = write_graph(&graph, &sandbox.path().with_file_name("graph")).unwrap_err();
    assert_eq!(error.to_string(), "the graph has 5001 contracts; at most 5000 are possible here");
}
