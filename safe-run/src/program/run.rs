//! `safe-run run`: forwards the output and the exit code of a command, and records it if it fails.

use std::io::{self, Write as _};

use jiff::Timestamp;

use super::arguments::Run;
use super::console::{output_error, report};
use super::events_file::EventsFile;
use super::settings::{Redaction, SecretError, Settings};
use super::{exit_code, log_file};
use crate::{Input, Io, Options, OutputMode, Record, Signals, StartError, Stream, record};

/// A record that could not be redacted, and is therefore not written.
#[derive(Debug, thiserror::Error)]
enum RedactionError {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("failed to redact the record: {0}")]
    Record(#[from] io::Error),
}

/// Runs the command and returns the exit code.
pub(super) fn run(run: &Run) -> i32 {
    // The events file is opened before the start, so that a wrong path costs no execution.
    let settings = Settings::read(|name| std::env::var_os(name));
    let events = match run.events.as_deref().map(EventsFile::open).transpose() {
        Ok(events) => events,
        Err(error) => {
            report(format_args!("safe-run: {error}"));
            return exit_code::SETUP;
        }
    };
    let record = match execute(run) {
        Ok(record) => record,
        Err(error) => return report_start_error(&error, events),
    };
    for (stream, error) in &record.output_errors {
        report(output_error(stream.title(), error));
    }
    // Success must mean that the output arrived too.
    let is_output_lost = record.ending.is_success() && !record.output_errors.is_empty();
    let exit_code = if is_output_lost { exit_code::SETUP } else { record.ending.exit_code() };
    save(record, &settings, events);
    exit_code
}

fn execute(run: &Run) -> Result<Record, StartError> {
    let default = Options::default();
    let options = Options {
        terminal: run.terminal,
        output: OutputMode::Forward,
        grace: run.grace.unwrap_or(default.grace),
        drain: run.drain.unwrap_or(default.drain),
        owns_process: true,
        ..default
    };
    let (signals, received) = Signals::pipe().map_err(StartError::Setup)?;
    record(&run.command, &options, Io { input: Input::Inherited, signals, received }, &mut |_, _, _| {})
}

fn report_start_error(error: &StartError, events: Option<EventsFile>) -> i32 {
    if let Some(events) = events {
        events.discard();
    }
    match error {
        StartError::Command { program, source } => {
            report(format_args!("Error: Failed to spawn command: {program}: {source}"));
            if source.kind() == io::ErrorKind::NotFound { exit_code::NOT_FOUND } else { exit_code::NOT_EXECUTABLE }
        }
        StartError::Setup(source) | StartError::WorkingDirectory { source, .. } => {
            report(format_args!("safe-run: {error}: {source}"));
            exit_code::SETUP
        }
        StartError::NoCommand => {
            report(format_args!("safe-run: {error}"));
            exit_code::USAGE
        }
        StartError::NotEntered | StartError::Cancelled => {
            report(format_args!("safe-run: {error}"));
            exit_code::SETUP
        }
        StartError::NoProc => {
            report(format_args!("safe-run: {error}\n  hint: mount it, for example with `mount -t proc proc /proc`"));
            exit_code::SETUP
        }
    }
}

/// Redacts the record if requested, and writes the events and the log.
fn save(record: Record, settings: &Settings, events: Option<EventsFile>) {
    let (is_success, outcome) = (record.ending.is_success(), outcome(&record));
    let is_written = events.is_some() || !is_success;
    let record = if is_written { redact(record, settings) } else { Ok(record) };
    match record {
        Ok(record) => write(&record, settings, events),
        // A missing record is better than one that contains secrets.
        Err(error) => {
            if let Some(events) = events {
                events.discard();
                report(format_args!("safe-run: no events: {error}"));
            }
            if !is_success {
                report(format_args!("safe-run: {outcome}. no log: {error}"));
            }
        }
    }
}

fn redact(record: Record, settings: &Settings) -> Result<Record, RedactionError> {
    let Some(redaction) = settings.redaction(|name| std::env::var_os(name)) else { return Ok(record) };
    let Redaction { redactor, unset } = redaction?;
    for name in &unset {
        report(format_args!("safe-run: SAFE_REDACT names `{name}`, which is not set; there is no value to redact"));
    }
    Ok(record.redacted(&redactor)?)
}

/// Writes the events and, after a failure, the log. Reports errors, which do not change the exit code.
fn write(record: &Record, settings: &Settings, events: Option<EventsFile>) {
    if let Some(error) = &record.capture_error {
        report(format_args!("safe-run: the record is incomplete: {error}"));
    }
    if let Some(Err(error)) = events.map(|events| events.write(record)) {
        report(format_args!("safe-run: {error}"));
    }
    if record.ending.is_success() {
        return;
    }
    let names = log_file::names(settings.name_style, Timestamp::now(), log_file::FailureKind::from_record(record));
    let saved = log_file::save(&settings.log_folder, names, |file| record.write_log(settings.view, file));
    let outcome = outcome(record);
    match saved {
        Ok(path) => report(format_args!("safe-run: {outcome}. log: {path}")),
        Err(error) => report(format_args!("safe-run: {outcome}. no log: {error}")),
    }
    if settings.snippet_lines > 0 {
        print_tail(record, settings.snippet_lines);
    }
}

/// Describes the failure. Conformance vectors pin the words.
fn outcome(record: &Record) -> String {
    match record.aborted_by {
        Some(_) => "command aborted by signal".to_owned(),
        None => format!("command failed (rc={})", record.ending.exit_code()),
    }
}

/// Prints the last lines of both streams to standard error.
fn print_tail(record: &Record, lines: usize) {
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
