//! `counterproof ledger query`: the tool calls of a ledger.

use counterproof_artifact::Exit;
use counterproof_ledger::query::{CallFilter, CallRecord, calls};
use jiff::Timestamp;
use serde_json::json;

use super::opened::{Place, failed};
use super::table::{cell, short_time, table};
use super::time_args::{Since, since};
use crate::command_error::CommandError;
use crate::streams::Streams;

/// List tool calls, the latest first.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only calls of this run
    #[arg(long, value_name = "ID")]
    run: Option<String>,

    /// Only calls to this server
    #[arg(long, value_name = "NAME")]
    server: Option<String>,

    /// Only calls to this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,

    /// Only calls with this decision, such as BLOCK
    #[arg(long, value_name = "ACTION")]
    decision: Option<String>,

    /// Only calls with this status, such as ERROR
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,

    /// Only calls with these arguments, by their hash
    #[arg(long = "args-hash", value_name = "HASH")]
    hash: Option<String>,

    /// Only calls from this time on: a time, or a duration before now such as 2h
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Since>,

    /// Largest number of calls
    #[arg(long, value_name = "NUMBER", default_value_t = 50)]
    limit: u32,
}

/// Runs the command.
pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut store = place.open(streams)?;
    let filter = CallFilter {
        run_id: args.run.clone(),
        server_name: args.server.clone(),
        tool_name: args.tool.clone(),
        decision: args.decision.as_deref().map(str::to_ascii_uppercase),
        status: args.status.as_deref().map(str::to_ascii_uppercase),
        args_hash: args.hash.as_deref().map(str::to_ascii_lowercase),
        since: args.since.map(|since| since.sortable(Timestamp::now())),
        limit: args.limit,
    };
    let found = calls(store.as_mut(), &filter).map_err(failed)?;
    if place.is_json {
        streams.print_document(&crate::json_text::to_json(&json!({ "calls": found })))?;
        return Ok(Exit::Done);
    }
    if found.is_empty() {
        streams.log(format_args!("no calls in `{}` meet the conditions", place.location));
        return Ok(Exit::Done);
    }
    let names =
        ["ts", "run_id", "server", "tool", "decision", "status", "latency_ms", "bytes_in", "bytes_out", "call_id"];
    streams.print_line(table(names, found.into_iter().map(row)).trim_end())?;
    Ok(Exit::Done)
}

fn row(call: CallRecord) -> [String; 10] {
    [
        short_time(&call.ts),
        call.run_id,
        cell(call.server_name),
        cell(call.tool_name),
        cell(call.decision),
        cell(call.status),
        cell(call.latency_ms),
        cell(call.bytes_in),
        cell(call.bytes_out),
        call.call_id,
    ]
}
