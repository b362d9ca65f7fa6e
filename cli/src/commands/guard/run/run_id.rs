//! Whether the id of a run is new.

use counterproof_artifact::with_causes;
use counterproof_guard::agent_run::TERMINATION;
use counterproof_guard::identity::{RUN_ID, process_variable};

use super::command::Args;
use super::run_ledger::RunLedger;
use crate::command_error::CommandError;
use crate::streams::Streams;

/// Rejects an id of the option `--run` that the ledger already has: both runs would become one.
///
/// An id in the variable joins the run, because an outer program states it for several agents. This is logged, except below another
/// `guard run`. A ledger that cannot be read is a warning.
pub(super) fn reject_known(
    args: &Args,
    run_id: &str,
    ledger: &RunLedger,
    streams: &mut Streams,
) -> Result<(), CommandError> {
    let is_new = args.run.is_none() && process_variable(RUN_ID).is_none();
    let is_nested = args.run.is_none() && process_variable(TERMINATION).is_some();
    if is_new || is_nested {
        return Ok(());
    }
    match ledger.find(run_id) {
        Ok(None) => Ok(()),
        Ok(Some(_)) if args.run.is_some() => {
            let error = format!("the ledger `{}` already has the run `{run_id}`", ledger.location());
            Err(CommandError::usage(error)
                .hint("choose another id with `--run`, or omit the option for a new id; the agent was not started"))
        }
        Ok(Some(_)) => {
            streams.log(format_args!("the agent joins the run `{run_id}` of `{RUN_ID}`, which the ledger already has"));
            Ok(())
        }
        Err(error) => {
            let reason = with_causes(&error);
            streams.warn(format_args!("cannot check whether the run `{run_id}` is new: {reason}"));
            Ok(())
        }
    }
}
