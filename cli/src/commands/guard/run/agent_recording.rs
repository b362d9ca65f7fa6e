//! Records the start and the end of the agent in the ledger, as a source next to the shims.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use camino::Utf8Path;
use counterproof_guard::agent_run::{AgentEnd, AgentRunError, POLICY, RunSettings, agent_ended, agent_started};
use counterproof_guard::identity::{RunIdentity, process_variable};
use counterproof_guard::policy::Policy;
use counterproof_ledger::event::EventBody;

use super::run_ledger::RunLedger;
use crate::commands::guard::event_recording::EventRecording;
use crate::commands::guard::policy_file;
use crate::streams::Streams;

/// The recording of an agent that runs.
pub(super) struct AgentRecording(EventRecording);

impl AgentRecording {
    /// Records the start of the agent. A failure is a warning, because the agent runs all the same.
    pub(super) fn start(
        command: &[OsString],
        settings: &RunSettings,
        ledger: &RunLedger,
        streams: &mut Streams,
    ) -> Option<Self> {
        let recording = EventRecording::start(Some(ledger.location().clone()), None, &identity(settings));
        let recording = recording
            .inspect_err(|error| streams.warn(format_args!("the agent is not recorded: {}", error.message())))
            .ok()?;
        let program = command.first().map(OsString::as_os_str).unwrap_or_default();
        record(&recording, agent_started(program, &policy(settings)), streams).then_some(Self(recording))
    }

    /// Records the end of the agent, and moves both events to the ledger.
    pub(super) fn finish(self, end: &Result<AgentEnd, AgentRunError>, elapsed: Duration, streams: &mut Streams) {
        record(&self.0, agent_ended(end, elapsed), streams);
        self.0.finish(streams);
    }
}

fn record(recording: &EventRecording, event: EventBody, streams: &mut Streams) -> bool {
    recording.sink().record(event).inspect_err(|error| streams.warn(error)).is_ok()
}

/// Returns the identity that the shims have: the settings, and the variables that they leave as they are.
fn identity(settings: &RunSettings) -> RunIdentity {
    let changes = settings.environment();
    let lookup = |name: &str| match changes.get(OsStr::new(name)) {
        Some(value) => value.as_ref()?.to_str().map(str::to_owned),
        None => process_variable(name),
    };
    // The shims warn about values that cannot be used.
    RunIdentity::from_environment(lookup).0
}

/// Returns the policy of the shims. Without a valid one, they do not start.
fn policy(settings: &RunSettings) -> Policy {
    let path = settings.policy.clone().or_else(|| process_variable(POLICY));
    let policy = path.and_then(|path| policy_file::load(Utf8Path::new(&path)).ok());
    policy.unwrap_or_else(Policy::observe_only)
}
