//! An agent on loopback that speaks the wire format, with scripted answers.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};
use serde_json::{Value, json};
use tokio::runtime::Builder;

/// The response of the agent to one request.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    content_type: &'static str,
    body: Vec<u8>,
    delay: Duration,
}

impl Reply {
    /// Status 200 with JSON.
    pub fn json(body: &Value) -> Self {
        Self::text(200, "application/json", &body.to_string())
    }

    pub fn text(status: u16, content_type: &'static str, body: &str) -> Self {
        Self { status, content_type, body: body.as_bytes().to_vec(), delay: Duration::ZERO }
    }

    /// Cycles through the kinds of answers by a number: a failure with a body, an answer with a payload, a plain answer.
    pub fn of_every_kind(number: usize) -> Self {
        match number % 3 {
            0 => Self::text(400, "text/plain", &"no ".repeat(3000)),
            1 => {
                let mut answer = minimal_answer();
                answer["events"] = json!([
                    {"type": "tool_call", "ts": 1, "call_id": "c1", "tool": "lookup", "args": {}},
                    {"type": "tool_result", "ts": 2, "call_id": "c1", "status": "ok", "latency_ms": 1,
                     "payload_summary": "x".repeat(50_000)}
                ]);
                Self::json(&answer)
            }
            _ => Self::json(&minimal_answer()),
        }
    }

    /// Delays the response.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }
}

/// A minimal valid answer.
pub fn minimal_answer() -> Value {
    json!({"proposed_actions": [], "events": [], "final_output": {"content_type": "text", "content": "done"}})
}

type Decide = dyn Fn(&str) -> Reply + Send + Sync;

#[derive(Clone)]
struct Shared {
    decide: Arc<Decide>,
    requests: Arc<Mutex<Vec<Value>>>,
}

/// A running agent, which lives as long as the process of the test.
pub struct Agent {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Agent {
    /// Starts an agent that answers each case with the result of `decide`.
    pub fn start(decide: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        listener.set_nonblocking(true).expect("a socket for tokio");
        let requests = Arc::<Mutex<Vec<Value>>>::default();
        let shared = Shared { decide: Arc::new(decide), requests: requests.clone() };
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let paths = ["/run-case", "/chat/completions", "/responses"];
                let routes =
                    paths.iter().fold(Router::new(), |routes, path| routes.route(path, routing::post(run_case)));
                let routes = routes.with_state(shared);
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                axum::serve(listener, routes).await.expect("the agent serves");
            });
        });
        Self { address, requests }
    }

    /// Returns the base URL of the agent.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the bodies of all requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns the case of a request: its id, or the message of the user for the OpenAI protocols.
fn requested_case(request: &Value) -> &str {
    let said = ["messages", "input"].iter().find_map(|field| request[field].as_array()?.last());
    request["case_id"].as_str().or(said.and_then(|message| message["content"].as_str())).unwrap_or_default()
}

async fn run_case(State(shared): State<Shared>, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let reply = (shared.decide)(requested_case(&request));
    shared.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    tokio::time::sleep(reply.delay).await;
    let status = StatusCode::from_u16(reply.status).expect("a status");
    (status, [(header::CONTENT_TYPE, reply.content_type)], reply.body).into_response()
}
