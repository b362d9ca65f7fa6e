//! `safe-run run`: forwards the output and the exit code of a command, and records it if it fails: a log, and a file of events if
//! one was requested. The file of events is opened before the start, so that an error prevents it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
#[cfg(unix)]
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
#[cfg(windows)]
use std::os::windows::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::{self, AtomicFile, Durability, WriteError, create_folder, remove_leftovers_next_to};
use jiff::Timestamp;
use uuid::Uuid;

use super::dispatch::{self, output_error, report};
use super::parse_arguments::Run;
use super::settings::{NameStyle, Redaction, SecretError, Settings};
#[cfg(unix)]
use crate::{Input, Io, Signals};
use crate::{Options, OutputMode, Record, StartError, Stream};

#[derive(Debug, thiserror::Error)]
enum RedactionError {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("failed to redact the record: {0}")]
    Record(#[from] io::Error),
}

pub(super) fn run(run: &Run) -> i32 {
    let settings = Settings::read(|name| std::env::var_os(name));
    if let Some(view) = &settings.unknown_view {
        report(format_args!("safe-run: SAFE_RUN_VIEW has the unknown value `{view}`; use `ledger` or `merged`"));
    }
    // The events file is opened before the start, so that a wrong path costs no execution.
    let events = match run.events.as_deref().map(EventsFile::open).transpose() {
        Ok(events) => events,
        Err(error) => {
            report(format_args!("safe-run: {error}"));
            return dispatch::SETUP;
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
    let exit_code = if is_output_lost { dispatch::SETUP } else { record.ending.exit_code() };
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
    execute_with(&run.command, &options)
}

#[cfg(unix)]
fn execute_with(command: &[OsString], options: &Options) -> Result<Record, StartError> {
    let (signals, received) = Signals::pipe().map_err(StartError::Setup)?;
    crate::record(command, options, Io { input: Input::Inherited, signals, received }, &mut |_, _, _| {})
}

#[cfg(windows)]
fn execute_with(command: &[OsString], options: &Options) -> Result<Record, StartError> {
    crate::Command { options: options.clone(), ..crate::Command::new(command) }.run(&mut |_, _, _| {})
}

fn report_start_error(error: &StartError, events: Option<EventsFile>) -> i32 {
    if let Some(events) = events {
        events.discard();
    }
    match error {
        StartError::Command { program, source } => {
            report(format_args!("Error: Failed to spawn command: {program}: {source}"));
            if source.kind() == io::ErrorKind::NotFound { dispatch::NOT_FOUND } else { dispatch::NOT_EXECUTABLE }
        }
        StartError::Setup(source) | StartError::WorkingDirectory { source, .. } => {
            report(format_args!("safe-run: {error}: {source}"));
            dispatch::SETUP
        }
        StartError::NoCommand => {
            report(format_args!("safe-run: {error}"));
            dispatch::USAGE
        }
        StartError::NotEntered | StartError::Cancelled => {
            report(format_args!("safe-run: {error}"));
            dispatch::SETUP
        }
        StartError::NoProc => {
            report(format_args!("safe-run: {error}\n  hint: mount it, for example with `mount -t proc proc /proc`"));
            dispatch::SETUP
        }
    }
}

/// Redacts the record if requested, and writes the events and the log.
fn save(record: Record, settings: &Settings, events: Option<EventsFile>) {
    let (is_success, outcome) = (record.ending.is_success(), outcome(&record));
    // Redaction reads the whole output, so it is skipped if nothing is written.
    let is_written = events.is_some() || settings.record_folder.is_some() || !is_success;
    let record = if is_written { redact(record, settings) } else { Ok(record) };
    match record {
        Ok(record) => write(&record, settings, events),
        // A missing record is better than one that contains secrets.
        Err(error) => {
            if let Some(events) = events {
                events.discard();
                report(format_args!("safe-run: no events: {error}"));
            }
            if settings.record_folder.is_some() {
                report(format_args!("safe-run: no record in SAFE_RUN_RECORD_DIR: {error}"));
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
    if let Some(folder) = &settings.record_folder {
        let names = (0..MAX_ATTEMPTS).map(|_| format!("{}.jsonl", Uuid::now_v7()));
        if let Err(error) = save_log(folder, names, |file| record.write_json_lines(file)) {
            report(format_args!("safe-run: no record in SAFE_RUN_RECORD_DIR: {error}"));
        }
    }
    if record.ending.is_success() {
        return;
    }
    let names = names(settings.name_style, Timestamp::now(), FailureKind::from_record(record));
    let saved = save_log(&settings.log_folder, names, |file| record.write_log(settings.view, file));
    let outcome = outcome(record);
    match saved {
        Ok(path) => report(format_args!("safe-run: {outcome}. log: {}", shown(&path))),
        Err(error) => report(format_args!("safe-run: {outcome}. no log: {error}")),
    }
    // After the message that names the log, which is what a reader looks for first.
    if settings.snippet_lines > 0 {
        print_tail(record, settings.snippet_lines);
    }
}

/// Returns the path of a log as the message names it. A folder written with `/` keeps it on Windows too: conformance vectors pin it.
fn shown(path: &Utf8Path) -> String {
    let is_rewritten = cfg!(windows) && path.parent().is_some_and(|folder| !folder.as_str().contains('\\'));
    if is_rewritten { path.as_str().replace('\\', "/") } else { path.to_string() }
}

/// Describes the failure. Conformance vectors pin the words.
fn outcome(record: &Record) -> String {
    match record.aborted_by {
        Some(_) => "command aborted by signal".to_owned(),
        None => format!("command failed (rc={})", record.ending.exit_code()),
    }
}

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

const MAX_ATTEMPTS: u32 = 16;

#[derive(Debug, thiserror::Error)]
pub(super) enum LogFileError {
    #[error("the path of the log folder is not valid UTF-8")]
    NotUtf8,
    #[error("{}", with_cause(.0))]
    Write(#[from] WriteError),
    #[error("failed to write the log in `{folder}`: {source}")]
    Content { folder: Utf8PathBuf, source: io::Error },
    #[error("no free name for a log in `{folder}` after {MAX_ATTEMPTS} attempts")]
    NoFreeName { folder: Utf8PathBuf },
}

fn with_cause(error: &WriteError) -> String {
    format!("{error}: {}", error.source)
}

pub(super) fn save_log(
    folder: &OsStr,
    names: impl Iterator<Item = String>,
    write: impl FnOnce(&mut AtomicFile) -> io::Result<()>,
) -> Result<Utf8PathBuf, LogFileError> {
    let folder = Utf8Path::from_path(folder.as_ref()).ok_or(LogFileError::NotUtf8)?;
    create_folder(folder)?;
    let path = folder.join("log");
    remove_leftovers_next_to(&path);
    // The log is written under a temporary name first: a reader never sees an incomplete log.
    let mut file = AtomicFile::create(&path)?;
    let written = write(&mut file).and_then(|()| file.flush());
    written.map_err(|source| LogFileError::Content { folder: folder.to_owned(), source })?;
    let paths = names.take(MAX_ATTEMPTS as usize).map(|name| folder.join(name));
    file.commit_new(paths, Durability::Synced)?.ok_or_else(|| LogFileError::NoFreeName { folder: folder.to_owned() })
}

/// How a failed command ended, as the names of older logs report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureKind {
    Failed,
    Aborted,
}

impl FailureKind {
    pub(super) const fn from_record(record: &Record) -> Self {
        if record.aborted_by.is_some() { Self::Aborted } else { Self::Failed }
    }

    const fn word(self) -> &'static str {
        match self {
            FailureKind::Failed => "FAIL",
            FailureKind::Aborted => "ABORTED",
        }
    }
}

pub(super) fn names(style: NameStyle, now: Timestamp, kind: FailureKind) -> impl Iterator<Item = String> {
    let (process, kind) = (std::process::id(), kind.word());
    (0_u32..).map(move |attempt| match (style, attempt) {
        (NameStyle::Contract, _) => {
            let [.., a, b, c] = Uuid::now_v7().into_bytes();
            format!("safe-run-{}-{a:02x}{b:02x}{c:02x}.log", now.strftime("%Y%m%d-%H%M%S"))
        }
        (NameStyle::M0, 0) => format!("{}-pid{process}-{kind}.log", now.strftime("%Y%m%dT%H%M%SZ")),
        (NameStyle::M0, _) => format!("{}-pid{process}-{kind}-{attempt}.log", now.strftime("%Y%m%dT%H%M%SZ")),
    })
}

#[derive(Debug, thiserror::Error)]
pub(super) enum EventsFileError {
    #[error("failed to open the events file `{path}`: {source}")]
    Open { path: PathBuf, source: io::Error },
    #[error("the path of the events file `{0}` is not valid UTF-8")]
    NotUtf8(PathBuf),
    #[error("the events file `{0}` already exists and is not overwritten\n  hint: remove it or choose another name")]
    Exists(Utf8PathBuf),
    /// A safe-run that was killed leaves an empty file, and so does one that still runs.
    #[error(
        "the events file `{0}` already exists and is empty: another safe-run is still running or was killed\n  \
         hint: remove it or choose another name"
    )]
    ExistsEmpty(Utf8PathBuf),
    #[error("failed to write the events: {0}")]
    Write(io::Error),
    #[error("failed to write the events: {source}\n  hint: `{path}` is incomplete; remove it before the next run")]
    Incomplete { path: Utf8PathBuf, source: io::Error },
}

#[derive(Debug)]
pub(super) struct EventsFile {
    out: BufWriter<File>,
    /// The path, if this process has created the file.
    created: Option<Utf8PathBuf>,
}

impl EventsFile {
    pub(super) fn open(path: &Path) -> Result<Self, EventsFileError> {
        let open_error = |source| EventsFileError::Open { path: path.to_owned(), source };
        if is_special(path) {
            #[expect(
                clippy::disallowed_methods,
                reason = "a pipe or a device, which a crash cannot leave half-written"
            )]
            let opened = OpenOptions::new().write(true).open(path);
            return Ok(Self { out: BufWriter::new(opened.map_err(open_error)?), created: None });
        }
        let path = Utf8Path::from_path(path).ok_or_else(|| EventsFileError::NotUtf8(path.to_owned()))?;
        let file = write::create_new(path).map_err(|error| match error.source.kind() {
            io::ErrorKind::AlreadyExists => already_exists(path),
            _ => open_error(error.source),
        })?;
        Ok(Self { out: BufWriter::new(file), created: Some(path.to_owned()) })
    }

    pub(super) fn write(mut self, record: &Record) -> Result<(), EventsFileError> {
        let written = record.write_json_lines(&mut self.out).and_then(|()| self.out.flush());
        written.map_err(|source| match self.created {
            Some(path) => EventsFileError::Incomplete { path, source },
            None => EventsFileError::Write(source),
        })
    }

    /// Removes the file if this process has created it, so that the next call can use its name. If that fails, the next call
    /// reports the existing file.
    pub(super) fn discard(self) {
        let Some(path) = self.created else { return };
        // Another process may have replaced the file in the meantime.
        if is_same(self.out.get_ref(), &path) {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(unix)]
fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| {
        let kind = metadata.file_type();
        kind.is_fifo() || kind.is_char_device() || kind.is_socket()
    })
}

/// On Windows, the name alone makes a pipe or a device: `\\.\pipe\x`, and `NUL` or `COM1` in every folder and with every extension.
#[cfg(windows)]
fn is_special(path: &Path) -> bool {
    use std::path::{Component, Prefix};
    if let Some(Component::Prefix(prefix)) = path.components().next()
        && let Prefix::DeviceNS(device) = prefix.kind()
    {
        // `\\.\C:\x` is a file.
        return !device.as_encoded_bytes().ends_with(b":");
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_uppercase();
    let name = name.split(['.', ':']).next().unwrap_or_default().trim_end();
    let number = name.strip_prefix("COM").or_else(|| name.strip_prefix("LPT"));
    matches!(name, "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$")
        || number.is_some_and(|number| number.chars().count() == 1 && number.contains(|c| "0123456789¹²³".contains(c)))
}

#[cfg(unix)]
fn is_same(file: &File, path: &Utf8Path) -> bool {
    let ours = file.metadata().map(|file| (file.dev(), file.ino()));
    let existing = fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()));
    matches!((ours, existing), (Ok(ours), Ok(existing)) if ours == existing)
}

/// Safe Rust has no identity of a file on Windows. An empty file with the same times is ours, or nothing is lost with it. The time of
/// creation alone is not enough: a new file of the same name can get that of the old one.
#[cfg(windows)]
fn is_same(file: &File, path: &Utf8Path) -> bool {
    let of = |file: fs::Metadata| (file.is_file(), file.len(), file.creation_time(), file.last_write_time());
    let (ours, existing) = (file.metadata().map(of), fs::symlink_metadata(path).map(of));
    matches!((ours, existing), (Ok(ours), Ok(existing)) if ours == existing && ours.1 == 0)
}

fn already_exists(path: &Utf8Path) -> EventsFileError {
    match path.symlink_metadata() {
        Ok(existing) if existing.is_file() && existing.len() == 0 => EventsFileError::ExistsEmpty(path.to_owned()),
        _ => EventsFileError::Exists(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_log_is_never_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("logs");
        let put = |name: &str, names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            save_log(folder.as_os_str(), names.into_iter(), |file| file.write_all(name.as_bytes()))
        };
        assert!(put("first", &["a"]).unwrap().ends_with("logs/a"));
        assert!(put("second", &["a", "b"]).unwrap().ends_with("logs/b"));
        let error = put("third", &["a", "b"]).unwrap_err();
        assert!(error.to_string().contains("no free name"), "{error}");
        assert_eq!(std::fs::read_to_string(folder.join("a")).unwrap(), "first");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "nothing else is left");
    }

    #[cfg(windows)]
    #[test]
    fn names_of_pipes_and_devices_are_special() {
        for name in ["NUL", "nul", r"folder\NUL", "NUL.txt", "NUL ", "con:", "COM1", "lpt9.log", "COM²", r"\\.\pipe\x"]
        {
            assert!(is_special(Path::new(name)), "{name}");
        }
        for name in ["events", "NULL", r"NUL\events", "COM10", "COM", r"C:\events", r"\\.\C:\events", r"\\?\C:\events"]
        {
            assert!(!is_special(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn only_the_own_events_file_is_discarded() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events");
        EventsFile::open(&path).unwrap().discard();
        assert!(!path.exists());
        let events = EventsFile::open(&path).unwrap();
        #[expect(clippy::disallowed_methods, reason = "another process does not care for a crash")]
        std::fs::rename(&path, directory.path().join("moved")).unwrap();
        write::write(Utf8Path::from_path(&path).unwrap(), b"of another process", Durability::Cached).unwrap();
        events.discard();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "of another process");
    }

    #[test]
    fn names_follow_the_contract() {
        let now: Timestamp = "2024-01-15T10:30:00Z".parse().unwrap();
        let process = std::process::id();
        let names = |style, kind| names(style, now, kind).take(2).collect::<Vec<_>>();
        let contract = names(NameStyle::Contract, FailureKind::Failed);
        assert!(contract.iter().all(|name| name.starts_with("safe-run-20240115-103000-") && name.len() == 35));
        assert_ne!(contract[0], contract[1]);
        let start = format!("20240115T103000Z-pid{process}");
        assert_eq!(
            names(NameStyle::M0, FailureKind::Failed),
            [format!("{start}-FAIL.log"), format!("{start}-FAIL-1.log")]
        );
        assert_eq!(names(NameStyle::M0, FailureKind::Aborted)[0], format!("{start}-ABORTED.log"));
    }
}
