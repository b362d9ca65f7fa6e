//! `counterproof ledger tail`: the latest events of a ledger, and those that arrive.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::lines::event_line;
use super::opened::{Place, failed};
use crate::command_error::CommandError;
use crate::json_text::safe_json;
use crate::signals::on_signal;
use crate::streams::Streams;
use crate::value_parsers::duration;
use counterproof_artifact::{Exit, harmless};
use counterproof_ledger::query::{EventFilter, StoredEvent, events_after, last_events};

/// Events that are read at once.
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

/// Runs the command.
pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let is_stopped = Arc::new(AtomicBool::new(false));
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
