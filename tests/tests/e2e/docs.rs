//! Tests of the examples in the documents, and of the list of contract tests.

use std::collections::BTreeSet;
use std::path::Path;

use camino::Utf8Path;
use counterproof_tests::{Agent, Reply, Sandbox};
use serde_json::{Value, json};

/// Returns the JSON blocks of a document, in order.
fn examples(document: &str) -> Vec<Value> {
    let path = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(document);
    let text = std::fs::read_to_string(path).unwrap();
    let blocks = text.split("```json\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    blocks.map(|block| serde_json::from_str(block).unwrap()).collect()
}

#[test]
fn the_documented_response_is_valid_and_the_documented_request_is_sent() {
    let examples = examples("agent.md");
    let [request, response] = &examples[..] else { panic!("{examples:?}") };
    let answer = response.clone();
    let agent = Agent::start(move |_case_id| Reply::json(&answer));
    let case = json!([{"id": request["case_id"], "input": request["input"]}]);
    let sandbox = Sandbox::new().with_file("cases.json", &case.to_string());
    let run = ["run", "--cases", "cases.json", "--side", "new", "--run-id", "docs", "--base-url", &agent.base_url()];
    let finished = sandbox.run(run);
    assert_eq!(finished.code, Some(0), "{finished}");
    let artifact = sandbox.json("runs/new/docs/refund_001.json");
    assert_eq!(artifact["status"], "ok", "{artifact:#}");
    for (field, value) in response.as_object().unwrap().iter().filter(|(field, _)| *field != "final_output") {
        assert_eq!(&artifact[field], value, "{field}");
    }
    let validated = sandbox.run(["validate", "runs"]);
    assert_eq!(validated.code, Some(0), "{validated}");
}

#[test]
fn the_documented_required_fields_are_those_of_the_schema() {
    let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = std::fs::read_to_string(root.join("docs/agent.md")).unwrap();
    let schema = std::fs::read_to_string(root.join("schemas/case.v1.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    for (object, pointer) in [
        ("response", "/allOf/0/then"),
        ("action in `proposed_actions`", "/$defs/proposedAction"),
        ("every event", "/$defs/event"),
        ("event `tool_call`", "/$defs/toolCall"),
        ("event `tool_result`", "/$defs/toolResult"),
        ("event `retrieval`", "/$defs/retrieval"),
        ("event `final_output`", "/$defs/finalOutputEvent"),
        ("`final_output` of the response", "/$defs/finalOutput"),
    ] {
        let required = schema.pointer(pointer).unwrap()["required"].as_array().unwrap();
        let fields: Vec<_> = required.iter().map(|field| format!("`{}`", field.as_str().unwrap())).collect();
        let row = format!("| {object} | {} |", fields.join(", "));
        assert!(page.contains(&row), "{row}");
    }
}

/// A promise without its test is only an intention.
#[test]
fn every_test_that_the_page_on_security_names_exists() {
    let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = std::fs::read_to_string(root.join("docs/security.md")).unwrap();
    let promises = page.lines().filter(|line| line.starts_with("| ") && line.split(" | ").count() == 2);
    let names: Vec<&str> = promises
        .filter_map(|line| line.split(" | ").nth(1))
        .flat_map(|tests| tests.split('`').skip(1).step_by(2))
        .collect();
    assert!(names.len() > 30, "{names:?}");
    let is_source = |path: &std::path::Path| matches!(path.extension().and_then(|it| it.to_str()), Some("rs" | "mjs"));
    let is_ours = |entry: &walkdir::DirEntry| entry.file_name() != "node_modules";
    let folders = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let sources: String = folders
        .filter(|folder| folder.is_dir() && !folder.ends_with("target") && !folder.ends_with(".git"))
        .flat_map(|folder| walkdir::WalkDir::new(folder).into_iter().filter_entry(is_ours).flatten())
        .filter(|entry| is_source(entry.path()))
        .map(|entry| std::fs::read_to_string(entry.path()).unwrap())
        .collect();
    let is_test =
        |name: &str| sources.contains(&format!("fn {name}(")) || sources.contains(&format!("test(\"{name}\""));
    let unknown: Vec<_> = names.into_iter().filter(|name| !is_test(name)).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn every_schema_of_the_project_is_listed_and_printed() {
    let sandbox = Sandbox::new();
    let listed = sandbox.run(["schema"]).stdout;
    let folder = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().strip_suffix(".schema.json").unwrap().to_owned();
        let printed: Value = serde_json::from_str(&sandbox.run(["schema", &name]).stdout).expect(&name);
        assert_eq!(printed, serde_json::from_slice::<Value>(&std::fs::read(&path).unwrap()).unwrap(), "{name}");
        assert_eq!(printed["$id"], format!("urn:counterproof:schema:{name}"));
        names.push(name);
    }
    names.sort();
    let mut found: Vec<_> = listed.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    found.sort();
    assert_eq!(found, names);
}

/// The groups of the checklist, with the number of requirements in each.
const GROUPS: [(&str, u32); 11] = [
    ("EVT", 9),
    ("HASH", 2),
    ("BUF", 4),
    ("POL", 7),
    ("ERR", 4),
    ("SEC", 2),
    ("PROC", 3),
    ("ID", 2),
    ("LED", 2),
    ("IMP", 2),
    ("ADAPT", 3),
];

#[test]
fn every_requirement_has_a_test_of_its_name() {
    let page = include_str!("../../../docs/contract-tests.md");
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = BTreeSet::new();
    for row in page.lines().filter(|line| line.starts_with("| ") && line.contains(".rs`")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let (id, test, file) = (cells[0], cells[2].trim_matches('`'), cells[3].trim_matches('`'));
        assert!(test.starts_with(&format!("{}_", id.to_lowercase().replace('-', "_"))), "{row}");
        let source = std::fs::read_to_string(workspace.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let at = source.find(&format!("fn {test}(")).unwrap_or_else(|| panic!("{file} has no {test}"));
        let before = source[..at].trim_end();
        // A macro makes tests of the functions that it names in a list.
        let is_test = before.lines().rev().take(4).any(|line| line.contains("#[test]"))
            || source.contains(&format!("    {test},\n"));
        assert!(is_test, "{test} is no test");
        assert!(!before.ends_with("#[ignore]"), "{test} is ignored");
        found.insert(id.to_owned());
    }
    let wanted: BTreeSet<String> = GROUPS
        .iter()
        .flat_map(|(group, count)| (1..=*count).map(move |number| format!("{group}-{number:03}")))
        .collect();
    assert_eq!(found, wanted);
}
