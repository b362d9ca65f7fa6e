//! Another agent in place of the built-in one: it works in the workspace, and a proxy records its model calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_artifact::with_causes;
use counterproof_guard::http::UpstreamUrl;
use counterproof_safe_run::{Cancellation, Input, Record, StartError, StopReason, Stream};
use counterproof_sessions::event::{Command, CommandLine, EventBody, SessionEvent};
use counterproof_sessions::proxy::{
    ListeningProxy, ProxyError, ProxyOptions, RecordError, Records, Secret, SubstitutedKey,
};
use counterproof_sessions::recorder::SessionRecorder;
use jiff::Timestamp;
use serde_json::json;

use super::machine::{Run, Step, Stop};
use super::state::{Failure, FailureKind, Phase, RunState};
use crate::tools::{SandboxError, SandboxedCommand};

/// The variable with the start of the task. All of it is on standard input.
const TASK: &str = "COUNTERPROOF_TASK";

/// Most bytes of the task in the variable. Linux starts no program with a variable above 128 KiB.
const MAX_TASK_VARIABLE: usize = 100 << 10;

/// The end of the agent's output that becomes its last text, in bytes.
const MAX_TEXT: usize = 16 << 10;

/// The start of each stream that is kept for the record of the command, in bytes.
const MAX_RECORDED: usize = 8 << 20;

/// Most bytes that the agent may print.
const MAX_OUTPUT: u64 = 1 << 30;

/// Time between two looks for a request to pause.
const PAUSE_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
pub enum AgentCommandError {
    #[error("the thread of the agent failed")]
    Thread,
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    #[error("cannot start the recording proxy")]
    Io(#[from] std::io::Error),
    #[error("cannot run the agent")]
    Sandbox(#[from] SandboxError),
}

impl Run<'_> {
    /// Runs the agent once. Its exit code 0 ends the attempt.
    pub(super) fn run_agent(&mut self, upstreams: [UpstreamUrl; 2]) -> Result<Step, Stop> {
        let line = self.state.settings.agent_command.clone().unwrap_or_default();
        if let Some(failure) = self.state.exhausted() {
            return Err(failure.into());
        }
        (self.control.progress)(&format!("$ {line}"));
        let cancel = Cancellation::default();
        let with_run = cancel.clone();
        let _callback = self.control.cancel.on_cancel(move || with_run.cancel());
        let records = Arc::new(AgentRecords {
            recorder: self.journal.recorder().clone(),
            budget: Mutex::new(Budget { state: self.state.clone(), refusal: None }),
            cancel: cancel.clone(),
        });
        let ended = self.agent_ended(&line, upstreams, &records, &cancel);
        let mut budget = records.budget();
        self.state.spent = budget.state.spent;
        let refusal = budget.refusal.take();
        drop(budget);
        let Ended { record, output, is_pausing } = ended?;
        if let Some(record) = &record {
            self.journal.add(command_event(&line, record, &output));
        }
        let has_changed = self.journal.observe()?;
        if self.control.cancel.is_cancelled() {
            return Err(Stop::Interrupted(None));
        }
        if let Some(failure) = refusal {
            return Err(failure.into());
        }
        let was_stopped = record.as_ref().is_none_or(|record| record.stopped == Some(StopReason::Cancelled));
        if is_pausing && was_stopped {
            return Err(Stop::Paused);
        }
        // It had ended: the run pauses at its next state.
        self.has_pause = is_pausing;
        let exit_code = record.map_or(-1, |record| record.ending.exit_code());
        if exit_code != 0 {
            let text = format!("the agent `{line}` ended with exit code {exit_code}");
            return Err(Failure::new(FailureKind::Model, text).into());
        }
        if has_changed {
            self.journal.transition(Phase::Edit, "file_changed", json!({}));
        }
        self.state.last_text = Some(super::machine::masked_text(&self.journal, output.last_text()));
        Ok(Step::new(self.first_check(), "attempt_ended"))
    }

    /// Runs the command with the proxy, until it ends or a pause is requested.
    fn agent_ended(
        &self,
        line: &str,
        [openai, anthropic]: [UpstreamUrl; 2],
        records: &Arc<AgentRecords>,
        cancel: &Cancellation,
    ) -> Result<Ended, AgentCommandError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        // The agent could write the key into a file, which is then published.
        let placeholder = || format!("sk-{}", uuid::Uuid::now_v7().simple());
        let key = self.api_key.as_ref().map(|key| (placeholder(), key.expose()));
        let listening = runtime.block_on(ListeningProxy::bind(ProxyOptions {
            session_id: self.journal.recorder().session_id().to_owned(),
            records: records.clone(),
            requires_records: true,
            openai,
            anthropic,
            key: key.as_ref().map(|(placeholder, real)| SubstitutedKey::new(placeholder, real)),
            now: Timestamp::now,
        }))?;
        let urls = [listening.openai_base_url(), listening.anthropic_base_url()];
        let ports = urls.iter().filter_map(|url| port_of(url)).collect();
        let task = task(&self.state, &self.messages);
        let [openai, anthropic] = urls;
        let mut environment = BTreeMap::from([
            ("OPENAI_BASE_URL".into(), Some(openai.into())),
            ("ANTHROPIC_BASE_URL".into(), Some(anthropic.into())),
            ("NO_PROXY".into(), Some("127.0.0.1,localhost".into())),
            (TASK.into(), Some(task_variable(&task).into())),
        ]);
        if let Some((placeholder, _)) = &key {
            environment.insert("OPENAI_API_KEY".into(), Some(placeholder.into()));
        }
        let readable = Utf8PathBuf::from_path_buf(std::env::temp_dir()).ok();
        let command = SandboxedCommand {
            line: line.to_owned(),
            workspace: self.journal.workspace().folder().to_owned(),
            private: self.private.clone(),
            // The user has chosen the command, which may be there.
            readable: readable.into_iter().chain([self.journal.repository().path().to_owned()]).collect(),
            environment,
            input: Input::bytes(task.as_bytes())?,
            tcp_ports: ports,
            timeout: None,
            output_limit: Some(MAX_OUTPUT),
            grace: Duration::from_secs(10),
            supervisor: self.control.supervisor.clone(),
        };
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let handle = runtime.handle().clone();
        let serve = move || handle.block_on(listening.serve(async { drop(stopped.await) }));
        let proxy = thread::Builder::new().name("proxy".to_owned()).spawn(serve)?;
        let ran = self.run_until_pause(command, cancel);
        drop(stop);
        let _ = proxy.join();
        runtime.shutdown_timeout(Duration::from_secs(1));
        ran
    }

    /// Looks for a request to pause while the command runs, because a command may make no model request at all.
    fn run_until_pause(&self, command: SandboxedCommand, cancel: &Cancellation) -> Result<Ended, AgentCommandError> {
        let sandbox = self.tools.sandbox();
        let mut output = Output::default();
        let mut is_pausing = false;
        let ran = thread::scope(|scope| {
            let (ended, end) = mpsc::channel::<()>();
            let output = &mut output;
            let agent = thread::Builder::new().name("agent".to_owned()).spawn_scoped(scope, move || {
                // Dropped when the command has ended.
                let _ended = ended;
                command.run(sandbox, cancel, &mut |stream, _, bytes: &[u8]| output.push(stream, bytes))
            })?;
            while end.recv_timeout(PAUSE_INTERVAL) == Err(mpsc::RecvTimeoutError::Timeout) {
                if !is_pausing && (self.control.takes_pause)(self.journal.recorder().session_id()) {
                    is_pausing = true;
                    cancel.cancel();
                }
            }
            agent.join().map_err(|_| AgentCommandError::Thread)
        })?;
        match ran {
            Ok(record) => Ok(Ended { record: Some(record), output, is_pausing }),
            Err(SandboxError::Start(StartError::Cancelled)) => Ok(Ended { record: None, output, is_pausing }),
            Err(error) => Err(error.into()),
        }
    }
}

/// A command that has ended, or was cancelled before its start.
struct Ended {
    record: Option<Record>,
    output: Output,
    /// Whether a pause was requested meanwhile.
    is_pausing: bool,
}

/// The parts of the agent's output that are kept.
#[derive(Default)]
struct Output {
    stdout: Kept,
    stderr: Kept,
}

#[derive(Default)]
struct Kept {
    start: Vec<u8>,
    end: Vec<u8>,
}

impl Output {
    fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let kept = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let room = MAX_RECORDED.saturating_sub(kept.start.len());
        kept.start.extend_from_slice(&bytes[..bytes.len().min(room)]);
        kept.end.extend_from_slice(&bytes[bytes.len().saturating_sub(MAX_TEXT)..]);
        let surplus = kept.end.len().saturating_sub(MAX_TEXT);
        kept.end.drain(..surplus);
    }

    /// Returns the end of standard output, or of standard error if the other is blank.
    fn last_text(&self) -> String {
        let [stdout, stderr] = [&self.stdout, &self.stderr].map(|kept| String::from_utf8_lossy(&kept.end));
        if stdout.trim().is_empty() { stderr.into_owned() } else { stdout.into_owned() }
    }
}

/// Creates the record of the agent command.
fn command_event(line: &str, record: &Record, output: &Output) -> SessionEvent {
    let text = |kept: &Kept| Some(String::from_utf8_lossy(&kept.start).into_owned());
    let body = Command {
        command: Some(CommandLine::Shell(line.to_owned())),
        cwd: Some(".".to_owned()),
        exit_code: Some(i64::from(record.ending.exit_code())),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
        latency_ms: u64::try_from(record.elapsed.as_millis()).ok(),
        call_id: None,
        expected_failure: false,
    };
    SessionEvent::captured(record.started_at, EventBody::Command(body))
}

/// The task, and what the last check said.
fn task(state: &RunState, messages: &[serde_json::Value]) -> String {
    let text = |message: &serde_json::Value| message["content"].as_str().unwrap_or_default().to_owned();
    let task = messages.iter().find(|message| message["role"] == "user").map(text).unwrap_or_default();
    match messages.iter().rfind(|message| message["role"] == "user").map(text) {
        Some(last) if state.red_checks > 0 && last != task => format!("{task}\n\n{last}"),
        _ => task,
    }
}

fn task_variable(task: &str) -> String {
    let end = task.floor_char_boundary(MAX_TASK_VARIABLE);
    // A variable cannot have a NUL.
    task[..end].replace('\0', "")
}

fn port_of(url: &str) -> Option<u16> {
    let rest = url.strip_prefix("http://127.0.0.1:")?;
    rest.split(['/', '?']).next()?.parse().ok()
}

/// Records what the proxy sees, and refuses requests beyond the limits of the run.
struct AgentRecords {
    recorder: Arc<SessionRecorder>,
    budget: Mutex<Budget>,
    cancel: Cancellation,
}

struct Budget {
    /// Counts the requests of the agent.
    state: RunState,
    /// Why a request was refused.
    refusal: Option<Failure>,
}

impl AgentRecords {
    fn budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Records for AgentRecords {
    fn record(&self, events: Vec<SessionEvent>) -> Result<(), RecordError> {
        let mut budget = self.budget();
        let state = &mut budget.state;
        for event in &events {
            if let EventBody::LlmCall(call) = &event.body {
                let usage = call.response.as_ref().and_then(|response| response.usage);
                let tokens = usage.and_then(|usage| usage.total_tokens).unwrap_or(0);
                state.spent.tokens = state.spent.tokens.saturating_add(tokens);
                if let (Some(price), Some(usage)) = (state.settings.model.price, usage) {
                    state.spent.cost = Some(state.spent.cost.unwrap_or(0.0) + price.cost(&usage));
                }
            }
        }
        drop(budget);
        self.recorder.record(events).map_err(|error| RecordError(Box::new(error)))
    }

    fn may_send(&self) -> bool {
        let mut budget = self.budget();
        let Some(failure) = budget.state.exhausted() else {
            budget.state.spent.requests += 1;
            return true;
        };
        budget.refusal = Some(failure);
        // The run has failed, and an agent that asks again and again would never end.
        self.cancel.cancel();
        false
    }

    fn saw_secret(&self, secret: &Secret) {
        if let Err(error) = self.recorder.mask(secret.expose()) {
            self.warn(&with_causes(&error));
        }
    }

    fn warn(&self, _message: &str) {
        // A record that is missing refuses the next request.
    }
}
