//! `counterproof ledger query`: the tool calls of a ledger.

use clap::builder::PossibleValuesParser;
use counterproof_artifact::{Exit, one_line};
use counterproof_ledger::event::{Action, CallStatus};
use counterproof_ledger::query::{CallFilter, CallRecord, calls};
use jiff::Timestamp;
use serde_json::json;

use super::opened::{Place, failed};
use super::opened::{Since, since};
use super::runs::{cell, short_time, table};
use crate::command_error::CommandError;
use crate::streams::Streams;

/// The longest argument or result that is shown, in characters. `--json` has the whole preview.
const LONGEST_PREVIEW: usize = 2000;

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

    /// Only calls with this decision
    #[arg(long, value_name = "ACTION", ignore_case = true, value_parser = PossibleValuesParser::new(Action::ALL.map(Action::name)))]
    decision: Option<String>,

    /// Only calls that a policy in observe mode would have refused
    #[arg(long)]
    would_refuse: bool,

    /// Only calls with this status
    #[arg(long, value_name = "STATUS", ignore_case = true, value_parser = PossibleValuesParser::new(CallStatus::ALL.map(CallStatus::name)))]
    status: Option<String>,

    /// Only calls with these arguments, by their hash
    #[arg(long = "args-hash", value_name = "HASH")]
    hash: Option<String>,

    /// Only calls from this time on: a time, or a duration before now such as 2h
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Since>,

    /// Show the arguments and the result of each call, as far as they were recorded, and why calls were refused or failed
    #[arg(long)]
    previews: bool,

    /// Largest number of calls
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut store = place.open(streams)?;
    let mut found = calls(store.as_mut(), &filter(args)).map_err(failed)?;
    if found.len() > args.limit as usize {
        found.truncate(args.limit as usize);
        streams.log(format_args!("more than {} calls meet the conditions; raise `--limit` to list them", args.limit));
    }
    // An empty list would say that the run made no calls.
    if let Some(run_id) = args.run.as_ref().filter(|_| found.is_empty()) {
        place.find_run(run_id, store.as_mut())?;
    }
    if place.is_json {
        streams.print_document(&crate::streams::to_json(&json!({ "calls": found })))?;
    } else if found.is_empty() {
        streams.log(format_args!("no calls in `{}` meet the conditions", place.location));
    } else if args.previews {
        streams.print_line(found.iter().map(details).collect::<Vec<_>>().join("\n").trim_end())?;
    } else {
        let names = ["ts", "run_id", "server", "tool", "decision", "rule", "status", "latency_ms", "call_id"];
        streams.print_line(table(names, found.into_iter().map(row)).trim_end())?;
    }
    Ok(Exit::Done)
}

fn filter(args: &Args) -> CallFilter {
    CallFilter {
        run_id: args.run.clone(),
        server_name: args.server.clone(),
        tool_name: args.tool.clone(),
        // The ledger has actions and statuses in upper case and hashes in lower case. The options accept both.
        decision: args.decision.as_deref().map(str::to_ascii_uppercase),
        status: args.status.as_deref().map(str::to_ascii_uppercase),
        args_hash: args.hash.as_deref().map(str::to_ascii_lowercase),
        would_refuse: args.would_refuse,
        with_previews: args.previews,
        since: args.since.map(|since| since.sortable(Timestamp::now())),
        // One more, to know whether the list is complete.
        limit: args.limit.saturating_add(1),
    }
}

fn row(call: CallRecord) -> [String; 9] {
    let decision = decision(&call);
    [
        short_time(&call.ts),
        call.run_id,
        cell(call.server_name),
        cell(call.tool_name),
        decision,
        cell(call.rule_id),
        cell(call.status),
        cell(call.latency_ms),
        call.call_id,
    ]
}

/// Returns the decision, and the one that a policy in observe mode would have made instead.
fn decision(call: &CallRecord) -> String {
    match (&call.decision, &call.observed_action) {
        (Some(decision), Some(observed)) if decision != observed => format!("{decision} (observed: {observed})"),
        (decision, _) => cell(decision.as_ref()),
    }
}

/// Returns a call with its arguments, its result and its failure, one fact a line.
fn details(call: &CallRecord) -> String {
    let reason = call.reason_code.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let class = call.error_class.as_ref().map(|class| format!(" ({class})")).unwrap_or_default();
    let mut facts = vec![
        ("run", call.run_id.clone()),
        ("call", call.call_id.clone()),
        ("tool", format!("{}.{}", cell(call.server_name.as_ref()), cell(call.tool_name.as_ref()))),
        ("decision", decision(call)),
        ("rule", cell(call.rule_id.as_ref()) + &reason),
        ("status", cell(call.status.as_ref()) + &class),
        ("latency_ms", cell(call.latency_ms)),
        ("args", cell(call.args_preview.as_ref())),
        ("result", cell(call.result_preview.as_ref())),
    ];
    // The error of a refused call repeats the reason of the decision.
    let error = call.error_message.as_ref().filter(|message| call.decision_summary.as_ref() != Some(*message));
    facts.extend(call.decision_summary.iter().map(|summary| ("refused", summary.clone())));
    facts.extend(error.map(|message| ("error", message.clone())));
    let lines = facts.into_iter().map(|(name, value)| format!("  {name:10}  {}\n", one_line(&value, LONGEST_PREVIEW)));
    format!("{}\n{}", short_time(&call.ts), lines.collect::<String>())
}
