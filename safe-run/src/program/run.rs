//! `safe-run run`: the command's streams and exit code, and a record where it failed.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use camino::Utf8Path;
use counterproof_artifact::write;
use jiff::Timestamp;

use super::arguments::Run;
use super::settings::Settings;
use super::{code, place, say};
use crate::{Options, Record, Signals, StartError, Stream, record};

/// Runs the command, and gives the code to exit with.
pub(super) fn run(run: &Run) -> i32 {
    let settings = Settings::read(|name| std::env::var_os(name));
    let events = match run.events.as_deref().map(open_events).transpose() {
        Ok(events) => events,
        Err(error) => {
            say(format_args!("safe-run: {error}"));
            return code::SETUP;
        }
    };
    let default = Options::default();
    let options = Options {
        terminal: run.terminal,
        is_live: true,
        grace: run.grace.unwrap_or(default.grace),
        drain: run.drain.unwrap_or(default.drain),
        owns_process: true,
    };
    let signals = match Signals::pipe() {
        Ok(signals) => signals,
        Err(error) => return not_started(&StartError::Setup(error)),
    };
    let record = match record(&run.command, &options, (&signals.0, signals.1), &mut |_, _, _| {}) {
        Ok(record) => record,
        Err(error) => return not_started(&error),
    };
    let exit_code = record.ending.exit_code();
    let redactor = settings.redactor(|name| std::env::var_os(name));
    let record = match redactor {
        None => Ok(record),
        Some(Ok(redactor)) => record.redacted(&redactor).map_err(|error| error.to_string()),
        Some(Err(error)) => Err(error.to_string()),
    };
    match record {
        Ok(record) => tell(&record, &settings, events),
        // Better no record than one with its secrets.
        Err(error) => say(format_args!("safe-run: {}. no log: {error}", outcome(exit_code, false))),
    }
    exit_code
}

fn not_started(error: &StartError) -> i32 {
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
    }
}

/// Writes what is to be written, and says what could not be.
fn tell(record: &Record, settings: &Settings, events: Option<BufWriter<File>>) {
    if let Some(error) = &record.lost {
        say(format_args!("safe-run: the record is incomplete: {error}"));
    }
    if let Some(mut events) = events {
        let written = record.write_json_lines(&mut events).and_then(|()| events.flush());
        if let Err(error) = written {
            say(format_args!("safe-run: failed to write the events: {error}"));
        }
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

/// Opens the file for the events: a new one, or what is no file and stands there already, such as a named pipe.
fn open_events(path: &Path) -> Result<BufWriter<File>, String> {
    let is_special = path.metadata().is_ok_and(|there| {
        let kind = there.file_type();
        kind.is_fifo() || kind.is_char_device() || kind.is_socket()
    });
    let told = |error: &dyn std::fmt::Display| format!("failed to write the events to `{}`: {error}", path.display());
    if is_special {
        #[expect(clippy::disallowed_methods, reason = "a pipe or a device, and no file that could be torn")]
        let opened = OpenOptions::new().write(true).open(path);
        return opened.map(BufWriter::new).map_err(|error| told(&error));
    }
    let path = Utf8Path::from_path(path).ok_or_else(|| told(&"the path is no UTF-8 text"))?;
    write::create_new(path).map(BufWriter::new).map_err(|error| told(&error.source))
}
