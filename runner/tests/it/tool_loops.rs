//! Conversations over a real socket: tool calls that the runner executes, and turns of the user.

use counterproof_runner::{AgentOptions, Environment, Protocol, RunError, Settings, Silent, ToolSpec, run};
use counterproof_validation::validate_path;
use serde_json::{Value, json};

use crate::kit::{Agent, Finished, Reaction, answer, case_of, ok, response, run_with};

fn chat_call(id: &str, tool: &str, arguments: &Value) -> Value {
    json!({"id": id, "type": "function", "function": {"name": tool, "arguments": arguments.to_string()}})
}

fn chat(message: &Value) -> Value {
    json!({
        "id": "chatcmpl-1", "created": 1_767_600_000, "model": "m-1",
        "choices": [{"message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    })
}

/// A model that looks an order up, refunds it, and answers.
fn refunding() -> Vec<Value> {
    let step = |call: Value| chat(&json!({"role": "assistant", "content": null, "tool_calls": [call]}));
    vec![
        step(chat_call("a", "get_order", &json!({"id": "A-1"}))),
        step(chat_call("b", "issue_refund", &json!({"id": "A-1", "amount": 50}))),
        chat(&json!({"role": "assistant", "content": "I refunded 50."})),
    ]
}

fn model(answers: &[Value]) -> Agent {
    Agent::new(answers.iter().map(|answer| Reaction::Send(ok(answer))).collect::<Vec<_>>())
}

fn refund_case() -> Value {
    json!({
        "id": "c1", "input": {"user": "Refund A-1"},
        "tool_results": {
            "get_order": [{"arguments": {"id": "A-1"}, "result": {"total": 50}}, {"result": {"error": "no such order"}}],
            "issue_refund": "done",
        },
    })
}

fn run_case(agent: &Agent, case: &Value, protocol: Protocol, change: impl FnOnce(&mut Settings)) -> Finished {
    run_with(&agent.url(), &[case_of(case)], |settings| {
        settings.protocol = protocol;
        settings.retry.retries = 0;
        change(settings);
    })
}

#[track_caller]
fn assert_valid(run: &Finished) {
    let report = validate_path(&run.summary.folder).unwrap();
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
}

fn kinds(case: &Value) -> Vec<&str> {
    case["events"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[test]
fn a_chat_model_gets_the_results_of_the_case_until_it_answers() {
    let agent = model(&refunding());
    let run = run_case(&agent, &refund_case(), Protocol::OpenaiChat, |_| {});
    assert_valid(&run);
    let case = run.case();
    assert_eq!(kinds(&case), ["tool_call", "tool_result", "tool_call", "tool_result", "final_output"], "{case:#}");
    assert_eq!(case["events"][1]["payload_summary"], json!({"total": 50}));
    assert_eq!((&case["events"][3]["call_id"], &case["events"][3]["payload_summary"]), (&json!("b"), &json!("done")));
    let times: Vec<_> = case["events"].as_array().unwrap().iter().map(|event| event["ts"].as_u64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let evidence = |action: usize| &case["proposed_actions"][action]["evidence_refs"];
    assert_eq!((evidence(0), evidence(1)), (&json!([]), &json!([{"kind": "tool_result", "call_id": "a"}])));
    assert_eq!((&case["usage"]["input_tokens"], &case["usage"]["total_tokens"]), (&json!(30), &json!(36)));
    assert_eq!((&case["requests"], &case["attempts"][2]["request"]), (&json!(3), &json!(3)));
    let requests = agent.requests();
    assert_eq!(requests[0].body["messages"].as_array().unwrap().len(), 1);
    let last = &requests[2].body["messages"];
    assert_eq!(last[1]["tool_calls"][0]["id"], "a");
    assert_eq!(last[2], json!({"role": "tool", "tool_call_id": "a", "content": "{\"total\":50}"}));
    assert_eq!(last[4], json!({"role": "tool", "tool_call_id": "b", "content": "done"}));
}

#[test]
fn a_case_without_results_and_tools_is_one_request() {
    let agent = model(&refunding());
    let run = run_case(&agent, &json!({"id": "c1", "input": {"user": "Refund A-1"}}), Protocol::OpenaiChat, |_| {});
    assert_eq!(agent.requests().len(), 1);
    assert_eq!(kinds(&run.case()), ["tool_call"]);
    assert!(run.case()["attempts"][0].get("request").is_none());
}

#[test]
fn a_tool_without_a_result_fails_the_case_and_names_the_line_to_add() {
    let agent = model(&refunding());
    let mut case = refund_case();
    case["tool_results"].as_object_mut().unwrap().remove("issue_refund");
    let run = run_case(&agent, &case, Protocol::OpenaiChat, |_| {});
    let failure = run.failure("other", "no_tool_result");
    let message = failure["error_message"].as_str().unwrap();
    assert!(message.contains("`tool_results: {issue_refund: …}`"), "{message}");
    assert_valid(&run);
}

#[test]
fn a_model_that_never_stops_calling_keeps_its_steps() {
    let agent = model(&refunding()[..1]);
    let run = run_case(&agent, &refund_case(), Protocol::OpenaiChat, |settings| {
        settings.tools.max_turns = 2.try_into().unwrap();
    });
    let case = run.case();
    assert_eq!(agent.requests().len(), 2);
    assert_eq!((&case["status"], &case["finish_reason"]), (&json!("ok"), &json!("max_turns")));
    assert_eq!(kinds(&case), ["tool_call", "tool_result", "tool_call", "max_turns"]);
    assert_eq!(case["events"][2]["call_id"], "a_2", "ids are unique over the requests");
    assert_valid(&run);
}

#[test]
fn a_retried_request_runs_no_tool_again() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("calls");
    let mut reactions: Vec<_> = refunding().iter().map(|answer| Reaction::Send(ok(answer))).collect();
    reactions.insert(1, Reaction::Send(response("503 Service Unavailable", "", b"busy")));
    let agent = Agent::new(reactions);
    let command = format!("sh -c 'cat >> {}; echo {{\\\"total\\\":50}}'", log.display());
    let tool: ToolSpec = serde_json::from_value(json!({"name": "get_order", "command": command})).unwrap();
    let mut case = refund_case();
    case["tool_results"].as_object_mut().unwrap().remove("get_order");
    let run = run_case(&agent, &case, Protocol::OpenaiChat, |settings| {
        settings.tools.commands = vec![tool];
        settings.retry.retries = 1;
    });
    let case = run.case();
    assert_eq!(case["events"][1]["payload_summary"], json!({"total": 50}), "{case:#}");
    let numbers: Vec<_> = case["attempts"].as_array().unwrap().iter().map(|attempt| &attempt["request"]).collect();
    assert_eq!(numbers, [1, 2, 2, 3]);
    assert_eq!(std::fs::read_to_string(log).unwrap(), "{\"id\":\"A-1\"}\n");
    assert_valid(&run);
}

#[test]
fn a_command_that_fails_is_an_error_result() {
    let agent = model(&refunding());
    let tools = ["get_order", "issue_refund"].map(|name| {
        let command = "sh -c 'echo no access >&2; exit 3'";
        serde_json::from_value::<ToolSpec>(json!({"name": name, "description": "d", "command": command})).unwrap()
    });
    let case = json!({"id": "c1", "input": {"user": "Refund A-1"}});
    let run = run_case(&agent, &case, Protocol::OpenaiChat, |settings| settings.tools.commands = tools.to_vec());
    let result = &run.case()["events"][1];
    assert_eq!((&result["status"], &result["payload_summary"]), (&json!("error"), &json!("no access")));
    let function = json!({"name": "get_order", "description": "d", "parameters": {"type": "object"}});
    assert_eq!(agent.requests()[0].body["tools"][0], json!({"type": "function", "function": function}));
}

#[test]
fn the_responses_api_gets_its_own_items_back() {
    let items = |items: Value| json!({"id": "resp_1", "status": "completed", "output": items});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "a", "name": "get_order", "arguments": "{\"id\": \"A-2\"}"});
    let said = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "No."}]});
    let agent = model(&[items(json!([call])), items(json!([said]))]);
    let run = run_case(&agent, &refund_case(), Protocol::OpenaiResponses, |settings| {
        settings.agent = AgentOptions { system_prompt: Some("Be brief.".to_owned()), ..AgentOptions::default() };
    });
    assert_eq!(kinds(&run.case()), ["tool_call", "tool_result", "final_output"]);
    let input = &agent.requests()[1].body["input"];
    assert_eq!((&input[1], &input[2]["type"]), (&call, &json!("function_call_output")));
    assert_eq!(run.case()["events"][1]["status"], "error");
    assert_valid(&run);
}

#[test]
fn turns_are_requests_with_the_history_before_them() {
    let turns =
        json!([{"user": "Hello"}, {"user": "Refund A-1", "tool_results": {"issue_refund": "done in this turn"}}]);
    let case = json!({"id": "c1", "input": {"context": {"plan": "free"}}, "turns": turns, "tool_results": refund_case()["tool_results"]});
    let mut answers = vec![chat(&json!({"role": "assistant", "content": "Hi."}))];
    answers.extend(refunding());
    let agent = model(&answers);
    let run = run_case(&agent, &case, Protocol::OpenaiChat, |_| {});
    let case = run.case();
    assert_eq!(
        kinds(&case),
        [
            "user_message",
            "final_output",
            "user_message",
            "tool_call",
            "tool_result",
            "tool_call",
            "tool_result",
            "final_output"
        ]
    );
    assert_eq!((&case["events"][1]["turn"], &case["events"][3]["turn"]), (&json!(1), &json!(2)));
    assert_eq!(case["events"][6]["payload_summary"], "done in this turn");
    assert_eq!(case["turns"][0]["final_output"]["content"], "Hi.");
    assert_eq!(case["final_output"]["content"], "I refunded 50.");
    let messages = &agent.requests()[1].body["messages"];
    let contents: Vec<_> = messages.as_array().unwrap().iter().map(|message| &message["content"]).collect();
    assert_eq!(contents, ["{\"plan\":\"free\"}", "Hello", "Hi.", "Refund A-1"]);
    assert_valid(&run);
}

#[test]
fn a_native_agent_gets_the_messages_before_a_turn() {
    let mut first = answer();
    let call = json!({"type": "tool_call", "ts": 1, "call_id": "x", "tool": "lookup", "args": {}});
    let result = json!({"type": "tool_result", "ts": 2, "call_id": "x", "status": "ok", "latency_ms": 1});
    first["events"] = json!([call, result]);
    first["proposed_actions"] = json!([{
        "action_id": "x", "action_type": "note", "tool_name": "lookup", "params": {}, "risk_level": "low", "risk_tags": [],
        "evidence_refs": [{"kind": "tool_result", "call_id": "x"}, {"kind": "event", "id": "events[1]"}],
    }]);
    let agent = model(&[first.clone(), first]);
    let case = json!({"id": "c1", "turns": [{"user": "One"}, {"user": "Two"}]});
    let run = run_case(&agent, &case, Protocol::Native, |_| {});
    assert_valid(&run);
    let case = run.case();
    assert_eq!(
        case["proposed_actions"][1]["evidence_refs"],
        json!([{"kind": "tool_result", "call_id": "x_2"}, {"kind": "event", "id": "events[5]"}])
    );
    let requests = agent.requests();
    assert_eq!(requests[0].body["input"], json!({"user": "One", "messages": []}));
    let history = json!([{"role": "user", "content": "One"}, {"role": "assistant", "content": "done"}]);
    assert_eq!(requests[1].body["input"], json!({"user": "Two", "messages": history}));
}

#[test]
fn a_turn_that_fails_is_named_in_the_failure() {
    let agent =
        Agent::new([Reaction::Send(ok(&answer())), Reaction::Send(response("500 Internal Server Error", "", b"x"))]);
    let case = json!({"id": "c1", "turns": [{"user": "One"}, {"user": "Two"}]});
    let run = run_case(&agent, &case, Protocol::Native, |_| {});
    let failure = run.failure("http_error", "server_error");
    assert_eq!((&failure["turn"], &failure["request"]), (&json!(2), &json!(2)));
    let message = failure["error_message"].as_str().unwrap();
    assert!(message.ends_with(" (answered turns: 1)"), "{message}");
    assert_valid(&run);
}

/// A server in shell that has the tool `get_order`, and prints each message that it receives to a file.
fn shell_server(log: &std::path::Path) -> String {
    let script = r#"while read -r line; do
        printf '%s\n' "$line" >> LOG
        id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
        case "$line" in
        *'"initialize"'*) result='{"capabilities":{}}' ;;
        *'"tools/list"'*) result='{"tools":[{"name":"get_order","description":"d","inputSchema":{"type":"object"}}]}' ;;
        *'"tools/call"'*) result='{"content":[{"type":"text","text":"{\"total\":50}"}]}' ;;
        *) continue ;;
        esac
        echo '{"jsonrpc":"2.0","id":99,"method":"ping"}'
        printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
    done"#;
    format!("sh -c {}", shell_words::quote(&script.replace("LOG", &log.display().to_string())))
}

#[test]
fn a_tool_of_an_mcp_server_is_offered_and_called() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("messages");
    let agent = model(&refunding());
    let mut case = refund_case();
    case["tool_results"].as_object_mut().unwrap().remove("get_order");
    let server = |name: &str| {
        serde_json::from_value::<counterproof_runner::McpSpec>(json!({"name": name, "command": shell_server(&log)}))
            .unwrap()
    };
    let run = run_case(&agent, &case, Protocol::OpenaiChat, |settings| settings.tools.servers = vec![server("shop")]);
    assert_eq!(run.case()["events"][1]["payload_summary"], json!({"total": 50}), "{:#}", run.case());
    assert_eq!(agent.requests()[0].body["tools"][0]["function"]["name"], "get_order");
    let messages = std::fs::read_to_string(&log).unwrap();
    assert!(messages.contains("\"id\":99,\"result\":{}"), "the runner answers a ping: {messages}");
    assert!(messages.contains("\"arguments\":{\"id\":\"A-1\"}"), "{messages}");
    // A name that two servers share has the name of the server in front.
    let agent = model(&refunding());
    let run = run_case(&agent, &case, Protocol::OpenaiChat, |settings| {
        settings.tools.servers = vec![server("shop"), server("store")];
    });
    let names = &agent.requests()[0].body["tools"];
    assert_eq!(
        (&names[0]["function"]["name"], &names[1]["function"]["name"]),
        (&json!("shop__get_order"), &json!("store__get_order"))
    );
    run.failure("other", "no_tool_result");
}

#[test]
fn a_server_that_ends_fails_one_case_and_is_started_again_for_the_next() {
    // The guard answers the open call before it ends with its server.
    for last_answer in ["", r#"{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"the server ended"}}\n"#] {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("was-here");
        let crash = format!(
            "case \"$line\" in *'\"tools/call\"'*) if [ ! -e MARK ]; then : > MARK; \
             printf '{last_answer}' \"$id\"; echo 'out of stock' >&2; exit 3; fi ;; esac\n case \"$line\" in"
        );
        let server = shell_server(&folder.path().join("messages"));
        let script = shell_words::split(&server).unwrap().remove(2);
        let script = script.replacen("case \"$line\" in", &crash.replace("MARK", &mark.display().to_string()), 1);
        let command = format!("sh -c {}", shell_words::quote(&script));
        let spec = serde_json::from_value(json!({"name": "shop", "command": command})).unwrap();
        let mut answers = vec![refunding()[0].clone()];
        answers.extend(refunding());
        let agent = model(&answers);
        let mut case = refund_case();
        case["tool_results"].as_object_mut().unwrap().remove("get_order");
        let mut next = case.clone();
        next["id"] = "c2".into();
        let run = run_with(&agent.url(), &[case_of(&case), case_of(&next)], |settings| {
            settings.protocol = Protocol::OpenaiChat;
            settings.tools.servers = vec![spec];
        });
        let failure = run.failure("other", "no_tool_result");
        let message = failure["error_message"].as_str().unwrap();
        assert!(message.contains("the MCP server `shop` gave none: it ended: out of stock"), "{message}");
        assert!(message.ends_with(" (calls: get_order)"), "{message}");
        assert_eq!(run.json("c2.json")["events"][1]["payload_summary"], json!({"total": 50}));
        assert_valid(&run);
    }
}

#[test]
fn the_start_of_a_server_can_be_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let out = camino::Utf8Path::from_path(folder.path()).unwrap();
    let agent = model(&refunding());
    let (id, url) = ("r1".parse().unwrap(), agent.url().parse().unwrap());
    let mut settings = Settings::new(id, counterproof_artifact::Side::New, url, "cases.json".into(), out.to_owned());
    settings.supervisor = Some(crate::kit::supervisor());
    settings.tools.servers = vec![serde_json::from_value(json!({"name": "shop", "command": "sleep 600"})).unwrap()];
    let environment = Environment::from_system();
    environment.interrupt.trigger();
    let ended = run(&settings, &[case_of(&refund_case())], environment, &mut Silent);
    assert!(matches!(ended, Err(RunError::Interrupted)), "{ended:?}");
    assert!(!out.join("new").exists());
}
