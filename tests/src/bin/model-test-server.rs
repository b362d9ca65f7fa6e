//! A model server for tests with other clients: prints its origin, and answers by the model that a request names.
//!
//! With `--log FILE`, it appends each request and the body of its answer to a file, as one line of JSON.

#![allow(clippy::unwrap_used, reason = "a test server that fails has failed the test")]

use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::sync::{Mutex, PoisonError};

use counterproof_tests::{ModelRequest, ModelServer, scripted_answer};
use serde_json::json;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let log = arguments.windows(2).find(|pair| pair[0] == "--log").map(|pair| pair[1].clone());
    let earlier: Mutex<Vec<ModelRequest>> = Mutex::default();
    let server = ModelServer::start(move |_, request| {
        let mut earlier = earlier.lock().unwrap_or_else(PoisonError::into_inner);
        // A retry differs in a header that counts it, and a connection may differ in others.
        let equal = earlier.iter().filter(|it| it.target == request.target && it.body == request.body).count();
        earlier.push(request.clone());
        let answer = scripted_answer(request, equal);
        if let Some(log) = &log {
            let line = json!({"method": request.method, "target": request.target, "headers": request.headers,
                "body": String::from_utf8_lossy(&request.body)});
            #[expect(clippy::disallowed_methods, reason = "appends to a log of the test")]
            let mut file = OpenOptions::new().create(true).append(true).open(log).unwrap();
            writeln!(file, "{line}").unwrap();
        }
        answer
    });
    writeln!(io::stdout(), "{}", server.origin()).unwrap();
    io::stdout().flush().unwrap();
    // Until the test closes the pipe.
    let _ = io::stdin().read_to_end(&mut Vec::new());
}
