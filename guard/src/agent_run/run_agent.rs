//! Starts the agent of a run under supervision, ends it, and states its start and its end as events.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use counterproof_artifact::{one_line, with_causes};
use counterproof_ledger::event::{
    AGENT_SOURCE, EventBody, ProcessExit, RunEnd, RunStart, RunStatus, RunSummary, SOURCE_KIND, Termination,
};
use counterproof_safe_run::{
    Ending, Input, Io, Options, OutputMode, Signals, StartError, TakenSignals, record_after_taking,
};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::settings::TERMINATION;
use super::shared_decisions::{DecisionServer, SharedResults};
use super::{RunSettings, StartedServer, TerminationPipe};
use crate::policy::Policy;

/// TERM, which asks the agent to end. After the grace time, every process of the agent is killed.
const TERM: u8 = 15;

#[derive(Debug)]
pub struct AgentRun {
    pub command: Vec<OsString>,
    pub settings: RunSettings,
    /// Further variables of the agent.
    pub environment: BTreeMap<OsString, OsString>,
    /// Gives the agent a terminal: input and output of this process are one.
    pub has_terminal: bool,
    pub grace: Duration,
    /// The signals of this process, which were taken before, and their receiver.
    pub signals: (Signals, PipeReader, TakenSignals),
    /// The program that supervises the agent; see the options of safe-run.
    pub supervisor: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentEnd {
    pub ending: Ending,
    pub termination: Option<Termination>,
    /// The servers that joined the run, at most a thousand.
    pub servers: Vec<StartedServer>,
    /// Number of servers that could not join it.
    pub refused: u64,
    /// The sums over the calls that have ended, without a time.
    pub calls: RunSummary,
    /// True if the agent ended well, and a server of it may have been without the policy of the run.
    pub is_unguarded: bool,
    /// True if a signal to this process, a key of the terminal, or the end of the reader of its output ended the agent.
    pub is_cancelled: bool,
    /// Number of processes that it left behind and that were killed.
    pub left_behind: u32,
}

impl AgentEnd {
    pub fn status(&self) -> RunStatus {
        match &self.termination {
            Some(_) => RunStatus::Terminated,
            None if self.is_cancelled => RunStatus::Cancelled,
            None if self.ending.is_success() && !self.is_unguarded => RunStatus::Succeeded,
            None => RunStatus::Failed,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AgentRunError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("cannot create the private folder of the run, its pipe or its socket")]
    Pipe(#[source] io::Error),
}

/// Runs an agent to its end, with the streams of this process. Kills the processes that it leaves behind.
pub fn run_agent(run: AgentRun) -> Result<AgentEnd, AgentRunError> {
    let pipe = TerminationPipe::create().map_err(AgentRunError::Pipe)?;
    let mut reader = pipe.open().map_err(AgentRunError::Pipe)?;
    let (signals, received, taken) = run.signals;
    let decisions = DecisionServer::start(pipe.folder()).map_err(AgentRunError::Pipe)?;
    let termination = Arc::new(Mutex::new(None));
    {
        let (termination, signals) = (termination.clone(), signals.clone());
        // Never joined: it waits for requests until the process ends.
        thread::spawn(move || {
            loop {
                let request = reader.next();
                // The first rule is the reason that is recorded.
                lock(&termination).get_or_insert(request);
                signals.send(TERM);
            }
        });
    }
    let mut environment = run.settings.environment();
    environment.extend(run.environment.into_iter().map(|(name, value)| (name, Some(value))));
    // Set here and not by the user: only the shims below this agent may end it.
    environment.insert(TERMINATION.into(), Some(pipe.path().as_str().into()));
    let options = Options {
        terminal: run.has_terminal,
        // Not captured: the output of an agent has no bound, and nobody reads it from the record.
        output: OutputMode::ObserveOnly,
        grace: run.grace,
        owns_process: true,
        supervisor: run.supervisor,
        environment,
        ..Options::default()
    };
    let io = Io { input: Input::Inherited, signals: signals.clone(), received };
    let has_terminal = run.has_terminal;
    let mut is_closed = false;
    let record = record_after_taking(&run.command, &options, io, taken, &mut |stream, _, bytes| {
        if !is_closed && stream.forward(bytes).is_err() {
            // The reader of the output has gone. Without this process in between, the agent would receive SIGPIPE.
            is_closed = true;
            signals.send(TERM);
        }
    })?;
    let SharedResults { servers, refused, calls } = decisions.into_results();
    let termination = lock(&termination).take();
    Ok(AgentEnd {
        ending: record.ending,
        termination,
        servers,
        refused,
        calls,
        is_unguarded: false,
        is_cancelled: if is_closed {
            // Without a reader, an agent may have ended well before it noticed.
            !record.ending.is_success()
        } else {
            record.aborted_by.is_some() || (has_terminal && is_interrupt(record.ending))
        },
        left_behind: record.left_behind,
    })
}

/// True if INT or QUIT, the signals of the keys of a terminal, ended the agent. An agent that has the terminal is the
/// only one to receive them.
const fn is_interrupt(ending: Ending) -> bool {
    matches!(ending, Ending::Killed(2 | 3))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn agent_started(program: &OsStr, policy: &Policy) -> EventBody {
    // The arguments of the program are not recorded, because they may be secret.
    let meta = [(SOURCE_KIND, AGENT_SOURCE.to_owned()), ("program", program.to_string_lossy().into_owned())];
    let meta: Map<_, _> = meta.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
    EventBody::RunStart {
        run: RunStart { started_at: Timestamp::now(), mode: policy.mode, policy: policy.reference(), meta: Some(meta) },
    }
}

/// The end of an agent, with the sums over all servers of the run.
pub fn agent_ended(end: &Result<AgentEnd, AgentRunError>, elapsed: Duration) -> EventBody {
    let (status, exit, calls) = match end {
        Ok(end) => (end.status(), process_exit(end.ending), end.calls),
        Err(error) => (RunStatus::Failed, failed_start(error), RunSummary::default()),
    };
    let duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let summary = RunSummary { duration_ms, ..calls };
    EventBody::RunEnd { run: RunEnd { ended_at: Timestamp::now(), status, summary, exit: Some(exit) } }
}

const REASON_CHARS: usize = 500;

pub(crate) const fn process_exit(ending: Ending) -> ProcessExit {
    match ending {
        Ending::Exited(code) => ProcessExit::Code(code),
        Ending::Killed(signal) => ProcessExit::Signal(signal),
    }
}

pub(crate) fn failed_start(error: &dyn std::error::Error) -> ProcessExit {
    ProcessExit::NotStarted(one_line(&with_causes(error), REASON_CHARS))
}

#[cfg(test)]
mod tests {
    use counterproof_ledger::event::Termination;
    use counterproof_safe_run::{Ending, StartError};
    use serde_json::json;

    use super::*;

    /// Returns the status and the exit of the last event.
    fn ended(end: &Result<AgentEnd, AgentRunError>) -> (Value, Value) {
        let event = serde_json::to_value(agent_ended(end, Duration::from_millis(7))).unwrap();
        assert_eq!(event["run"]["summary"]["duration_ms"], 7);
        assert_eq!(event["run"]["summary"]["calls_total"], if end.is_ok() { 3 } else { 0 });
        (event["run"]["status"].clone(), event["run"]["exit"].clone())
    }

    fn end(ending: Ending, is_cancelled: bool) -> AgentEnd {
        AgentEnd {
            ending,
            termination: None,
            servers: Vec::new(),
            refused: 0,
            calls: RunSummary { calls_total: 3, ..RunSummary::default() },
            is_unguarded: false,
            is_cancelled,
            left_behind: 0,
        }
    }

    #[test]
    fn the_start_has_the_program_and_the_policy_and_no_arguments() {
        let event = serde_json::to_value(agent_started(OsStr::new("/bin/agent"), &Policy::observe_only())).unwrap();
        assert_eq!((&event["type"], &event["run"]["mode"]), (&json!("run_start"), &json!("observe")));
        assert_eq!(event["run"]["meta"], json!({"kind": "agent", "program": "/bin/agent"}));
        assert_eq!(event["run"]["policy"]["policy_hash"], "none");
    }

    #[test]
    fn an_agent_succeeds_only_with_exit_code_0() {
        let status = |ending| ended(&Ok(end(ending, false)));
        assert_eq!(status(Ending::Exited(0)), (json!("SUCCEEDED"), json!({"code": 0})));
        assert_eq!(status(Ending::Exited(3)), (json!("FAILED"), json!({"code": 3})));
        let unguarded = AgentEnd { is_unguarded: true, ..end(Ending::Exited(0), false) };
        assert_eq!(ended(&Ok(unguarded)).0, "FAILED");
        assert_eq!(status(Ending::Killed(11)), (json!("FAILED"), json!({"signal": 11})), "a crash");
        let source = std::io::Error::from(std::io::ErrorKind::NotFound);
        let not_started = AgentRunError::Start(StartError::Command { program: "x".to_owned(), source });
        let (status, exit) = ended(&Err(not_started));
        assert_eq!(status, "FAILED");
        assert_eq!(exit, json!({"not_started": "failed to start `x`: entity not found"}));
    }

    #[test]
    fn a_signal_to_the_guard_cancels_the_run_and_a_rule_terminates_it() {
        let interrupted = end(Ending::Exited(0), true);
        assert_eq!(ended(&Ok(interrupted.clone())), (json!("CANCELLED"), json!({"code": 0})));
        assert_eq!(ended(&Ok(end(Ending::Killed(2), true))).0, "CANCELLED");
        let loop_found = Termination { terminate_code: "LOOP".to_owned(), terminate_message: "x".to_owned() };
        let terminated = AgentEnd { termination: Some(loop_found), ..interrupted };
        assert_eq!(ended(&Ok(terminated)).0, "TERMINATED");
    }
}
