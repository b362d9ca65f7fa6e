//! `guard demo`: two versions of an agent, recorded through real shims.

use counterproof_tests::{McpClient, Sandbox};
use serde_json::{Value, json};

/// The cases and their expected verdicts.
const PLANTED: [(&str, &str); 5] = [
    ("stock_check_001", "unchanged"),
    ("lamp_refund_001", "changed"),
    ("sofa_discount_001", "regressed"),
    ("order_watch_001", "regressed"),
    ("delivery_slot_001", "regressed"),
];

/// Variables of another run, and of a guard around this one, must not matter.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new().with_variable("SUB_RUN_ID", "outer").with_variable("SUB_WORKLOAD", "not JSON");
    sandbox
        .with_variable("COUNTERPROOF_POLICY", "/no/such/policy")
        .with_variable("COUNTERPROOF_LEDGER", "/no/such/ledger")
}

#[test]
fn the_demo_works_in_an_empty_folder_and_again_in_its_own() {
    let sandbox = sandbox();
    for _ in 0..2 {
        let demo = sandbox.run(["guard", "demo"]);
        assert_eq!(demo.code, Some(0), "{demo}");
        assert!(demo.stdout.ends_with("Open the report: counterproof-guard-demo/report/index.html\n"), "{demo}");
        assert!(demo.stderr.contains("counterproof ledger runs --ledger counterproof-guard-demo/ledger.db"), "{demo}");
    }
    let folder = "counterproof-guard-demo";
    let evaluation = sandbox.json(&format!("{folder}/report/evaluation.json"));
    let cases = evaluation["cases"].as_array().unwrap();
    let verdicts: Vec<_> =
        cases.iter().map(|case| (case["case_id"].as_str().unwrap(), case["verdict"].as_str().unwrap())).collect();
    assert_eq!(verdicts, PLANTED);
    assert_eq!(evaluation["gate"]["passed"], false);
    let validated = sandbox.run(["validate", &format!("{folder}/runs")]);
    assert_eq!(validated.code, Some(0), "{validated}");
    let ledger = format!("--ledger={folder}/ledger.db");
    let runs: Value = serde_json::from_str(&sandbox.run(["ledger", "runs", "--json", &ledger]).stdout).unwrap();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 20);
    let refused = sandbox.run(["ledger", "query", "--decision", "BLOCK", &ledger]);
    assert_eq!(refused.stdout.lines().count(), 3, "{refused}");
    let page = std::fs::read_to_string(sandbox.path(&format!("{folder}/report/cases/sofa_discount_001.html"))).unwrap();
    assert!(page.contains("REFUND_LIMIT") && page.contains("shop.refund_order"), "{page}");
}

#[test]
fn files_that_are_not_of_this_demo_are_left_unchanged() {
    let sandbox = sandbox().with_file("taken", "a file").with_file("mine/cases.json", "[]");
    for out in ["taken", "mine"] {
        let demo = sandbox.run(["guard", "demo", "--out", out]);
        assert_eq!(demo.code, Some(2), "{demo}");
        assert!(demo.stderr.contains(&format!("`{out}` exists")), "{demo}");
    }
    assert_eq!(std::fs::read_to_string(sandbox.path("mine/cases.json")).unwrap(), "[]");
}

#[test]
fn the_server_of_the_demo_answers_as_an_mcp_server() {
    let sandbox = Sandbox::new();
    let mut client = McpClient::start(&mut sandbox.command(["guard", "demo-server"]));
    let hello = client.request("initialize", &json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
    assert_eq!(hello["result"]["capabilities"], json!({"tools": {}}));
    client.send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\nnot JSON\n");
    assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
    let tools = client.request("tools/list", &json!({}));
    assert_eq!(tools["result"]["tools"][3]["inputSchema"]["properties"]["amount"], json!({"type": "number"}));
    let order = client.call("get_order", &json!({"order_id": "A-1001"}));
    assert_eq!(order["result"]["structuredContent"]["total"], 500);
    for (tool, args) in [("get_order", json!({"order_id": "Z"})), ("cancel_order", json!({}))] {
        assert_eq!(client.call(tool, &args)["result"]["isError"], true, "{tool}");
    }
    assert_eq!(client.request("resources/list", &json!({}))["error"]["code"], -32601);
    client.send_request("tools/call", &json!({"name": "list_slots", "arguments": {"day": "tomorrow"}}));
    assert_eq!(client.receive_line(), None);
    assert_eq!(client.close().0.code(), Some(1));
}
