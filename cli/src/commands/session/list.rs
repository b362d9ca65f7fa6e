//! `counterproof session list`: the sessions of a ledger.

use counterproof_artifact::Exit;
use counterproof_sessions::store::{SessionSummary, StoreUsage};
use serde_json::{Value, json};

use super::opened::open;
use crate::command_error::CommandError;
use crate::commands::ledger::{Place, cell, failed, short_time, table};
use crate::streams::{Streams, to_json};

/// List sessions, the latest first.
///
/// `running`: a process records the session. `interrupted`: its recorder was killed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Largest number of sessions
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// Continue after a page: the value of `next`
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,

    /// Also print how much the sessions store
    #[arg(long)]
    usage: bool,
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut store = open(place, streams)?;
    let page = store.sessions(args.limit, args.cursor.as_deref()).map_err(failed)?.map_err(CommandError::usage)?;
    let usage = if args.usage { Some(store.usage().map_err(failed)?) } else { None };
    if place.is_json {
        let mut document = serde_json::to_value(&page).unwrap_or_default();
        if let (Some(usage), Value::Object(fields)) = (usage, &mut document) {
            fields.insert("usage".to_owned(), json!(usage));
        }
        streams.print_document(&to_json(&document))?;
        return Ok(Exit::Done);
    }
    if page.sessions.is_empty() {
        streams.log(format_args!("no sessions in `{}`", place.location));
    } else {
        let names =
            ["started_at", "session_id", "origin", "status", "llm_calls", "tool_calls", "tokens", "cost", "title"];
        streams.print_line(table(names, page.sessions.iter().map(row)).trim_end())?;
    }
    if let Some(next) = &page.next {
        streams.log(format_args!("more sessions: pass `--cursor {}`", crate::resume_command::quoted(next)));
    }
    if let Some(StoreUsage { sessions, events, event_bytes, assets, asset_bytes }) = usage {
        streams.print_line(format_args!(
            "sessions: {sessions}; events: {events}, {event_bytes} bytes; texts: {assets}, {asset_bytes} bytes"
        ))?;
    }
    Ok(Exit::Done)
}

fn row(session: &SessionSummary) -> [String; 9] {
    [
        short_time(&session.started_at),
        session.session_id.clone(),
        session.origin.clone(),
        session.status.clone(),
        session.llm_calls.to_string(),
        session.tool_calls.to_string(),
        cell(session.total_tokens),
        cell(session.cost),
        title(session),
    ]
}

/// Returns the title, and the parent of a fork: it has the title of its parent.
fn title(session: &SessionSummary) -> String {
    let title = cell(session.title.as_ref());
    match &session.parent {
        Some(parent) => format!("{title} (fork of {})", parent.session_id),
        None => title,
    }
}
