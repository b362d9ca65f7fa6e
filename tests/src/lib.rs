//! The kit of the end-to-end tests: a scratch folder, the program as a user runs it, and an agent whose answers a test
//! decides. It holds no test of its own.
//!
//! ```no_run
//! use counterproof_tests::{Agent, Reply, Sandbox, minimal_answer};
//! use serde_json::json;
//!
//! let agent = Agent::start(|_case_id| Reply::json(&minimal_answer()));
//! let sandbox = Sandbox::new().with_file("cases.json", &json!([{"id": "a", "input": {"user": "hello"}}]).to_string());
//! let run = sandbox.run(["run", "--cases", "cases.json", "--side", "new", "--base-url", &agent.base_url()]);
//! assert_eq!(run.code, Some(0));
//! ```

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::missing_panics_doc, reason = "everything here panics where the test cannot go on")]

mod agent;
mod program;
mod sandbox;

pub use agent::{Agent, Reply, minimal_answer};
pub use program::{program, safe_run};
pub use sandbox::{Finished, Sandbox, files_below};
