//! Decisions of policies and their answers, through a proxy in front of a server over HTTP.

use serde_json::{Value, json};

use crate::guard_kit::GuardFolder;
use crate::guard_proxy_kit::{GuardProxy, HttpServer, Message, call, respond, start_events, write_chunk};

const DENY: &str = "  - {rule_id: d, kind: deny, match: {tool_name: {glob: [push]}}, effect: {reason_code: NO_PUSH}}\n";

/// A server that returns the arguments of calls.
fn echo() -> HttpServer {
    HttpServer::of_json(|request| {
        let answer =
            |request: &Value| json!({"jsonrpc": "2.0", "id": request["id"], "result": request["params"]["arguments"]});
        match request {
            Value::Array(batch) => batch.iter().map(answer).collect(),
            request => answer(request),
        }
    })
}

fn without(mut event: Value, names: &[&str]) -> Value {
    for name in names {
        event.as_object_mut().unwrap().remove(*name);
    }
    event
}

/// The decisions of a folder: the names, the hash and the decision of each call.
fn decisions(folder: &GuardFolder) -> Vec<Value> {
    let decisions = folder.events_of("tool_call_decision").into_iter();
    decisions.map(|event| json!([without(event["call"].clone(), &["call_id"]), event["decision"]])).collect()
}

#[test]
fn adapt_001_the_events_of_http_calls_have_every_field_and_nothing_of_the_protocol() {
    let server = echo();
    let folder = GuardFolder::new();
    let mut proxy = GuardProxy::start(&folder, &server.url());
    let body = call(5, "linear_create_issue", &json!({"title": "a"}));
    proxy.post("mcp-session-id: s-77\r\nauthorization: Bearer abcdefgh\r\n", &body);
    proxy.stop();
    let start = &folder.events_of("tool_call_start")[0]["call"];
    assert_eq!((&start["server_name"], &start["tool_name"]), (&json!("test"), &json!("linear_create_issue")));
    assert_eq!((&start["transport"], &start["bytes_in"]), (&json!("mcp_http"), &json!(body.len())));
    assert_eq!(start["preview"]["args_preview"], r#"{"title":"a"}"#);
    assert_eq!(start["args_hash"].as_str().unwrap().len(), 64);
    let events = folder.event_lines().join("\n");
    for word in ["s-77", "abcdefgh", "jsonrpc", "tools/call", "authorization"] {
        assert!(!events.contains(word), "{word}: {events}");
    }
}

#[test]
fn adapt_002_the_same_policy_gives_the_same_decisions_over_http_and_stdio() {
    let rules = "  - {rule_id: t, kind: tag, match: {tool_name: {glob: ['write_*']}}, effect: {tag: {add_risk_class: [write_like]}}}\n  \
                 - {rule_id: dup, kind: dedupe, match: {risk_class: [write_like]}, effect: {dedupe: {window_ms: 60000}}}\n  \
                 - {rule_id: b, kind: budget, match: {tool_name: {glob: [echo]}}, effect: {budget: {limit_calls: 2}}}\n  \
                 - {rule_id: d, kind: deny, match: {args: {has_keys: [force]}}, effect: {reason_code: NO_FORCE}}\n";
    let calls = [
        ("echo", json!({"b": 2, "a": 1})),
        ("echo", json!({"a": 1.0, "b": 2})),
        ("echo", json!({})),
        ("write_file", json!({"path": "ü", "text": "x"})),
        ("write_file", json!({"text": "x", "path": "ü"})),
        ("size", json!({"force": true})),
        ("size", json!({"n": 9_007_199_254_740_993_u64})),
    ];
    let (stdio, http) = (GuardFolder::new().with_rules(rules), GuardFolder::new().with_rules(rules));
    let mut client = stdio.start();
    for (tool, args) in &calls {
        client.call(tool, args);
    }
    client.close();
    let server = echo();
    let mut proxy = GuardProxy::start(&http, &server.url());
    for (id, (tool, args)) in (0..).zip(&calls) {
        proxy.call(id, tool, args);
    }
    proxy.stop();
    let found = decisions(&http);
    assert_eq!(found, decisions(&stdio));
    let actions: Vec<_> = found.iter().map(|it| it[1]["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["ALLOW", "ALLOW", "BLOCK", "ALLOW", "BLOCK", "BLOCK", "ALLOW"]);
    assert_eq!(found[0][0]["args_hash"], found[1][0]["args_hash"]);
    assert_eq!(http.events()[0]["run"]["policy"], stdio.events()[0]["run"]["policy"]);
}

#[test]
fn adapt_003_a_blocked_call_is_answered_with_a_json_rpc_error_and_not_forwarded() {
    let server = echo();
    let folder = GuardFolder::new().with_rules(DENY);
    let mut proxy = GuardProxy::start(&folder, &server.url());
    let response = proxy.post("", &call(3, "push", &json!({"branch": "main"})));
    assert_eq!((response.status(), response.header("content-type")), (200, Some("application/json")));
    let (answer, length) = (response.json(), response.body.len());
    assert_eq!(
        (&answer["jsonrpc"], &answer["id"], &answer["error"]["code"]),
        (&json!("2.0"), &json!(3), &json!(-32081))
    );
    let details = &answer["error"]["data"]["subluminal"];
    assert_eq!((&details["rule_id"], &details["reason_code"]), (&json!("d"), &json!("NO_PUSH")));
    assert_eq!((&details["server_name"], &details["tool_name"]), (&json!("test"), &json!("push")));
    assert!(server.received().is_empty());
    proxy.stop();
    let end = &folder.events_of("tool_call_end")[0];
    assert_eq!((&end["status"], &end["error"]["class"]), (&json!("ERROR"), &json!("policy_block")));
    assert_eq!(end["bytes_out"], length);
    let summary = folder.events().last().unwrap()["run"]["summary"].clone();
    assert_eq!((&summary["calls_total"], &summary["calls_blocked"]), (&json!(1), &json!(1)));
}

#[test]
fn a_stateless_request_is_refused_with_a_tool_result() {
    let server = echo();
    let folder = GuardFolder::new().with_rules(DENY);
    let proxy = GuardProxy::start(&folder, &server.url());
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let body = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "push", "_meta": meta}});
    let answer = proxy.post("mcp-method: tools/call\r\nmcp-name: push\r\n", &body.to_string()).json();
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!("a"), &json!(true)));
    assert_eq!(answer["result"]["resultType"], "complete");
    assert!(server.received().is_empty());
}

#[test]
fn a_batch_is_forwarded_without_its_blocked_calls() {
    let server = echo();
    let folder = GuardFolder::new().with_rules(DENY);
    let mut proxy = GuardProxy::start(&folder, &server.url());
    let batch = format!(
        r"[{}, {} , {}]",
        call(1, "echo", &json!({"n": 1})),
        call(2, "push", &json!({})),
        r#"{ "jsonrpc":"2.0","id":3,"method":"ping"}"#
    );
    let answers = proxy.post("", &batch).json();
    let ids: Vec<_> = answers.as_array().unwrap().iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, [2, 1, 3]);
    assert_eq!((&answers[0]["error"]["code"], &answers[1]["result"]), (&json!(-32081), &json!({"n": 1})));
    let forwarded =
        format!(r"[{},{}]", call(1, "echo", &json!({"n": 1})), r#"{ "jsonrpc":"2.0","id":3,"method":"ping"}"#);
    assert_eq!(server.received()[0].text(), forwarded);
    let all = proxy.post("", &format!("[{}]", call(4, "push", &json!({})))).json();
    assert_eq!((all.as_array().unwrap().len(), &all[0]["id"]), (1, &json!(4)));
    proxy.stop();
    let statuses: Vec<_> = folder.events_of("tool_call_end").iter().map(|end| end["status"].clone()).collect();
    assert_eq!(statuses, ["ERROR", "OK", "ERROR"]);
}

#[test]
fn the_refusals_of_a_batch_come_first_in_a_stream_of_events() {
    let server = HttpServer::start(|_, connection| {
        start_events(connection, "");
        write_chunk(connection, b"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n");
        write_chunk(connection, b"");
    });
    let folder = GuardFolder::new().with_rules(DENY);
    let proxy = GuardProxy::start(&folder, &server.url());
    let batch = format!("[{},{}]", call(1, "echo", &json!({})), call(2, "push", &json!({})));
    let text = proxy.post("", &batch).text().to_owned();
    let (refusal, rest) = text.split_once("\n\n").unwrap();
    let refusal: Value = serde_json::from_str(refusal.strip_prefix("event: message\ndata: ").unwrap()).unwrap();
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(2), &json!(-32081)));
    assert_eq!(rest, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n");
}

#[test]
fn a_batch_whose_rest_has_no_response_is_answered_with_the_refusals() {
    let server = HttpServer::start(|_, connection| respond(connection, "202 Accepted", "", b""));
    let folder = GuardFolder::new().with_rules(DENY);
    let proxy = GuardProxy::start(&folder, &server.url());
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
    let response = proxy.post("", &format!("[{notification},{}]", call(2, "push", &json!({}))));
    assert_eq!((response.status(), &response.json()[0]["id"]), (200, &json!(2)));
    assert_eq!(server.received()[0].text(), format!("[{notification}]"));
}

#[test]
fn requests_on_which_readers_disagree_are_not_forwarded() {
    let server = echo();
    let folder = GuardFolder::new().with_rules(DENY);
    let proxy = GuardProxy::start(&folder, &server.url());
    let utf_16: Vec<u8> = call(1, "push", &json!({})).encode_utf16().flat_map(u16::to_le_bytes).collect();
    let bodies: [&[u8]; 6] = [
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"push"}}"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"push"}}"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"push","arguments":{"a":NaN}}}"#,
        b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"push\"}}",
        &utf_16,
        b"method=tools/call",
    ];
    for body in bodies {
        let mut connection = proxy.connect();
        connection.post("", body);
        let response = connection.response();
        assert!(response.json()["error"]["code"].is_i64(), "{}", String::from_utf8_lossy(body));
    }
    let mut connection = proxy.connect();
    connection.post("content-encoding: gzip\r\n", b"\x1f\x8b\x08");
    assert_eq!(connection.response().status(), 400);
    assert_eq!(server.received(), []);
}

#[test]
fn headers_that_name_another_call_than_the_body_are_refused() {
    let server = echo();
    let folder = GuardFolder::new().with_rules(DENY);
    let proxy = GuardProxy::start(&folder, &server.url());
    for headers in ["mcp-method: tools/call\r\nmcp-name: push\r\n", "mcp-method: ping\r\n"] {
        let response = proxy.post(headers, &call(1, "echo", &json!({})));
        assert_eq!((response.status(), &response.json()["error"]["code"]), (400, &json!(-32020)), "{headers}");
    }
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"name":"push"}}"#;
    assert_eq!(proxy.post("mcp-method: tools/call\r\n", ping).status(), 400);
    assert_eq!(server.received(), []);
    assert_eq!(proxy.post("mcp-method: tools/call\r\nmcp-name: echo\r\n", &call(1, "echo", &json!({}))).status(), 200);
}

/// Calls on which parsers disagree.
const AMBIGUOUS: [&str; 5] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1,"a":2}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"push"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"echo"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":[1]}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#,
];

#[test]
fn ambiguous_calls_are_refused_in_observe_mode_over_http_and_stdio() {
    let policy = "policy_id: p\nversion: '1'\nmode: observe\nrules: []\n";
    let (stdio, http) = (GuardFolder::new().with_policy(policy), GuardFolder::new().with_policy(policy));
    let stdio = stdio.with_server_arguments(&["--log", "received"]);
    let mut client = stdio.start();
    let server = echo();
    let mut proxy = GuardProxy::start(&http, &server.url());
    for text in AMBIGUOUS {
        client.send(format!("{text}\n"));
        for answer in [client.receive(), proxy.post("", text).json()] {
            let details = &answer["error"]["data"]["subluminal"];
            assert_eq!((&answer["id"], &details["reason_code"]), (&json!(1), &json!("AMBIGUOUS_REQUEST")), "{text}");
        }
    }
    client.close();
    proxy.stop();
    assert_eq!(decisions(&http).len(), AMBIGUOUS.len());
    assert_eq!(decisions(&http), decisions(&stdio));
    assert_eq!(server.received(), []);
    assert_eq!(std::fs::read(stdio.sandbox.path("received")).unwrap(), b"");
}

#[test]
fn credentials_of_the_client_and_of_the_url_reach_the_server_and_are_not_recorded() {
    let server = echo();
    let folder = GuardFolder::new();
    let url = format!("http://ada:pass-in-url@{}/mcp?key=key-in-url", server.address);
    let mut proxy = GuardProxy::start(&folder, &url);
    let credentials =
        "authorization: Bearer token-of-client\r\ncookie: a=cookie-of-client\r\nx-api-key: key-of-client\r\n";
    proxy.post(credentials, &call(1, "echo", &json!({})));
    proxy.post("", &call(2, "echo", &json!({})));
    proxy.stop();
    let [of_client, of_url] = &server.received()[..] else { panic!() };
    let authorization: Vec<_> = of_client.headers.iter().filter(|(name, _)| name == "authorization").collect();
    assert_eq!(authorization, [&("authorization".to_owned(), "Bearer token-of-client".to_owned())]);
    assert_eq!(of_client.header("cookie"), Some("a=cookie-of-client"));
    assert_eq!(of_client.header("x-api-key"), Some("key-of-client"));
    assert_eq!(of_url.header("authorization"), Some("Basic YWRhOnBhc3MtaW4tdXJs"));
    assert!(of_url.start.starts_with("POST /mcp?key=key-in-url "), "{}", of_url.start);
    let files = counterproof_tests::files_below(folder.sandbox.root());
    assert!(files.iter().any(|(path, _)| path.ends_with("ledger.db")), "the ledger is checked");
    for (path, bytes) in files {
        let text = String::from_utf8_lossy(&bytes);
        for secret in ["-of-client", "-in-url", "YWRhOnBhc3MtaW4tdXJs"] {
            assert!(!text.contains(secret), "{secret} in {path}");
        }
    }
}

#[test]
fn in_observe_mode_rules_refuse_nothing() {
    let policy = format!("policy_id: p\nversion: '1'\nmode: observe\nrules:\n{DENY}");
    let server = echo();
    let folder = GuardFolder::new().with_policy(&policy);
    let proxy = GuardProxy::start(&folder, &server.url());
    assert_eq!(proxy.call(1, "push", &json!({"a": 1}))["result"], json!({"a": 1}));
    proxy.post("mcp-method: ping\r\n", &call(1, "push", &json!({})));
    proxy.post("", "this is no JSON");
    assert_eq!(server.received().len(), 3);
}

/// Posts a body with a type, as a form of a web page does.
fn post_form(proxy: &GuardProxy, path: &str, content_type: &str, body: &str) -> Message {
    let mut connection = proxy.connect();
    let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {content_type}\r\n");
    connection.send(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
    connection.response()
}

#[test]
fn a_form_of_a_web_page_is_refused() {
    let server = echo();
    let folder = GuardFolder::new();
    let proxy = GuardProxy::start(&folder, &server.url());
    for content_type in ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"] {
        let response = post_form(&proxy, "/mcp", content_type, &call(1, "push", &json!({})));
        assert_eq!((response.status(), &response.json()["error"]["code"]), (415, &json!(-32600)), "{content_type}");
    }
    assert_eq!(server.received(), []);
}

#[test]
fn a_form_of_oauth_is_forwarded_if_forms_are_allowed() {
    let server = echo();
    let folder = GuardFolder::new().with_rules(DENY);
    let proxy = GuardProxy::start_with(&folder, &server.url(), &["--allow-forms"]);
    let form = "grant_type=refresh_token&refresh_token=x";
    post_form(&proxy, "/token", "application/x-www-form-urlencoded", form);
    assert_eq!(post_form(&proxy, "/mcp", "text/plain", &call(1, "push", &json!({}))).json()["error"]["code"], -32081);
    assert_eq!(server.received().len(), 1);
    assert_eq!((server.received()[0].text(), &*server.received()[0].start), (form, "POST /token HTTP/1.1"));
}

#[test]
fn a_rule_that_ends_the_run_ends_the_proxy() {
    let rules = "  - {rule_id: d, kind: deny, match: {tool_name: {glob: [push]}}, effect: {action: TERMINATE_RUN}}\n";
    let server = echo();
    let folder = GuardFolder::new().with_rules(rules);
    let mut proxy = GuardProxy::start(&folder, &server.url());
    let answer = proxy.call(1, "push", &json!({}));
    assert_eq!(answer["error"]["code"], -32084);
    assert_eq!(proxy.wait(), Some(1));
    let end = folder.events().pop().unwrap();
    assert_eq!((&end["type"], &end["run"]["status"]), (&json!("run_end"), &json!("TERMINATED")));
}

#[test]
fn a_retry_with_the_answers_of_the_user_is_the_same_call() {
    let server = HttpServer::of_json(|request| {
        let asks = request["params"].get("inputResponses").is_none();
        let result =
            if asks { json!({"resultType": "input_required", "requestState": "s"}) } else { json!({"content": []}) };
        json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
    });
    let folder = GuardFolder::new();
    let mut proxy = GuardProxy::start(&folder, &server.url());
    proxy.call(1, "ask", &json!({"a": 1}));
    let params = json!({"name": "ask", "arguments": {"a": 1}, "inputResponses": {}, "requestState": "s"});
    proxy.post("", &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).to_string());
    proxy.stop();
    assert_eq!(folder.events_of("tool_call_start").len(), 1);
    let ends = folder.events_of("tool_call_end");
    assert_eq!((ends.len(), &ends[0]["status"]), (1, &json!("OK")));
}

#[test]
fn a_web_page_cannot_reach_the_server_by_another_name_for_this_machine() {
    let server = echo();
    let folder = GuardFolder::new();
    let proxy = GuardProxy::start(&folder, &server.url());
    for headers in [
        "Host: evil.example\r\n",
        "Host: localhost\r\nOrigin: http://evil.example\r\n",
        "Host: localhost\r\nHost: localhost\r\n",
        "",
    ] {
        let mut connection = proxy.connect();
        let body = call(1, "x", &json!({}));
        connection
            .send(format!("POST /mcp HTTP/1.1\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
        let status = connection.response().status();
        assert!(matches!(status, 400 | 403), "{headers}: {status}");
    }
    assert_eq!(server.received(), []);
    assert_eq!(proxy.post("origin: http://localhost:6274\r\n", &call(1, "x", &json!({}))).status(), 200);
}

#[test]
fn calls_of_several_sessions_may_have_the_same_ids() {
    let server = echo();
    let folder = GuardFolder::new();
    let mut proxy = GuardProxy::start(&folder, &server.url());
    for session in ["a", "b"] {
        proxy.post(&format!("mcp-session-id: {session}\r\n"), &call(1, "x", &json!({"session": session})));
    }
    proxy.stop();
    let ends = folder.events_of("tool_call_end");
    let ids: Vec<_> = ends.iter().map(|end| end["call"]["call_id"].as_str().unwrap()).collect();
    assert_eq!((ids.len(), ids[0] != ids[1]), (2, true));
}
