//! The run of `guard run` that a shim or a proxy belongs to.

use camino::Utf8Path;
use counterproof_guard::agent_run::{RunConnection, TERMINATION, request_termination};
use counterproof_guard::identity::{RunIdentity, process_variable};
use counterproof_guard::policy::Policy;
use counterproof_guard::session::RunMembership;
use counterproof_ledger::event::Termination;

use super::warnings::WarningSender;
use crate::streams::Streams;

/// Joins the run, which then decides about the calls of the server.
pub(super) fn join(server_name: &str, policy: &Policy, identity: &RunIdentity, streams: &mut Streams) -> RunMembership {
    let Some(pipe) = process_variable(TERMINATION) else { return RunMembership::None };
    match RunConnection::join(Utf8Path::new(&pipe), server_name, policy, identity) {
        Ok(run) => RunMembership::Joined(run),
        Err(error) => {
            // The counters of the run would not have its calls.
            streams.warn(format_args!("cannot join the run of `guard run`: {error}"));
            RunMembership::Unreachable
        }
    }
}

/// Ends the run, if there is one.
pub(super) fn end(termination: &Termination, warnings: &WarningSender) {
    let Some(path) = process_variable(TERMINATION) else { return };
    if let Err(error) = request_termination(Utf8Path::new(&path), termination) {
        warnings.send(&format!("cannot end the run: {error}"));
    }
}
