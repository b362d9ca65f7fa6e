//! `counterproof ledger doctor`: what is wrong with a ledger, and what to do about it.

use counterproof_artifact::{Exit, with_causes};
use counterproof_ledger::doctor::{Check, examine};
use counterproof_ledger::spool::replay;
use serde_json::json;

use super::opened::{Place, report};
use super::runs::table;
use crate::command_error::CommandError;
use crate::streams::Streams;

/// Check the ledger: its integrity, its settings, its permissions, and events that wait.
///
/// Each problem has a remedy. Exit code 1: there is a problem.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(super) fn run(_args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let opened = place.open_store();
    let mut checks = Vec::new();
    match opened {
        Ok(mut store) => {
            if store.is_read_only() {
                place.warn_read_only(streams);
            } else {
                match replay(&place.spool, store.as_mut()) {
                    Ok(replayed) => report(&replayed, place, streams),
                    Err(error) => {
                        // The checks go on: they list the files of these events.
                        streams.warn(format_args!("events that wait were not added: {}", with_causes(&error)));
                    }
                }
            }
            checks.extend(examine(&place.location, &place.spool, Some(store.as_mut())));
        }
        Err(error) => {
            // A ledger that cannot be opened is a finding of this command and not an error.
            checks.push(Check::unusable(&error));
            // The files can be examined without opening the ledger.
            checks.extend(examine(&place.location, &place.spool, None));
        }
    }
    let problems = checks.iter().filter(|check| check.remedy.is_some()).count();
    if place.is_json {
        let document = json!({ "ledger": place.location.to_string(), "problems": problems, "checks": checks });
        streams.print_document(&crate::streams::to_json(&document))?;
    } else {
        let rows = checks.iter().map(|check| {
            let state = if check.remedy.is_some() { "problem" } else { "ok" };
            [state.to_owned(), check.name.to_owned(), check.found.clone()]
        });
        streams.print_line(table(["state", "check", "found"], rows).trim_end())?;
        for check in &checks {
            if let Some(remedy) = &check.remedy {
                streams.print_line(format_args!("{}: {remedy}", check.name))?;
            }
        }
    }
    Ok(if problems > 0 { Exit::Findings } else { Exit::Done })
}
