//! The kit of the end-to-end tests: a temporary folder, the built programs, and an agent with scripted answers.
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

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]
#![allow(clippy::missing_panics_doc, reason = "the kit panics if a test cannot continue")]

mod agent;
mod mcp;
mod model_script;
mod model_server;
mod program;
mod sandbox;
pub mod workflow_model;

pub use agent::{Agent, Reply, minimal_answer};
pub use mcp::McpClient;
pub use model_script::{brotli_pieces, scripted_answer, zstd_pieces};
pub use model_server::{Gate, ModelAnswer, ModelRequest, ModelServer, Step};
pub use program::{coding_agent, program, safe_run};
pub use sandbox::{Finished, Sandbox, UNSHARE, files_below};
