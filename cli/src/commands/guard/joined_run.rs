//! The run of `guard run` that a shim or a proxy belongs to.

use camino::Utf8Path;
use counterproof_guard::agent_run::{RunConnection, TERMINATION, request_termination};
use counterproof_guard::identity::{RunIdentity, process_variable};
use counterproof_guard::policy::Policy;
use counterproof_ledger::event::Termination;

use super::warnings::WarningSender;
use crate::streams::Streams;

/// Joins the run, which then decides about the calls of the server; `None` without a run.
pub(super) fn join(
    server_name: &str,
    policy: &Policy,
    identity: &RunIdentity,
    streams: &mut Streams,
) -> Option<RunConnection> {
    let pipe = process_variable(TERMINATION)?;
    let joined = RunConnection::join(Utf8Path::new(&pipe), server_name, policy, identity);
    let warn =
        |error| streams.warn(format_args!("cannot join the run, so this server counts its calls alone: {error}"));
    joined.map_err(warn).ok()
}

/// Ends the run, if there is one.
pub(super) fn end(termination: &Termination, warnings: &WarningSender) {
    let Some(path) = process_variable(TERMINATION) else { return };
    if let Err(error) = request_termination(Utf8Path::new(&path), termination) {
        warnings.send(&format!("cannot end the run: {error}"));
    }
}
