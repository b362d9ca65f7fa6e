//! The interface of a code host for comments on a pull request, on loopback: as much as the files of `init --ci` use.

use std::sync::{Arc, Mutex};
use std::thread;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// A code host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Host {
    Github,
    Gitlab,
    Azure,
    Bitbucket,
}

impl Host {
    /// The document of a comment.
    fn comment(self, id: usize, text: &str) -> Value {
        match self {
            Host::Github | Host::Gitlab => json!({"id": id, "body": text}),
            Host::Azure => json!({"id": id, "comments": [{"id": 1, "content": text}]}),
            Host::Bitbucket => json!({"id": id, "content": {"raw": text}}),
        }
    }

    fn list(self, comments: &[Value]) -> Value {
        match self {
            Host::Github | Host::Gitlab => json!(comments),
            Host::Azure => json!({ "value": comments }),
            Host::Bitbucket => json!({ "values": comments }),
        }
    }

    /// The text of a comment that was sent.
    fn sent(self, body: &Value) -> String {
        let text = match self {
            Host::Github | Host::Gitlab => &body["body"],
            // A new comment is one of a new thread.
            Host::Azure => body.get("content").unwrap_or(&body["comments"][0]["content"]),
            Host::Bitbucket => &body["content"]["raw"],
        };
        text.as_str().unwrap_or_else(|| panic!("a comment without text: {body}")).to_owned()
    }
}

#[derive(Debug, Default)]
struct Stored {
    /// The texts, by id.
    comments: Vec<String>,
    /// The last uploaded file.
    upload: Option<Vec<u8>>,
}

/// A running code host, which lives as long as the process of the test.
pub(crate) struct CodeHost {
    pub(crate) url: String,
    stored: Arc<Mutex<Stored>>,
}

impl CodeHost {
    /// Starts a host with a pull request that has one comment of a person.
    pub(crate) fn start(host: Host) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        listener.set_nonblocking(true).unwrap();
        let stored = Arc::new(Mutex::new(Stored { comments: vec!["looks good".to_owned()], upload: None }));
        let state = (host, stored.clone());
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let routes = Router::new().fallback(answer).with_state(state);
                axum::serve(tokio::net::TcpListener::from_std(listener).unwrap(), routes).await.unwrap();
            });
        });
        Self { url, stored }
    }

    pub(crate) fn comments(&self) -> Vec<String> {
        self.stored.lock().unwrap().comments.clone()
    }
}

async fn answer(
    State((host, stored)): State<(Host, Arc<Mutex<Stored>>)>,
    method: Method,
    uri: Uri,
    body: Bytes,
) -> Response {
    let mut stored = stored.lock().unwrap();
    let path = uri.path();
    if path.contains("/downloads") {
        return match (method, &stored.upload) {
            (Method::GET, Some(file)) => file.clone().into_response(),
            (Method::GET, None) => StatusCode::NOT_FOUND.into_response(),
            _ => {
                stored.upload = Some(uploaded_file(&body));
                StatusCode::CREATED.into_response()
            }
        };
    }
    // A page after the first is empty.
    if uri.query().unwrap_or_default().split('&').any(|it| it.starts_with("page=") && it != "page=1") {
        return host.list(&[]).to_string().into_response();
    }
    if method == Method::GET {
        let all = stored.comments.iter().enumerate().map(|(id, text)| host.comment(id, text)).collect::<Vec<_>>();
        return host.list(&all).to_string().into_response();
    }
    let sent = host.sent(&serde_json::from_slice(&body).unwrap());
    if method == Method::POST {
        stored.comments.push(sent);
        return json!({"id": stored.comments.len() - 1}).to_string().into_response();
    }
    let parts: Vec<&str> = path.split('/').collect();
    let id = if host == Host::Azure { parts[parts.len() - 3] } else { parts[parts.len() - 1] };
    let id: usize = id.parse().unwrap_or_else(|_| panic!("no comment has the address {uri}"));
    stored.comments[id] = sent;
    json!({ "id": id }).to_string().into_response()
}

/// The content of the one file of a form.
fn uploaded_file(body: &[u8]) -> Vec<u8> {
    let find = |text: &[u8], from: usize| {
        body[from..].windows(text.len()).position(|window| window == text).map(|at| at + from).unwrap()
    };
    let start = find(b"\r\n\r\n", 0) + 4;
    body[start..find(b"\r\n--", start)].to_vec()
}
