//! MCP servers over standard input and output: JSON-RPC messages, one a line. A server answers one call at a time.

use std::io;
use std::time::Duration;

use counterproof_redaction::{Applied, Redactor};
use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::ToolOutput;
use crate::agent::ToolDefinition;
use crate::process::{AgentProgram, ProcessEvent, ProgramInput, RunningProgram};
use crate::settings::{AgentCommandError, McpSpec, Settings};

/// The version of MCP that this file follows.
const VERSION: &str = "2025-06-18";

/// The JSON-RPC code of an unknown method.
const UNKNOWN_METHOD: i64 = -32601;

/// The JSON-RPC code with which the guard answers the open requests of a server that ended.
const SERVER_ENDED: i64 = -32000;

/// How long after such an answer the end of the process is awaited. Other servers use the same code for other errors.
const END_WAIT: Duration = Duration::from_secs(2);

/// The longest message of a server. A longer one ends the conversation with it.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// How much of the standard error of a server is kept.
const MAX_STDERR_BYTES: usize = 4096;

/// A server that could not be started.
#[derive(Debug, thiserror::Error)]
#[error("failed to start the MCP server `{name}`: {cause}")]
pub struct McpError {
    name: String,
    cause: Failure,
}

impl McpError {
    /// Masks what the server said.
    pub(crate) fn masked(self, redactor: &Redactor) -> Self {
        let mask = |text: String| redactor.text(&text, &mut Applied::default());
        let cause = match self.cause {
            Failure::Ended(said) => Failure::Ended(mask(said)),
            Failure::Answer(said) => Failure::Answer(mask(said)),
            other => other,
        };
        Self { cause, ..self }
    }
}

/// Why a server gives no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Command(#[from] AgentCommandError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it ended: {0}")]
    Ended(String),
    #[error("it did not answer within {} seconds", .0.as_secs_f64())]
    TimedOut(Duration),
    #[error("it sent a message of more than {MAX_LINE_BYTES} bytes")]
    TooLong,
    #[error("it answered with an error: {0}")]
    Answer(String),
}

/// A server. Dropping it kills the server.
pub(super) struct McpServer {
    pub(super) name: String,
    program: AgentProgram,
    /// The time limit of a start.
    limit: Duration,
    /// The running server, or why it ended.
    session: Mutex<Result<Session, String>>,
}

struct Session {
    program: RunningProgram,
    input: ProgramInput,
    /// Output after the last complete line.
    received: Vec<u8>,
    /// The latest output on standard error, for messages.
    stderr: Vec<u8>,
    next_id: u64,
}

impl McpServer {
    /// Starts a server, through the guard if there is one, and lists its tools.
    pub(super) async fn start(
        spec: &McpSpec,
        settings: &Settings,
        limit: Duration,
    ) -> Result<(Self, Vec<ToolDefinition>), McpError> {
        let failed = |cause: Failure| McpError { name: spec.name.clone(), cause };
        let command = match &settings.tools.guard {
            Some(guard) => spec.guarded(guard).map_err(|error| failed(error.into()))?,
            None => spec.command.clone(),
        };
        let program = AgentProgram { command, request_end: b"", supervisor: settings.supervisor.clone() };
        let (session, tools) = Session::start(&program, limit).await.map_err(failed)?;
        Ok((Self { name: spec.name.clone(), program, limit, session: Mutex::new(Ok(session)) }, tools))
    }

    /// Starts the server again if it has ended. A start that fails is reported by the next call.
    pub(super) async fn restart_if_ended(&self) {
        // A server that answers a call of another case is running.
        let Ok(mut session) = self.session.try_lock() else { return };
        if session.as_mut().is_ok_and(|session| !session.has_ended()) {
            return;
        }
        let restarted = Session::start(&self.program, self.limit).await;
        *session = restarted
            .map(|(session, _tools)| session)
            .map_err(|cause| format!("it ended, and failed to start again: {cause}"));
    }

    /// Calls a tool. The error is a server that gives no result.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        limit: Duration,
    ) -> Result<ToolOutput, String> {
        let failed = |cause: &str| format!("the MCP server `{}` gave none: {cause}", self.name);
        let mut state = self.session.lock().await;
        let session = match &mut *state {
            Ok(session) => session,
            Err(cause) => return Err(failed(cause)),
        };
        let params = json!({"name": tool, "arguments": arguments});
        let answer = session.request("tools/call", &params);
        match timeout(limit, answer).await {
            Ok(Ok(result)) => Ok(output(&result)),
            Ok(Err(Failure::Answer(message))) => Ok(ToolOutput::error(message.into())),
            Ok(Err(failure)) => {
                // Killed, also if it has not ended: its next message could belong to any call.
                let cause = failure.to_string();
                *state = Err(cause.clone());
                Err(failed(&cause))
            }
            Err(_elapsed) => Ok(ToolOutput::error("the tool did not answer in time".into())),
        }
    }
}

/// Returns the output of a call: the structured content, else the texts.
fn output(result: &Value) -> ToolOutput {
    let texts = result["content"].as_array().into_iter().flatten();
    let texts: Vec<_> = texts.filter_map(|part| part["text"].as_str()).collect();
    let text = texts.join("\n");
    let value = match (&result["structuredContent"], serde_json::from_str(&text)) {
        (fields @ Value::Object(_), _) => fields.clone(),
        (_, Ok(fields @ Value::Object(_))) => fields,
        _ => text.into(),
    };
    ToolOutput { value, is_error: result["isError"] == true }
}

impl Session {
    /// Starts a server, and lists its tools.
    async fn start(program: &AgentProgram, limit: Duration) -> Result<(Self, Vec<ToolDefinition>), Failure> {
        let (program, input) = RunningProgram::start(program)?;
        let mut session = Self { program, input, received: Vec::new(), stderr: Vec::new(), next_id: 0 };
        match timeout(limit, session.open()).await {
            Ok(tools) => Ok((session, tools?)),
            Err(_elapsed) => Err(Failure::TimedOut(limit)),
        }
    }

    /// Reports whether the server ended after its latest answer. Reads the output that has arrived.
    fn has_ended(&mut self) -> bool {
        while let Some(event) = self.program.waiting_event() {
            if self.read(event).is_err() {
                return true;
            }
        }
        false
    }

    /// Introduces the runner, and lists the tools.
    async fn open(&mut self) -> Result<Vec<ToolDefinition>, Failure> {
        let client = json!({"name": "counterproof", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client});
        self.request("initialize", &hello).await?;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        let (mut tools, mut page) = (Vec::new(), json!({}));
        loop {
            let listed = self.request("tools/list", &page).await?;
            tools.extend(listed["tools"].as_array().into_iter().flatten().filter_map(definition));
            match listed["nextCursor"].as_str() {
                Some(cursor) => page = json!({"cursor": cursor}),
                None => return Ok(tools),
            }
        }
    }

    async fn request(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        loop {
            let mut message = self.receive().await?;
            if message["method"].is_string() {
                self.answer(&message).await?;
            } else if message["id"] == id {
                // An answer with another id belongs to a call that ran into its time limit.
                return match message["error"].take() {
                    Value::Null => Ok(message["result"].take()),
                    error => {
                        if error["code"] == SERVER_ENDED
                            && let Ok(ended) = timeout(END_WAIT, self.end()).await
                        {
                            return Err(ended);
                        }
                        Err(Failure::Answer(error["message"].as_str().unwrap_or("no message").to_owned()))
                    }
                };
            }
        }
    }

    /// Answers a request of the server. Notifications have no id, and get no answer.
    async fn answer(&mut self, message: &Value) -> Result<(), Failure> {
        let Some(id) = message.get("id") else { return Ok(()) };
        let answer = if message["method"] == "ping" {
            json!({"jsonrpc": "2.0", "id": id, "result": {}})
        } else {
            let error = json!({"code": UNKNOWN_METHOD, "message": "not supported by this client"});
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        };
        self.send(&answer).await
    }

    async fn send(&mut self, message: &Value) -> Result<(), Failure> {
        // A server that has ended is reported with its last lines, when they are read.
        if self.input.write_all(format!("{message}\n").as_bytes()).await.is_ok() {
            let _ = self.input.flush().await;
        }
        Ok(())
    }

    /// Returns the next JSON message. Other lines are ignored: some servers print to the wrong stream.
    async fn receive(&mut self) -> Result<Value, Failure> {
        loop {
            while let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                if let Ok(message @ Value::Object(_)) = serde_json::from_slice(&line) {
                    return Ok(message);
                }
            }
            let event = self.program.next_event().await;
            self.read(event)?;
        }
    }

    /// Waits until the server gives no further answers.
    async fn end(&mut self) -> Failure {
        loop {
            let event = self.program.next_event().await;
            if let Err(ended) = self.read(event) {
                return ended;
            }
        }
    }

    /// Adds output. The error is a server that gives no further answers.
    fn read(&mut self, event: ProcessEvent) -> Result<(), Failure> {
        match event {
            ProcessEvent::Stdout(piece) => self.received.extend(piece),
            ProcessEvent::Stderr(piece) => {
                // The end of it usually has the cause.
                self.stderr.extend(piece);
                let excess = self.stderr.len().saturating_sub(MAX_STDERR_BYTES);
                self.stderr.drain(..excess);
            }
            ProcessEvent::Ended(Err(error)) => return Err(error.into()),
            ProcessEvent::Ended(Ok(ending)) => {
                let said = String::from_utf8_lossy(&self.stderr).trim().to_owned();
                return Err(Failure::Ended(if said.is_empty() { ending.to_string() } else { said }));
            }
        }
        if self.received.len() > MAX_LINE_BYTES { Err(Failure::TooLong) } else { Ok(()) }
    }
}

fn definition(tool: &Value) -> Option<ToolDefinition> {
    let parameters =
        if tool["inputSchema"].is_object() { tool["inputSchema"].clone() } else { json!({"type": "object"}) };
    let description = tool["description"].as_str().map(str::to_owned);
    Some(ToolDefinition { name: tool["name"].as_str()?.to_owned(), description, parameters })
}
