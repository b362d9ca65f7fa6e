//! Commands that safe-run recorded. Each record becomes a case, so that two recordings of a command can be compared.
//!
//! The two streams are separate texts in the case, because their relative order is not guaranteed. The original order is in the
//! record itself, which is stored byte for byte as an asset.

use std::fs;
use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{
    AssetKind, Case, CaseId, CaseIds, Content, EventBody, Extra, Millis, NameError, Side, ToolResult, ToolStatus,
    derived_id,
};
use counterproof_safe_run::{EndDetails, ParsedRecord, ReadError, RecordFormat};
use counterproof_store::CreateError;
use counterproof_store::write::WriteError;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::run_builder::{Destination, RunBuilder, RunFacts, answer, attempt, millis, object, tool_call, tool_result};

/// Length of a case title, in characters.
const TITLE_CHARS: usize = 200;

const CALL_ID: &str = "command";

/// The name of the tool and of the workflow in every case.
const TOOL: &str = "safe-run";

/// Records that could not be exported. No run folder is left, and the records are unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A log and a file of events are not records of the same execution.
    #[error("`{record}` and `{events}` are not records of the same execution: {difference}")]
    Mismatch { record: Utf8PathBuf, events: Utf8PathBuf, difference: &'static str },
    #[error("duplicate case id `{0}`")]
    DuplicateCaseId(CaseId),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub record: Utf8PathBuf,
    /// The file of events that belongs to a log.
    pub events: Option<Utf8PathBuf>,
    /// The case id; `None` derives it from the command.
    pub case_id: Option<CaseId>,
}

struct RecordedCase {
    case_id: CaseId,
    record: ParsedRecord,
    /// When the record was written; used if the record has no times.
    written_at: Timestamp,
    /// The bytes of each file, with the name of its kind: `log` or `events`.
    files: Vec<(&'static str, Vec<u8>)>,
}

impl RecordedCase {
    fn read(source: &Source, case_ids: &mut CaseIds) -> Result<Self, ExportError> {
        // Each file is read only once: a pipe has no second read, and a file could change between two reads.
        let (mut record, bytes) = ParsedRecord::read_with_bytes(&source.record)?;
        let name = match record.format {
            RecordFormat::Log => "log",
            RecordFormat::JsonLines => "events",
        };
        let mut files = vec![(name, bytes)];
        if let Some(events) = &source.events {
            let (from_events, bytes) = ParsedRecord::read_with_bytes(events)?;
            if let Some(difference) = difference(&record, &from_events) {
                return Err(ExportError::Mismatch {
                    record: source.record.clone(),
                    events: events.clone(),
                    difference,
                });
            }
            // A log has no times, and the events have no sections to check: together they are complete.
            (record.times, record.end) = (from_events.times, from_events.end);
            files.push(("events", bytes));
        }
        let case_id = match &source.case_id {
            // Reserved in the order of the arguments, so that a derived id never takes one that a user named before.
            Some(id) if !case_ids.reserve(id) => return Err(ExportError::DuplicateCaseId(id.clone())),
            Some(id) => id.clone(),
            None => derive_case_id(case_ids, &record.command)?,
        };
        let written_at = written_at(&source.record)
            .map_err(|error| ReadError::Read { path: source.record.clone(), source: error })?;
        Ok(Self { case_id, record, written_at, files })
    }

    fn started_at(&self) -> Timestamp {
        self.record.times.map_or(self.written_at, |(started, _)| started)
    }

    fn elapsed(&self) -> Duration {
        self.record.times.map_or(Duration::ZERO, |(_, elapsed)| elapsed)
    }
}

fn difference(log: &ParsedRecord, events: &ParsedRecord) -> Option<&'static str> {
    [
        (log.format != RecordFormat::Log, "the first file is not a log"),
        (events.format != RecordFormat::JsonLines, "the second file is not a file of events"),
        // The most telling difference first; the others usually follow from it.
        (log.command != events.command, "the command differs"),
        (log.exit_code != events.exit_code, "the exit code differs"),
        (log.stdout != events.stdout, "standard output differs"),
        (log.stderr != events.stderr, "standard error differs"),
        (log.notes != events.notes, "the messages of the recorder differ"),
    ]
    .into_iter()
    .find_map(|(differs, what)| differs.then_some(what))
}

/// Returns when a log was written: the time in its name, or else the modification time of the file.
fn written_at(path: &Utf8Path) -> io::Result<Timestamp> {
    let name = path.file_name().unwrap_or_default();
    let parse = |format: &str, text: Option<&str>| DateTime::strptime(format, text?).ok();
    let default_style = name.strip_prefix("safe-run-").and_then(|rest| rest.get(..15));
    let time = parse("%Y%m%d-%H%M%S", default_style).or_else(|| parse("%Y%m%dT%H%M%SZ", name.get(..16)));
    // The name survives a copy of the file, which changes its modification time.
    match time.and_then(|time| time.to_zoned(TimeZone::UTC).ok()) {
        Some(time) => Ok(time.timestamp()),
        None => Timestamp::try_from(fs::metadata(path)?.modified()?).map_err(io::Error::other),
    }
}

/// Derives an id from the program and a digest of the command. The same command always gets the same id; a further occurrence in
/// the same run gets a number.
fn derive_case_id(ids: &mut CaseIds, command: &str) -> Result<CaseId, NameError> {
    let program = command.split(' ').next().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    ids.reserve_numbered(&derived_id("cmd", program, command))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    pub folder: Utf8PathBuf,
    /// Each case id with its command and exit code.
    pub cases: Vec<(CaseId, String, i32)>,
}

/// Exports records as a run folder. The folder appears complete or not at all.
pub fn export(sources: &[Source], destination: &Destination<'_>) -> Result<Exported, ExportError> {
    // All records are read first: an incomplete one is found before anything is written.
    let mut case_ids = CaseIds::default();
    let cases = sources.iter().map(|source| RecordedCase::read(source, &mut case_ids));
    let cases = cases.collect::<Result<Vec<_>, _>>()?;
    let run = RunBuilder::staged(destination)?;
    for recorded in &cases {
        // Text files, so that a browser shows them instead of downloading them.
        for (name, bytes) in &recorded.files {
            let name = format!("{}.{name}.txt", recorded.case_id);
            run.writer().write_asset(&name, AssetKind::Other, Some(&recorded.case_id), bytes)?;
        }
        run.add_with_assets(case(recorded, destination.side))?;
    }
    // Only the file name: the path would disclose the layout of this machine.
    let record = sources.first().and_then(|source| source.record.file_name()).unwrap_or_default();
    let folder = run.finish(RunFacts {
        producer: TOOL,
        cases_path: record.to_owned(),
        started_at: cases.iter().map(RecordedCase::started_at).min().unwrap_or_default(),
        stats: Extra::new(),
        extra: Extra::new(),
    })?;
    let cases = cases.into_iter().map(|case| (case.case_id, case.record.command, case.record.exit_code));
    Ok(Exported { folder, cases: cases.collect() })
}

fn case(case: &RecordedCase, side: Side) -> Case {
    let RecordedCase { case_id, record, .. } = case;
    let start = millis(case.started_at());
    let latency = u64::try_from(case.elapsed().as_millis()).unwrap_or(u64::MAX);
    let end = start.saturating_add(latency);
    let call = tool_call(CALL_ID.to_owned(), TOOL.to_owned(), object(json!({ "command": record.command })));
    let steps = vec![(start, EventBody::ToolCall(call)), (end, EventBody::ToolResult(result(record, latency.into())))];
    let outcome = answer(steps, end, object(json!({ "exit_code": record.exit_code })));
    Case {
        case_id: case_id.clone(),
        version: side,
        workflow_id: Some(TOOL.to_owned()),
        attempts: record.times.map(|(started, _)| vec![attempt(started, Some(latency), &outcome)]),
        usage: None,
        outcome,
        extra: object(json!({ "title": title(&record.command) })),
    }
}

fn result(record: &ParsedRecord, latency: Millis) -> ToolResult {
    let mut payload = object(json!({
        "exit_code": record.exit_code,
        "stdout": text(&record.stdout),
        "stderr": text(&record.stderr),
    }));
    let EndDetails { signal, aborted_by, left_behind } = record.end;
    let details = [
        ("signal", signal.map(Value::from)),
        ("aborted_by", aborted_by.map(Value::from)),
        ("left_behind", left_behind.map(Value::from)),
    ];
    payload.extend(details.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    if !record.notes.is_empty() {
        payload.insert("notes".to_owned(), json!(record.notes));
    }
    // The exit code is the only judgement that a record has.
    let status = if record.exit_code == 0 { ToolStatus::Ok } else { ToolStatus::Error };
    tool_result(CALL_ID.to_owned(), status, latency, Some(Content::Json(payload)))
}

fn text(lines: &[String]) -> String {
    // Each line gets a newline, so that an empty line differs from no line.
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// Returns the title of the case: the command, shortened to [`TITLE_CHARS`].
fn title(command: &str) -> String {
    let mut characters = command.chars();
    let mut title: String = characters.by_ref().take(TITLE_CHARS).collect();
    // A mark only if something was cut.
    title.extend(characters.next().map(|_| '…'));
    title
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_command_gets_the_same_id_and_a_repetition_gets_a_number() {
        let derive = |ids: &mut CaseIds, command| derive_case_id(ids, command).unwrap().to_string();
        let (mut ids, mut others) = (CaseIds::default(), CaseIds::default());
        let first = derive(&mut ids, "/usr/bin/make test");
        assert!(first.starts_with("cmd-make-"), "{first}");
        assert_eq!(derive(&mut others, "/usr/bin/make test"), first);
        assert_eq!(derive(&mut ids, "/usr/bin/make test"), format!("{first}-2"));
        assert_ne!(derive(&mut ids, "/usr/bin/make all"), first);
    }
}
