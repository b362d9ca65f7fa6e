//! `counterproof ledger tail`: the latest events of a ledger, and those that arrive.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use counterproof_artifact::{Exit, harmless};
use counterproof_ledger::query::{EventFilter, StoredEvent, events_after, last_events};
use serde_json::Value;

use super::opened::{Place, failed};
use super::runs::short_time;
use crate::command_error::CommandError;
use crate::signals::on_signal;
use crate::streams::Streams;
use crate::streams::safe_json;
use crate::value_parsers::duration;

const PAGE: u32 = 1000;

/// Longest time until an interruption is noticed.
const SLICE: Duration = Duration::from_millis(50);

/// Print the latest events in the order of their arrival.
///
/// With `--json`, each event is one line of JSON.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print events that arrive later too, until interrupted
    #[arg(long)]
    follow: bool,

    /// Time between two queries of the ledger
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    poll: Duration,

    /// Number of events before those that arrive
    #[arg(long, value_name = "NUMBER", default_value_t = 200)]
    limit: u32,
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let is_stopped = Arc::new(AtomicBool::new(false));
    // Without `--follow`, the default action of the signal ends the command.
    if args.follow {
        let stopped = Arc::clone(&is_stopped);
        on_signal(move || stopped.store(true, Ordering::Relaxed)).map_err(CommandError::io)?;
    }
    let mut store = place.open(streams)?;
    // At least one, for its number.
    let mut events = last_events(store.as_mut(), args.limit.max(1)).map_err(failed)?;
    let mut last = events.last().map_or(0, |event| event.id);
    events.truncate(args.limit as usize);
    let mut has_reader = print(&events, place, streams)?;
    if !args.follow && last == 0 {
        streams.log(format_args!("no events in `{}`", place.location));
    }
    while args.follow && has_reader {
        let events = events_after(store.as_mut(), &EventFilter::default(), last, PAGE).map_err(failed)?;
        last = events.last().map_or(last, |event| event.id);
        has_reader = print(&events, place, streams)?;
        if is_stopped.load(Ordering::Relaxed) {
            return Ok(Exit::Interrupted);
        }
        // A full page means that more events are there already.
        if events.len() < PAGE as usize {
            wait(args.poll, &is_stopped);
        }
    }
    Ok(Exit::Done)
}

fn wait(time: Duration, is_stopped: &AtomicBool) {
    let started = Instant::now();
    while !is_stopped.load(Ordering::Relaxed) {
        let left = time.saturating_sub(started.elapsed());
        if left.is_zero() {
            return;
        }
        // In slices, because `sleep` goes on after a signal.
        thread::sleep(SLICE.min(left));
    }
}

/// Prints events. Returns false if the reader of standard output has closed it.
fn print(events: &[StoredEvent], place: &Place, streams: &mut Streams) -> Result<bool, CommandError> {
    let mut text = String::new();
    for event in events {
        // A line of another producer may contain characters that steer a terminal.
        text += &if place.is_json { safe_json(&event.line) } else { harmless(&event_line(event)) };
        text.push('\n');
    }
    Ok(streams.print_to_reader(&text)?)
}

const LONGEST: usize = 400;

/// Returns an event as one line: its time, run and type, and what its type adds.
pub(super) fn event_line(event: &StoredEvent) -> String {
    let parts = match serde_json::from_str(&event.line) {
        Ok(fields) => parts(&fields),
        // The ledger stores events with numbers, texts and depths that this reader does not represent.
        Err(_) => vec![short_time(&event.ts), event.run_id.clone(), event.kind.clone(), event.line.clone()],
    };
    counterproof_artifact::one_line(&parts.join("  "), LONGEST)
}

fn parts(event: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let call = &event["call"];
    let mut parts = vec![short_time(&text(&event["ts"])), text(&event["run_id"]), text(&event["type"])];
    if call["server_name"].is_string() || call["tool_name"].is_string() {
        parts.push(format!("{}/{}", text(&call["server_name"]), text(&call["tool_name"])));
    }
    let decision = &event["decision"];
    let values = [
        &decision["action"],
        &decision["rule_id"],
        &decision["explain"]["reason_code"],
        &event["run"]["status"],
        &event["status"],
        &event["error"]["class"],
        &event["health"]["message"],
    ];
    parts.extend(values.into_iter().filter_map(Value::as_str).map(str::to_owned));
    if let Some(latency) = event["latency_ms"].as_u64() {
        parts.push(format!("{latency} ms"));
    }
    parts.extend(call["call_id"].as_str().map(str::to_owned));
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_cannot_be_parsed_is_shown_as_it_was_written() {
        let nested = "[".repeat(200) + &"]".repeat(200);
        for value in ["1e999", "\"\\ud800\"", "\"\u{202e}\"", &nested] {
            let line = format!("{{\"n\":{value}}}");
            let (ts, run_id, kind) = ("2026-01-31T12:00:00.000000000Z".to_owned(), "r1".to_owned(), "x".to_owned());
            let shown = event_line(&StoredEvent { id: 1, ts, run_id, kind, line });
            assert!(!shown.contains('\u{202e}'), "{shown}");
            if value != "\"\u{202e}\"" {
                let expected = format!("2026-01-31T12:00:00.000Z  r1  x  {{\"n\":{value}");
                assert!(expected.starts_with(shown.trim_end_matches(['…', '}'])), "{shown}");
            }
        }
    }
}
