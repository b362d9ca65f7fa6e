//! `safe-run run`: the command's streams and exit code, and a record where it failed.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use jiff::Timestamp;

use super::arguments::Run;
use super::dispatch::{code, say, unwritten};
use super::events_file::Events;
use super::log_file as place;
use super::settings::{Masks, Settings};
use crate::{Input, Options, Output, Record, Signals, StartError, Stream, Wires, record};

/// Runs the command, and gives the code to exit with.
pub(super) fn run(run: &Run) -> i32 {
    let settings = Settings::read(|name| std::env::var_os(name));
    let events = match run.events.as_deref().map(Events::open).transpose() {
        Ok(events) => events,
        Err(error) => {
            say(format_args!("safe-run: {error}"));
            return code::SETUP;
        }
    };
    let default = Options::default();
    let options = Options {
        terminal: run.terminal,
        output: Output::Live,
        grace: run.grace.unwrap_or(default.grace),
        drain: run.drain.unwrap_or(default.drain),
        owns_process: true,
        ..default
    };
    let wires = match Signals::pipe() {
        Ok((signals, received)) => Wires { input: Input::Ours, signals, received },
        Err(error) => return not_started(&StartError::Setup(error), events),
    };
    let record = match record(&run.command, &options, wires, &mut |_, _, _| {}) {
        Ok(record) => record,
        Err(error) => return not_started(&error, events),
    };
    let (ending, is_aborted) = (record.ending, record.aborted_by.is_some());
    for (stream, error) in &record.unwritten {
        say(unwritten(stream.title(), error));
    }
    // Who trusts a success of ours trusts that the output is there too.
    let is_cut = ending.is_success() && !record.unwritten.is_empty();
    let is_kept = events.is_some() || !ending.is_success();
    let masks = if is_kept { settings.masks(|name| std::env::var_os(name)) } else { None };
    let record = match masks {
        None => Ok(record),
        Some(masks) => masks.map_err(|error| error.to_string()).and_then(|masks| masked(record, &masks)),
    };
    match record {
        Ok(record) => tell(&record, &settings, events),
        // Better no record than one with its secrets.
        Err(error) => {
            if let Some(events) = events {
                events.discard();
                say(format_args!("safe-run: no events: {error}"));
            }
            if !ending.is_success() {
                say(format_args!("safe-run: {}. no log: {error}", outcome(ending.exit_code(), is_aborted)));
            }
        }
    }
    if is_cut { code::SETUP } else { ending.exit_code() }
}

fn masked(record: Record, masks: &Masks) -> Result<Record, String> {
    for name in &masks.unset {
        say(format_args!("safe-run: SAFE_REDACT names `{name}`, which is not set: nothing is masked for it"));
    }
    record.redacted(&masks.redactor).map_err(|error| error.to_string())
}

fn not_started(error: &StartError, events: Option<Events>) -> i32 {
    if let Some(events) = events {
        events.discard();
    }
    match error {
        StartError::Command { program, source } => {
            say(format_args!("Error: Failed to spawn command: {program}: {source}"));
            if source.kind() == io::ErrorKind::NotFound { code::NOT_FOUND } else { code::NOT_RUN }
        }
        StartError::Setup(source) => {
            say(format_args!("safe-run: {error}: {source}"));
            code::SETUP
        }
        StartError::Nothing => {
            say(format_args!("safe-run: {error}"));
            code::USAGE
        }
        StartError::NotEntered => {
            say(format_args!("safe-run: {error}"));
            code::SETUP
        }
    }
}

/// Writes what is to be written, and says what could not be.
fn tell(record: &Record, settings: &Settings, events: Option<Events>) {
    if let Some(error) = &record.lost {
        say(format_args!("safe-run: the record is incomplete: {error}"));
    }
    if let Some(Err(error)) = events.map(|events| events.write(record)) {
        say(format_args!("safe-run: {error}"));
    }
    if record.ending.is_success() {
        return;
    }
    let is_aborted = record.aborted_by.is_some();
    let names = place::names(settings.name_style, Timestamp::now(), is_aborted);
    let kept = place::keep(&settings.log_folder, names, |file| record.write_log(settings.view, file));
    let outcome = outcome(record.ending.exit_code(), is_aborted);
    match kept {
        Ok(path) => say(format_args!("safe-run: {outcome}. log: {path}")),
        Err(error) => say(format_args!("safe-run: {outcome}. no log: {error}")),
    }
    if settings.snippet_lines > 0 {
        snippet(record, settings.snippet_lines);
    }
}

fn outcome(exit_code: i32, is_aborted: bool) -> String {
    let mut text = String::from("command ");
    let _ = if is_aborted { write!(text, "aborted by signal") } else { write!(text, "failed (rc={exit_code})") };
    text
}

/// Shows the last lines of both streams.
fn snippet(record: &Record, lines: usize) {
    let mut text = format!("--- safe-run failure tail ({lines} lines) ---\n").into_bytes();
    for stream in Stream::ALL {
        text.extend(record.tail(stream, lines).unwrap_or_default());
        if text.last() != Some(&b'\n') {
            text.push(b'\n');
        }
    }
    text.extend_from_slice(b"--- end tail ---\n");
    let _ = io::stderr().write_all(&text);
}
