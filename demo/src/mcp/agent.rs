//! The agent: it calls the tools of a case, one after the other.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

use super::guarded_cases::calls;
use super::protocol::{REVISION, read, write};
use crate::variant::Variant;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentEnd {
    /// It made all its calls.
    Done,
    /// The server closed its end.
    ServerGone,
}

/// Makes the calls of a case. A call that fails or is refused does not stop the agent.
pub fn run_agent(case_id: &str, variant: Variant, input: impl BufRead, output: impl Write) -> io::Result<AgentEnd> {
    let mut session = AgentSession { input, output, last_id: 0 };
    let client = json!({"name": "counterproof-demo-agent", "version": env!("CARGO_PKG_VERSION")});
    let hello = json!({"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client});
    if !session.request("initialize", &hello)? {
        return Ok(AgentEnd::ServerGone);
    }
    write(&mut session.output, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
    for (tool, args) in calls(case_id, variant) {
        if !session.request("tools/call", &json!({"name": tool, "arguments": args}))? {
            return Ok(AgentEnd::ServerGone);
        }
    }
    Ok(AgentEnd::Done)
}

struct AgentSession<R, W> {
    input: R,
    output: W,
    last_id: u64,
}

impl<R: BufRead, W: Write> AgentSession<R, W> {
    /// Sends a request and waits for its answer. Returns false if the server is gone.
    fn request(&mut self, method: &str, params: &Value) -> io::Result<bool> {
        self.last_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        match write(&mut self.output, &message) {
            // The planted crash of a server is a result of the demo and not an error of the agent.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(false),
            written => written?,
        }
        // Messages without this id, such as notifications, are skipped.
        while let Some(answer) = read(&mut self.input)? {
            if answer["id"] == self.last_id {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
