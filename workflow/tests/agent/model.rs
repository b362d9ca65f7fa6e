//! The client of a model, against a server that sends exactly what a test says.

use std::thread;
use std::time::Duration;

use counterproof_safe_run::Cancellation;
use counterproof_sessions::event::{Api, EventBody, LlmCall, SessionEvent, Usage};
use counterproof_tests::{Gate, ModelAnswer, ModelServer, Step};
use counterproof_workflow::model::{
    Answer, ApiKey, AskError, Attempts, ModelClient, ModelError, ModelOptions, Price, RecordError,
};
use serde_json::{Value, json};

const KEY: &str = "sk-verysecret0123456789";

/// Records the attempts of a request, within a budget.
struct Log {
    events: Vec<SessionEvent>,
    budget: usize,
    /// Opened with the first record.
    recorded: Gate,
}

impl Default for Log {
    fn default() -> Self {
        Self { events: Vec::new(), budget: 100, recorded: Gate::default() }
    }
}

impl Attempts for Log {
    fn may_send(&mut self) -> bool {
        self.events.len() < self.budget
    }

    fn record(&mut self, event: SessionEvent) -> Result<(), RecordError> {
        self.events.push(event);
        self.recorded.open();
        Ok(())
    }
}

impl Log {
    fn calls(&self) -> Vec<&LlmCall> {
        let calls = self.events.iter().map(|event| match &event.body {
            EventBody::LlmCall(call) => call,
            _ => panic!("{event:?}"),
        });
        calls.collect()
    }

    /// The kinds of the errors, in their order.
    fn errors(&self) -> Vec<Option<&str>> {
        self.events.iter().map(|event| event.error.as_ref().map(|error| error.kind.as_str())).collect()
    }
}

fn options(server: &ModelServer) -> ModelOptions {
    ModelOptions {
        api_key: ApiKey::new(KEY),
        backoff: Duration::ZERO,
        attempts: 4,
        ..ModelOptions::new(format!("{}/v1/", server.origin()), "m")
    }
}

fn ask(options: ModelOptions) -> (Result<Answer, AskError>, Log) {
    let mut log = Log::default();
    let client = ModelClient::new(options).unwrap();
    let body = client.body(&[json!({"role": "user", "content": "Hi"})], &json!([]));
    let answer = client.ask(&body, &Cancellation::default(), &mut log);
    assert!(!format!("{client:?} {answer:?} {:?}", log.events).contains(KEY), "the key leaked");
    assert!(!log.events.iter().any(|event| serde_json::to_string(event).unwrap().contains(KEY)), "the key leaked");
    (answer, log)
}

/// Starts a server that sends these answers in their order, the last one again and again.
fn scripted(answers: Vec<ModelAnswer>) -> ModelServer {
    ModelServer::start(move |number, _| answers[number.min(answers.len() - 1)].clone())
}

fn events(chunks: &[Value]) -> String {
    let lines: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    lines.concat() + "data: [DONE]\n\n"
}

fn delta(delta: &Value) -> Value {
    json!({"id": "c", "choices": [{"index": 0, "delta": delta}]})
}

fn end() -> [Value; 2] {
    [
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}}),
    ]
}

fn text_stream() -> String {
    let [finish, usage] = end();
    events(&[
        delta(&json!({"role": "assistant", "content": "Grüße "})),
        delta(&json!({"content": "😀"})),
        finish,
        usage,
    ])
}

fn text_document() -> Value {
    json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4}})
}

fn ok() -> ModelAnswer {
    ModelAnswer::events(&text_stream(), 7)
}

#[test]
fn a_stream_is_read_in_any_pieces() {
    for size in [1, 2, 3, 50, 10_000] {
        let server = scripted(vec![ModelAnswer::events(&text_stream(), size)]);
        let (answer, log) = ask(ModelOptions { price: Some(Price { input: 2.0, output: 4.0 }), ..options(&server) });
        let answer = answer.unwrap();
        assert_eq!(answer.text.as_deref(), Some("Grüße 😀"), "{size}");
        assert_eq!(answer.message, json!({"role": "assistant", "content": "Grüße 😀"}));
        assert_eq!(answer.usage, Some(Usage::new(Some(1000), Some(500), None)));
        assert_eq!(answer.finish_reason.as_deref(), Some("tool_calls"));
        assert_eq!(log.errors(), [None]);
        let cost = log.calls()[0].cost.unwrap();
        assert!((cost - 0.004).abs() < 1e-12, "{cost}");
    }
}

#[test]
fn a_request_has_the_fields_of_the_protocol_and_its_record_too() {
    let server = scripted(vec![ok()]);
    let options = options(&server);
    let client = ModelClient::new(options.clone()).unwrap();
    let messages = [json!({"role": "user", "content": "Hi"})];
    let tools = json!([{"type": "function", "function": {"name": "read"}}]);
    let body = client.body(&messages, &tools);
    assert_eq!(body, ModelClient::new(options.clone()).unwrap().body(&messages, &tools));
    assert_eq!(
        body,
        json!({"model": "m", "messages": messages, "tools": tools,
        "stream": true, "stream_options": {"include_usage": true}})
    );
    let mut log = Log::default();
    client.ask(&body, &Cancellation::default(), &mut log).unwrap();
    let [sent] = &server.requests()[..] else { panic!() };
    assert_eq!((sent.method.as_str(), sent.target.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(sent.header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!(sent.json(), body);
    let request = &log.calls()[0].request;
    assert_eq!((request.api, request.model.as_deref()), (Some(Api::OpenaiChat), Some("m")));
    assert_eq!((&request.messages, &request.tools), (&json!(messages), &tools));
    assert_eq!(request.body, body);
    let response = log.calls()[0].response.clone().unwrap();
    assert_eq!(response.content.as_deref(), Some("Grüße 😀"));
    assert!(log.calls()[0].latency_ms.is_some());
    // Without a key and without streaming.
    let plain =
        ModelOptions { api_key: None, stream: false, ..ModelOptions::new(format!("{}/v1?v=1", server.origin()), "m") };
    let client = ModelClient::new(plain).unwrap();
    let body = client.body(&messages, &json!([]));
    assert_eq!(body, json!({"model": "m", "messages": messages}));
    client.ask(&body, &Cancellation::default(), &mut log).unwrap();
    let sent = &server.requests()[1];
    assert_eq!((sent.target.as_str(), sent.header("authorization")), ("/v1/chat/completions?v=1", None));
}

#[test]
fn several_calls_of_a_message_are_read() {
    let call = |index: u64, id: &str, name: &str, arguments: &str| {
        let function = json!({"name": name, "arguments": arguments});
        json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]})
    };
    let more = json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"a\"}"}}]});
    let [finish, usage] = end();
    let chunks =
        [delta(&call(0, "x", "read", "{\"path\": ")), delta(&more), delta(&call(1, "x", "shell", "{")), finish, usage];
    let server = scripted(vec![ModelAnswer::events(&events(&chunks), 5)]);
    let answer = ask(options(&server)).0.unwrap();
    let calls: Vec<_> = answer.calls.iter().map(|call| (&*call.function.name, &*call.function.arguments)).collect();
    assert_eq!(calls, [("read", "{\"path\": \"a\"}"), ("shell", "{")]);
    assert_eq!(answer.message["content"], Value::Null);
    let ids = [&answer.message["tool_calls"][0]["id"], &answer.message["tool_calls"][1]["id"]];
    assert_eq!(ids, ["x", "call_1_1"]);
    assert_eq!(answer.calls[1].id.as_deref(), Some("call_1_1"));
}

#[test]
fn a_server_that_does_not_stream_is_read_as_well() {
    for stream in [true, false] {
        let server = scripted(vec![ModelAnswer::json(200, &text_document())]);
        let (answer, _) = ask(ModelOptions { stream, ..options(&server) });
        assert_eq!(answer.unwrap().text.as_deref(), Some("Hi"));
    }
}

#[test]
fn passing_failures_are_retried_and_each_attempt_is_recorded() {
    let error = |status| ModelAnswer::json(status, &json!({"error": {"message": "slow down"}}));
    let server = scripted(vec![error(429).header("Retry-After", "0"), error(500), ok().cut_after(20), ok()]);
    let (answer, log) = ask(options(&server));
    assert_eq!(answer.unwrap().text.as_deref(), Some("Grüße 😀"));
    assert_eq!(log.errors(), [Some("http"), Some("http"), Some("cut"), None]);
    let error = log.events[0].error.clone().unwrap();
    assert_eq!((error.status, &*error.message), (Some(429), "the model server answered with status 429: slow down"));
    let cut = log.calls()[2].response.clone().unwrap();
    assert!(cut.content.unwrap().starts_with("Gr") && cut.finish_reason.is_none());
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn attempts_end_with_the_last_failure() {
    let server = scripted(vec![ModelAnswer::json(503, &json!({"error": {"message": "down"}}))]);
    let (answer, log) = ask(options(&server));
    let Err(AskError::Model { message, attempts: 4 }) = answer else { panic!("{answer:?}") };
    assert_eq!((message.as_str(), log.events.len()), ("the model server answered with status 503: down", 4));
}

#[test]
fn an_error_of_the_request_is_not_retried() {
    for status in [400, 401, 404, 307] {
        let body = json!({"error": {"message": format!("Incorrect API key provided: {KEY}"), KEY: 1}});
        let location = format!("http://127.0.0.1:9/{KEY}");
        let server = scripted(vec![ModelAnswer::json(status, &body).header("Location", &location)]);
        let (answer, log) = ask(options(&server));
        let Err(AskError::Model { message, attempts: 1 }) = answer else { panic!("{answer:?}") };
        assert!(message.contains("Incorrect API key provided: [REDACTED]"), "{message}");
        assert_eq!((log.events.len(), server.requests().len()), (1, 1));
    }
}

#[test]
fn an_answer_that_quotes_the_key_does_not_pass_it_on() {
    let mut document = text_document();
    let function = json!({"name": "shell", "arguments": format!("echo {KEY}")});
    document["choices"][0]["message"] = json!({"content": KEY, "tool_calls": [{"id": KEY, "function": function}]});
    let server = scripted(vec![ModelAnswer::json(200, &document)]);
    let answer = ask(options(&server)).0.unwrap();
    assert_eq!(answer.text.as_deref(), Some("[REDACTED]"));
    assert_eq!(answer.calls[0].function.arguments, "echo [REDACTED]");
}

#[test]
fn malformed_answers_are_errors_after_one_retry() {
    let long = format!("{{\"choices\": \"{}", "x".repeat(65 << 20));
    for (answer, expected) in [
        (ModelAnswer::new(200, "text/html", "<html>gateway</html>"), "the answer is not JSON"),
        (ModelAnswer::new(200, "application/json", ""), "the answer is not JSON"),
        (ModelAnswer::json(200, &json!({"choices": []})), "the answer has no choice with a message"),
        (ModelAnswer::json(200, &json!({"choices": [{"message": null}]})), "the answer has no choice with a message"),
        (ModelAnswer::json(200, &json!([])), "the answer has no choice with a message"),
        (ModelAnswer::json(201, &json!("x")), "the answer has no choice with a message"),
        (ModelAnswer::events("data: [DONE]\n\n", 100), "the answer has no choice with a message"),
        (ModelAnswer::new(200, "application/json", long), "the answer is larger than 64 MiB"),
    ] {
        let server = scripted(vec![answer]);
        let (answer, log) = ask(options(&server));
        let Err(AskError::Model { message, attempts: 2 }) = answer else { panic!("{expected}: {answer:?}") };
        assert_eq!((message.as_str(), log.errors()), (expected, vec![Some("http"); 2]));
    }
}

#[test]
fn an_error_with_a_status_of_success_is_retried() {
    let error = json!({"error": {"message": "overloaded", "code": 502}});
    let server = scripted(vec![ModelAnswer::json(200, &error), ok()]);
    let (answer, log) = ask(options(&server));
    assert!(answer.is_ok(), "{answer:?}");
    let message = log.events[0].error.clone().unwrap().message;
    assert_eq!(message, "the model server reported an error in its answer: overloaded");
}

#[test]
fn a_stream_without_an_end_is_cut() {
    let (start, _) = text_stream()
        .split_once("data: {\"choices\":[{\"index\":0,\"delta\":{},")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    let error = events(&[json!({"error": {"message": "overloaded"}})]);
    for (answer, expected) in [
        (ModelAnswer::events(&start, 9), "the stream ended before the answer"),
        (ModelAnswer::events(&error, 9), "the model server reported an error in its answer: overloaded"),
    ] {
        let server = scripted(vec![answer]);
        let (answer, log) = ask(options(&server));
        let Err(AskError::Model { message, attempts: 4 }) = answer else { panic!("{expected}: {answer:?}") };
        assert_eq!((message.as_str(), log.errors()), (expected, vec![Some("cut"); 4]));
    }
}

#[test]
fn a_server_that_falls_silent_is_left() {
    let gate = Gate::default();
    let silent = ok().after(&gate);
    let piece = Step::Send(text_stream().as_bytes()[..80].to_vec());
    let half = ok().chunked([piece, Step::UntilClosed(Gate::default())]);
    let server = scripted(vec![silent, half]);
    // Milliseconds only, because nothing else happens in this time.
    let idle_timeout = Duration::from_millis(50);
    let (answer, log) = ask(ModelOptions { attempts: 2, idle_timeout, ..options(&server) });
    assert!(matches!(answer, Err(AskError::Model { attempts: 2, .. })), "{answer:?}");
    // On a busy machine, the second attempt may get nothing either.
    assert!(matches!(log.errors()[..], [Some("network"), Some("network" | "cut")]), "{:?}", log.errors());
    gate.open();
}

#[test]
fn an_answer_that_never_ends_is_cut_with_what_came() {
    let piece = Step::Send(text_stream().as_bytes()[..80].to_vec());
    let server = scripted(vec![ok().chunked([piece, Step::UntilClosed(Gate::default())])]);
    let request_timeout = Duration::from_millis(200);
    let (answer, log) = ask(ModelOptions { attempts: 1, request_timeout, ..options(&server) });
    assert!(matches!(answer, Err(AskError::Model { attempts: 1, .. })), "{answer:?}");
    assert_eq!(log.errors(), [Some("cut")]);
}

#[test]
fn a_cancellation_ends_a_request_and_a_wait_at_once() {
    let started = Gate::default();
    let piece = Step::Send(b": hello\n\n".to_vec());
    let waiting = ok().chunked([piece, Step::UntilClosed(Gate::default())]);
    let later = ModelAnswer::json(429, &json!({})).header("Retry-After", "100000");
    for (answer, is_recorded, expected) in [(waiting, false, "cut"), (later, true, "http")] {
        let gate = if is_recorded { Gate::default() } else { started.clone() };
        let sent = gate.clone();
        let server = ModelServer::start(move |_, _| {
            if !is_recorded {
                sent.open();
            }
            answer.clone()
        });
        let cancel = Cancellation::default();
        let client = ModelClient::new(options(&server)).unwrap();
        let mut log = Log { recorded: gate.clone(), ..Log::default() };
        let asked = thread::scope(|scope| {
            let asking = scope.spawn(|| client.ask(&client.body(&[], &json!([])), &cancel, &mut log));
            gate.wait();
            cancel.cancel();
            asking.join().unwrap()
        });
        assert!(matches!(asked, Err(AskError::Cancelled)), "{asked:?}");
        assert_eq!(log.errors(), [Some(expected)]);
    }
}

#[test]
fn retries_count_as_requests_of_the_budget() {
    let server = scripted(vec![ModelAnswer::json(500, &json!({}))]);
    let client = ModelClient::new(options(&server)).unwrap();
    let mut log = Log { budget: 2, ..Log::default() };
    let answer = client.ask(&client.body(&[], &json!([])), &Cancellation::default(), &mut log);
    assert!(matches!(answer, Err(AskError::Budget)), "{answer:?}");
    assert_eq!((log.events.len(), server.requests().len()), (2, 2));
}

#[test]
fn a_server_that_is_not_there_is_a_network_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://user:{KEY}@{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let (answer, log) = ask(ModelOptions { attempts: 2, backoff: Duration::ZERO, ..ModelOptions::new(url, "m") });
    let Err(AskError::Model { message, attempts: 2 }) = answer else { panic!("{answer:?}") };
    assert!(message.starts_with("cannot connect to http://127.0.0.1:"), "{message}");
    assert_eq!(log.errors(), [Some("network"), Some("network")]);
}

#[test]
fn invalid_settings_are_refused() {
    for url in ["", "localhost:8080/v1", "ftp://a/v1"] {
        assert!(matches!(ModelClient::new(ModelOptions::new(url, "m")), Err(ModelError::Url(_))), "{url}");
    }
    let options = ModelOptions { api_key: ApiKey::new("a\nb"), ..ModelOptions::new("http://127.0.0.1:1", "m") };
    assert!(matches!(ModelClient::new(options), Err(ModelError::Key)));
    assert_eq!(ApiKey::new(" \n"), None);
}
