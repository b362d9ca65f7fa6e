//! The commands that `safe-run` recorded below an agent: one file of events each, in a folder of the session.

use camino::{Utf8DirEntry, Utf8Path, Utf8PathBuf};
use counterproof_safe_run::ParsedRecord;
use jiff::Timestamp;

use crate::event::{Command, CommandLine, EventBody, EventId, SessionEvent};

/// Reads the records in a folder. Files that are not records are left out.
pub fn recorded_commands(folder: &Utf8Path) -> Vec<(Utf8PathBuf, SessionEvent)> {
    let entries = folder.read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    let mut files: Vec<Utf8PathBuf> = entries.map(Utf8DirEntry::into_path).collect();
    // The names begin with the time of the end.
    files.retain(|path| path.extension() == Some("jsonl"));
    files.sort();
    let read = |path: Utf8PathBuf| {
        let record = ParsedRecord::read(&path).ok()?;
        let event = event(path.file_name()?, record);
        Some((path, event))
    };
    files.into_iter().filter_map(read).collect()
}

/// Removes records that are stored.
pub fn remove_recorded(files: &[Utf8PathBuf]) {
    for path in files {
        // A file that stays is the same record again, which is stored once.
        let _ = std::fs::remove_file(path);
    }
}

fn event(name: &str, record: ParsedRecord) -> SessionEvent {
    let (started, elapsed) = record.times.unzip();
    let text = |lines: Vec<String>| if lines.is_empty() { String::new() } else { lines.join("\n") + "\n" };
    let command = Command {
        command: Some(CommandLine::Shell(record.command)),
        cwd: None,
        exit_code: Some(i64::from(record.exit_code)),
        stdout: Some(text(record.stdout)),
        stderr: Some(text(record.stderr)),
        latency_ms: elapsed.map(|elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)),
        call_id: None,
        expected_failure: false,
    };
    let event = SessionEvent::captured(started.unwrap_or_else(Timestamp::now), EventBody::Command(command));
    SessionEvent { event_id: EventId::from_key(name), ..event }
}
