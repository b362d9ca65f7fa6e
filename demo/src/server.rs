//! The HTTP server of the agent: `POST /run-case` and `GET /health`.

use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::Variant;
use crate::playbook::{Reply, reply};

/// Serves a variant of the agent until the future is dropped.
pub async fn serve(listener: TcpListener, variant: Variant) -> io::Result<()> {
    let routes = Router::new()
        .route("/health", get(async || Json(json!({ "ok": true }))))
        .route("/run-case", post(run_case))
        .with_state(variant);
    axum::serve(listener, routes).await
}

/// Starts a variant of the agent on a free port of the loopback interface. It stops when the handle is dropped.
pub async fn start(variant: Variant) -> io::Result<Agent> {
    // Loopback only: the demo must not be reachable from other machines.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let task = tokio::spawn(async move {
        // An error ends the task, and the runner then reports that the agent is unreachable.
        let _ = serve(listener, variant).await;
    });
    Ok(Agent { address, task })
}

#[derive(Debug)]
pub struct Agent {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Agent {
    /// Returns the address that the agent listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the base URL for a runner.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // A dropped handle alone would let the task go on.
        self.task.abort();
    }
}

async fn run_case(State(variant): State<Variant>, body: Bytes) -> Response {
    let Some((case_id, version)) = read_request(&body) else {
        let shape = json!({
            "error": "Invalid request",
            "required": ["case_id", "version", "input.user"],
            "allowed_versions": ["baseline", "new"],
        });
        return (StatusCode::BAD_REQUEST, Json(shape)).into_response();
    };
    let addressed = |mut answer: Value| {
        answer["case_id"] = json!(case_id);
        answer["version"] = json!(version);
        answer["workflow_id"] = json!("shop-support");
        answer
    };
    match reply(&case_id, variant) {
        Some(Reply::Answer(answer)) => Json(addressed(answer)).into_response(),
        Some(Reply::CutOff(answer)) => {
            let whole = addressed(answer).to_string();
            // Cut within the JSON but not within a character, so the body is text and fails only as JSON.
            let half = whole[..whole.floor_char_boundary(whole.len() * 2 / 3)].to_owned();
            ([(header::CONTENT_TYPE, "application/json")], half).into_response()
        }
        Some(Reply::Error(status, error)) => {
            (StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), Json(error)).into_response()
        }
        // The runner closes the connection at its time limit, which drops this future.
        Some(Reply::Silence) => pending().await,
        None => {
            (StatusCode::NOT_FOUND, Json(json!({ "error": "Unknown case_id", "case_id": case_id }))).into_response()
        }
    }
}

/// Reads the case ID and the version from a request. Returns `None` if a required field is missing.
fn read_request(body: &[u8]) -> Option<(String, String)> {
    let request: Value = serde_json::from_slice(body).ok()?;
    let case_id = request["case_id"].as_str().filter(|id| !id.is_empty())?;
    // Checked although it is only echoed: a runner that sends another one has a fault.
    let version = request["version"].as_str().filter(|version| ["baseline", "new"].contains(version))?;
    // Not used: the playbook decides by the case. A real agent would refuse such a request.
    request["input"]["user"].as_str()?;
    Some((case_id.to_owned(), version.to_owned()))
}
