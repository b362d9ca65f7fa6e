//! `counterproof session timeline`: the records of a session.

use clap::builder::PossibleValuesParser;
use counterproof_artifact::{Exit, one_line};
use counterproof_sessions::event::{EventBody, SessionEvent};
use counterproof_sessions::store::{EventFilter, EventPage};
use jiff::Timestamp;
use serde_json::Value;

use super::opened::{find, open};
use crate::command_error::CommandError;
use crate::commands::ledger::{Place, cell, failed, short_time, table};
use crate::streams::{OutputError, Streams, to_json, to_json_line};

/// Print the records of a session in their order.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Session
    #[arg(value_name = "ID")]
    id: String,

    /// Only records of this type; may be repeated
    #[arg(long = "type", value_name = "TYPE", value_parser = PossibleValuesParser::new(EventBody::TYPES))]
    types: Vec<String>,

    /// Only records from this time on, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<Timestamp>,

    /// Only records before this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<Timestamp>,

    /// Only calls of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,

    /// Largest number of records of a page
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// Continue after a page: the value of `next`
    #[arg(long, value_name = "CURSOR", conflicts_with = "jsonl")]
    cursor: Option<String>,

    /// Print all records, one JSON object a line
    #[arg(long)]
    jsonl: bool,

    /// Also show the texts of each record
    #[arg(long)]
    previews: bool,
}

fn time(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "expected a time such as 2026-01-31T12:00:00Z".to_owned())
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut store = open(place, streams)?;
    find(&mut store, &args.id, place)?;
    let filter =
        EventFilter { types: args.types.clone(), since: args.since, until: args.until, tool: args.tool.clone() };
    if args.jsonl {
        let printed = store.for_each(&args.id, &filter, 0, None, |_, event| {
            let line = to_json_line(&event) + "\n";
            if streams.print_to_reader(&line)? { Ok(()) } else { Err(Stop::Closed) }
        });
        return match printed {
            Ok(()) | Err(Stop::Closed) => Ok(Exit::Done),
            Err(Stop::Output(error)) => Err(error.into()),
            Err(Stop::Store(error)) => Err(failed(error)),
        };
    }
    let page = store.timeline(&args.id, &filter, args.limit, args.cursor.as_deref()).map_err(failed)?;
    let page = page.map_err(CommandError::usage)?;
    if place.is_json {
        streams.print_document(&to_json(&page))?;
        return Ok(Exit::Done);
    }
    print(&page, args.previews, streams)?;
    if let Some(next) = &page.next {
        streams.log(format_args!("more records: pass `--cursor {next}`"));
    }
    Ok(Exit::Done)
}

/// Why no further record is printed.
enum Stop {
    /// The reader of the output has gone.
    Closed,
    Output(OutputError),
    Store(counterproof_ledger::store::StoreError),
}

impl From<OutputError> for Stop {
    fn from(error: OutputError) -> Self {
        Stop::Output(error)
    }
}

impl From<counterproof_ledger::store::StoreError> for Stop {
    fn from(error: counterproof_ledger::store::StoreError) -> Self {
        Stop::Store(error)
    }
}

fn print(page: &EventPage, with_previews: bool, streams: &mut Streams) -> Result<(), CommandError> {
    if page.events.is_empty() {
        streams.log("no records meet the conditions");
        return Ok(());
    }
    let events: Vec<SessionEvent> =
        page.events.iter().filter_map(|event| serde_json::from_value(event.clone()).ok()).collect();
    if with_previews {
        for event in &events {
            streams.print_line(details(event).trim_end())?;
        }
        return Ok(());
    }
    let row = |event: &SessionEvent| {
        [cell(event.seq), short_time(&event.timestamp.to_string()), event.body.kind().to_owned(), summary(event)]
    };
    streams.print_line(table(["seq", "timestamp", "type", ""], events.iter().map(row)).trim_end())?;
    Ok(())
}

const LONGEST: usize = 120;

const LONGEST_PREVIEW: usize = 2000;

/// Returns what a record says in one line.
fn summary(event: &SessionEvent) -> String {
    let text = match &event.body {
        EventBody::LlmCall(call) => {
            let response = call.response.as_ref();
            let usage = response.and_then(|response| response.usage).unwrap_or_default();
            let calls: Vec<&str> =
                response.iter().flat_map(|it| &it.tool_calls).map(|call| call.function.name.as_str()).collect();
            let said = response.and_then(|response| response.content.as_deref()).unwrap_or_default();
            let asked = if calls.is_empty() { String::new() } else { format!(" → {}", calls.join(", ")) };
            format!(
                "{}  {} tokens  {}{asked}  {said}",
                cell(call.request.model.as_ref()),
                cell(usage.total_tokens),
                cell(call.latency_ms.map(|time| format!("{time} ms")))
            )
        }
        EventBody::ToolCall(call) => {
            let success = match call.result.success {
                Some(true) => "ok",
                Some(false) => "failed",
                None => "-",
            };
            format!("{}  {success}  {}", call.tool_name, call.arguments)
        }
        EventBody::StateTransition(state) => format!("{} → {} ({})", state.from_state, state.to_state, state.trigger),
        EventBody::Checkpoint(checkpoint) => {
            format!("{}  {}", checkpoint.checkpoint_id, checkpoint.state.current_step)
        }
        EventBody::FileOperation(file) => format!("{} {}", file.operation.word(), file.path),
        EventBody::Command(command) => {
            let code = cell(command.exit_code.map(|code| format!("exit code {code}")));
            let expected = if command.expected_failure { " (expected)" } else { "" };
            format!(
                "{code}{expected}  {}",
                cell(command.command.as_ref().map(counterproof_sessions::event::CommandLine::text))
            )
        }
        EventBody::Opaque(opaque) => opaque.data.to_string(),
    };
    let error = event.error.as_ref().map(|error| format!("{} {}  ", error.kind, cell(error.status)));
    one_line(&format!("{}{text}", error.unwrap_or_default()), LONGEST)
}

/// Returns a record with its texts, one a line.
fn details(event: &SessionEvent) -> String {
    let mut texts: Vec<(&str, String)> = Vec::new();
    match &event.body {
        EventBody::LlmCall(call) => {
            let last = call.request.messages.as_array().and_then(|messages| messages.last());
            texts.extend(last.map(|message| ("prompt", message.to_string())));
            let content = call.response.as_ref().and_then(|response| response.content.clone());
            texts.extend(content.map(|content| ("answer", content)));
            let calls = call.response.iter().flat_map(|response| &response.tool_calls);
            texts.extend(calls.map(|it| ("calls", format!("{} {}", it.function.name, it.function.arguments))));
        }
        EventBody::ToolCall(call) => {
            texts.push(("arguments", call.arguments.to_string()));
            texts.extend(call.result.content.clone().map(|content| ("result", content)));
            texts.extend(call.result.error.clone().map(|error| ("error", error)));
        }
        EventBody::FileOperation(file) => texts.extend(file.patch.clone().map(|patch| ("patch", patch))),
        EventBody::Command(command) => {
            texts.extend(command.stdout.clone().map(|text| ("stdout", text)));
            texts.extend(command.stderr.clone().map(|text| ("stderr", text)));
        }
        EventBody::StateTransition(state) if state.context != Value::Null => {
            texts.push(("context", state.context.to_string()));
        }
        _ => {}
    }
    texts.extend(event.error.as_ref().map(|error| ("error", error.message.clone())));
    let (seq, time) = (cell(event.seq), short_time(&event.timestamp.to_string()));
    let head = format!("{seq}  {time}  {}  {}\n", event.body.kind(), summary(event));
    let lines = texts.into_iter().map(|(name, text)| format!("  {name:10}  {}\n", one_line(&text, LONGEST_PREVIEW)));
    format!("{head}{}", lines.collect::<String>())
}
