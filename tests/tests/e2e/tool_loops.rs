//! `check` with a model that calls tools, and with conversations of several turns.

use counterproof_tests::{ModelAnswer, ModelRequest, ModelServer, Sandbox};
use serde_json::{Value, json};

use crate::guard_kit::SERVER;

/// Answers as a model that looks an order up, refunds it, and then reports.
fn shop(request: &ModelRequest, amount: u32) -> ModelAnswer {
    let body = request.json();
    let messages = body["messages"].as_array().unwrap();
    let results =
        messages.iter().rev().take_while(|message| message["role"] != "user").filter(|it| it["role"] == "tool");
    let call = |name: &str, arguments: Value| {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": format!("call_{name}"), "type": "function", "function": function}]})
    };
    let message = match results.count() {
        0 => call("get_order", json!({"order_id": "A-1001"})),
        1 => call("issue_refund", json!({"order_id": "A-1001", "amount": amount})),
        _ => json!({"role": "assistant", "content": "Your refund is on its way."}),
    };
    ModelAnswer::json(
        200,
        &json!({
            "id": "x", "created": 1, "model": "m", "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}]
        }),
    )
}

const CASES: &str = "\
- id: refund_lamp
  input: {user: The lamp in order A-1001 arrived broken.}
  tool_results:
    get_order: {order_id: A-1001, total: 50}
    issue_refund: {ok: true}
  expected: {must_include: [refund]}
";

fn sandbox(cases: &str, protocol: &str) -> Sandbox {
    let config = format!(
        "[run]\ncases = \"cases.yaml\"\n[side.new]\nprotocol = \"{protocol}\"\nmodel = \"m\"\n\
         [[tools]]\nname = \"get_order\"\n[[tools]]\nname = \"issue_refund\"\n[risk]\nissue_refund = \"high\"\n"
    );
    Sandbox::new().with_file("cases.yaml", cases).with_file("counterproof.toml", &config)
}

#[test]
fn a_refund_of_ten_times_the_total_in_the_second_step_fails_the_gate() {
    let sandbox = sandbox(CASES, "openai-chat");
    let good = ModelServer::start(|_, request| shop(request, 50));
    let first = sandbox.run(["check", "--base-url", &good.origin()]);
    assert_eq!(first.code, Some(0), "{first}");
    assert_eq!(good.requests().len(), 3, "a request for each step");
    let offered = good.requests()[0].json();
    assert_eq!(offered["tools"][1]["function"]["name"], "issue_refund", "{offered:#}");
    assert_eq!(sandbox.run(["accept", "--reason", "good"]).code, Some(0));
    let same = sandbox.run(["check", "--base-url", &good.origin()]);
    assert_eq!(same.code, Some(0), "{same}");

    let bad = ModelServer::start(|_, request| shop(request, 500));
    let found = sandbox.run(["check", "--base-url", &bad.origin()]);
    assert_eq!(found.code, Some(1), "{found}");
    assert!(found.stdout.starts_with("Gate failed: ") && found.stdout.contains("500"), "{found}");
    let valid = sandbox.run(["validate", "runs"]);
    assert_eq!(valid.code, Some(0), "{valid}");
}

#[test]
fn tools_and_servers_run_in_the_folder_of_the_configuration() {
    let cases = CASES.replace("    get_order: {order_id: A-1001, total: 50}\n", "");
    let config = "[run]\ncases = \"cases.yaml\"\n[side.new]\nprotocol = \"openai-chat\"\nmodel = \"m\"\n\
                  [[tools]]\nname = \"get_order\"\ncommand = \"sh order.sh\"\n[[tools]]\nname = \"issue_refund\"\n\
                  [[mcp]]\nname = \"shop\"\ncommand = \"sh server.sh\"\npolicy = \"policy.yaml\"\n";
    let sandbox = Sandbox::new()
        .with_file("agent/cases.yaml", &cases)
        .with_file("agent/counterproof.toml", config)
        .with_file("agent/order.sh", "cat > /dev/null\necho '{\"order_id\": \"A-1001\", \"found_in\": \"agent\"}'\n")
        .with_file("agent/server.sh", &format!("exec {SERVER} --log seen.log\n"))
        .with_file("agent/policy.yaml", "policy_id: p\nversion: 1.0.0\nmode: observe\nrules: []\n")
        .with_variable("COUNTERPROOF_LEDGER", "ledger.db");
    let model = ModelServer::start(|_, request| shop(request, 50));
    let finished = sandbox.run(["check", "--config", "agent/counterproof.toml", "--base-url", &model.origin()]);
    assert_eq!(finished.code, Some(0), "{finished}");
    let requests = model.requests();
    assert!(requests[0].json()["tools"].as_array().unwrap().len() > 2, "the tools of the server are offered");
    assert!(requests[1].json().to_string().contains("found_in"), "the command answered");
    assert!(sandbox.path("agent/seen.log").is_file(), "{finished}");
    assert!(sandbox.path("ledger.db").is_file() && !sandbox.path("agent/ledger.db").exists(), "{finished}");
}

#[test]
fn an_unmet_expectation_of_a_turn_is_named() {
    let cases = "\
- id: talk
  turns:
    - {user: Hello, expected: {must_include: [welcome]}}
    - {user: And my refund?, expected: {must_include: [refund]}}
  expected: {max_steps: 0}
";
    let sandbox = sandbox(cases, "openai-chat");
    let answers = |second: &'static str| {
        ModelServer::start(move |_, request| {
            let messages = request.json()["messages"].as_array().unwrap().len();
            let content = if messages == 1 { "Welcome!" } else { second };
            let message = json!({"role": "assistant", "content": content});
            ModelAnswer::json(200, &json!({"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}))
        })
    };
    let good = answers("Your refund is on its way.");
    let first = sandbox.run(["check", "--base-url", &good.origin()]);
    assert_eq!(first.code, Some(0), "{first}");
    let history = good.requests()[1].json()["messages"].clone();
    let roles: Vec<_> = history.as_array().unwrap().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "user"], "{history:#}");

    let bad = sandbox.run(["check", "--base-url", &answers("Who are you?").origin()]);
    assert_eq!(bad.code, Some(1), "{bad}");
    assert!(bad.stdout.contains("talk  unmet: turn 2: must_include not met: “refund” missing"), "{bad}");
    let page = std::fs::read_to_string(sandbox.path("report/cases/talk.html")).unwrap();
    assert!(page.contains("And my refund?") && page.contains("turn 2"), "the page has the turns");
}

#[test]
fn try_runs_the_tools_and_shows_each_call_with_its_result() {
    let model = ModelServer::start(|_, request| shop(request, 50));
    let config = |command: &str| {
        let tool = |name: &str| format!("[[tools]]\nname = \"{name}\"\n{command}");
        format!("[side.new]\nprotocol = \"openai-chat\"\nmodel = \"m\"\n{}{}", tool("get_order"), tool("issue_refund"))
    };
    let url = model.origin();
    let args = ["try", "--input", "It is broken.", "--base-url", &url, "--format", "json"];
    let sandbox = Sandbox::new().with_file("counterproof.toml", &config("command = \"echo fifty\"\n"));
    let tried = sandbox.run(args);
    assert_eq!(tried.code, Some(0), "{tried}");
    let document: Value = serde_json::from_str(&tried.stdout).unwrap();
    assert_eq!(document["requests"], 3, "{tried}");
    let call = json!({"name": "issue_refund", "arguments": {"order_id": "A-1001", "amount": 50}, "result": "fifty"});
    assert_eq!(document["mapped"]["calls"][1], call, "{tried}");
    assert_eq!(document["mapped"]["output"], "Your refund is on its way.", "{tried}");
    assert_eq!(document["answer"]["choices"][0]["message"]["content"], "Your refund is on its way.", "the last answer");

    let sandbox = Sandbox::new().with_file("counterproof.toml", &config(""));
    let without = sandbox.run(args);
    assert_eq!(without.code, Some(1), "{without}");
    let document: Value = serde_json::from_str(&without.stdout).unwrap();
    assert_eq!((&document["failure"]["error_name"], &document["proposed"]), (&json!("no_tool_result"), &json!({})));
}
