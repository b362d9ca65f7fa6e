//! Another agent in place of the built-in one: it works in the workspace, and a proxy records its model calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_artifact::with_causes;
use counterproof_guard::http::{UpstreamUrl, UpstreamUrlError};
use counterproof_safe_run::{Cancellation, Input, StartError, Stream};
use counterproof_sessions::event::{EventBody, SessionEvent};
use counterproof_sessions::proxy::{
    ListeningProxy, ProxyError, ProxyOptions, RecordError, Records, Secret, SubstitutedKey,
};
use counterproof_sessions::recorder::SessionRecorder;
use jiff::Timestamp;
use serde_json::json;

use super::machine::{Run, Step, Stop};
use super::state::{Failure, FailureKind, Phase, RunState, Workflow};
use crate::tools::SandboxedCommand;

/// The variable with the start of the task. All of it is on standard input.
const TASK: &str = "COUNTERPROOF_TASK";

/// Most bytes of the task in the variable. Linux starts no program with a variable above 128 KiB.
const MAX_TASK_VARIABLE: usize = 100 << 10;

/// The end of the agent's output that becomes its last text, in bytes.
const MAX_TEXT: usize = 16 << 10;

/// Most bytes that the agent may print.
const MAX_OUTPUT: u64 = 1 << 30;

#[derive(Debug, thiserror::Error)]
pub enum AgentCommandError {
    #[error("invalid model URL")]
    Url(#[from] UpstreamUrlError),
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    #[error("cannot start the recording proxy")]
    Io(#[from] std::io::Error),
    #[error("cannot run the agent")]
    Sandbox(#[from] crate::tools::SandboxError),
}

impl Run<'_> {
    /// Runs the agent once. Its exit code 0 ends the attempt.
    pub(super) fn run_agent(&mut self) -> Result<Step, Stop> {
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
        let ended = self.agent_ended(&line, &records, &cancel);
        let mut budget = records.budget();
        self.state.spent = budget.state.spent;
        let refusal = budget.refusal.take();
        drop(budget);
        let (exit_code, text) = ended?;
        let has_changed = self.journal.observe()?;
        if self.control.cancel.is_cancelled() {
            return Err(Stop::Interrupted(None));
        }
        if let Some(failure) = refusal {
            return Err(failure.into());
        }
        if exit_code != 0 {
            let text = format!("the agent `{line}` ended with exit code {exit_code}");
            return Err(Failure::new(FailureKind::Model, text).into());
        }
        if has_changed {
            self.journal.transition(Phase::Edit, "file_changed", json!({}));
        }
        self.state.last_text = Some(super::machine::masked_text(&self.journal, text));
        let to = match self.state.settings.workflow {
            Workflow::FixFailingTest => Phase::TargetTest,
            Workflow::ImplementFeature => Phase::Suite,
        };
        Ok(Step::new(to, "attempt_ended"))
    }

    /// Runs the command with the proxy. Returns its exit code and the end of its output.
    fn agent_ended(
        &self,
        line: &str,
        records: &Arc<AgentRecords>,
        cancel: &Cancellation,
    ) -> Result<(i32, String), AgentCommandError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let upstream: UpstreamUrl = self.model.base_url().parse()?;
        // The agent could write the key into a file, which is then published.
        let placeholder = || format!("sk-{}", uuid::Uuid::now_v7().simple());
        let key = self.api_key.as_ref().map(|key| (placeholder(), key.expose()));
        let listening = runtime.block_on(ListeningProxy::bind(ProxyOptions {
            session_id: self.journal.recorder().session_id().to_owned(),
            records: records.clone(),
            requires_records: true,
            openai: upstream.clone(),
            anthropic: upstream,
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
        let mut end = Vec::new();
        let record = command.run(self.tools.sandbox(), cancel, &mut |_: Stream, _, bytes: &[u8]| {
            end.extend_from_slice(bytes);
            let surplus = end.len().saturating_sub(MAX_TEXT);
            end.drain(..surplus);
        });
        drop(stop);
        let _ = proxy.join();
        runtime.shutdown_timeout(Duration::from_secs(1));
        let text = String::from_utf8_lossy(&end).into_owned();
        match record {
            Ok(record) => Ok((record.ending.exit_code(), text)),
            // The run sees that it was cancelled.
            Err(crate::tools::SandboxError::Start(StartError::Cancelled)) => Ok((-1, text)),
            Err(error) => Err(error.into()),
        }
    }
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
