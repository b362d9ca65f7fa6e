//! Records as a run folder: each becomes a case, so that two recordings of a command can be compared and read in the report.
//!
//! Streams are told apart, for the order between them is no promise; it stands in the record, which is kept byte for byte.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{
    Answer, AssetKind, Attempt, AttemptOutcome, Case, CaseId, Content, ContentType, Event, EventBody, Extra,
    FinalOutput, FinalOutputEvent, Millis, NameError, Outcome, Run, RunId, RunSchema, Sha256Digest, Side, Stats,
    ToolCall, ToolResult, ToolStatus,
};
use counterproof_store::write::{self, TEMPORARY_PREFIX, WriteError};
use counterproof_store::{CreateError, RunWriter};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use crate::parse::{EndDetails, RecordKind, Recorded, RereadError};

/// The longest payload that stands in the artifact, as compact JSON in bytes; a longer one becomes an asset.
const INLINE: usize = 64 * 1024;

/// How much of a longer one stands there too, in characters.
const SUMMARY_CHARS: usize = 240;

/// How much of a command is the title of its case, in characters.
const TITLE_CHARS: usize = 200;

/// The one call of a case.
const CALL: &str = "command";

/// What the tool and the workflow of every case are called.
const TOOL: &str = "safe-run";

/// A record of one command: its log, its file of events, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The log, or the file of events.
    pub record: Utf8PathBuf,
    /// The file of events beside a log.
    pub events: Option<Utf8PathBuf>,
    /// What the case shall be called; otherwise its id is made of the command.
    pub case_id: Option<CaseId>,
}

/// Where the run goes and what it is called.
#[derive(Debug, Clone)]
pub struct Destination<'a> {
    /// The folder of all runs.
    pub out: &'a Utf8Path,
    /// The side.
    pub side: Side,
    /// The run's name.
    pub run_id: &'a RunId,
    /// The program that writes it.
    pub writer: String,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The run folder.
    pub folder: Utf8PathBuf,
    /// Each case, its command and its exit code.
    pub cases: Vec<(CaseId, String, i32)>,
}

/// What could not be exported. Nothing is left of a run then, and the records stay as they are.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A record could not be read back.
    #[error(transparent)]
    Reread(#[from] RereadError),
    /// A log and a file of events are not those of one command.
    #[error("`{record}` and `{events}` do not tell the same: {what}")]
    Differ {
        /// The log.
        record: Utf8PathBuf,
        /// The file of events.
        events: Utf8PathBuf,
        /// What they differ in.
        what: &'static str,
    },
    /// Two cases cannot have one name.
    #[error("case id `{0}` is there twice")]
    Twice(CaseId),
    /// A name of a case that was made is none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The run folder could not be made.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// A record with all that is kept of it.
struct Piece {
    case_id: CaseId,
    recorded: Recorded,
    /// Of a record without times, when its file was written.
    written_at: Timestamp,
    /// The bytes that were read, by the ends of their files' names.
    files: Vec<(&'static str, Vec<u8>)>,
}

/// Makes a run folder of records: it is there whole, or not at all.
pub fn export(sources: &[Source], destination: &Destination<'_>) -> Result<Exported, ExportError> {
    let mut taken = BTreeSet::new();
    let pieces = sources.iter().map(|source| read(source, &mut taken)).collect::<Result<Vec<_>, _>>()?;
    let parent = destination.out.join(destination.side.as_str());
    let folder = parent.join(destination.run_id.as_str());
    if is_taken(&folder) {
        return Err(CreateError::Exists(folder).into());
    }
    write::create_folder(&parent)?;
    // Nobody takes a folder with such a name for a run, so one that stays behind after a crash does no harm.
    let temporary = parent.join(format!("{TEMPORARY_PREFIX}export-{}-{}", destination.run_id, std::process::id()));
    let writer = RunWriter::create_at(temporary.clone(), destination.side)?;
    let filled = fill(&writer, &pieces, sources, destination);
    drop(writer);
    if let Err(error) = filled.map_err(ExportError::from).and_then(|()| publish(&temporary, &folder)) {
        // The cause is told; what of the half folder cannot be removed is not worth another message.
        let _ = fs::remove_dir_all(&temporary);
        return Err(error);
    }
    let cases = pieces.into_iter().map(|piece| (piece.case_id, piece.recorded.command, piece.recorded.exit_code));
    Ok(Exported { folder, cases: cases.collect() })
}

fn is_taken(folder: &Utf8Path) -> bool {
    fs::symlink_metadata(folder).is_ok()
}

/// Gives the run its name, unless somebody else has taken it since we looked.
fn publish(temporary: &Utf8Path, folder: &Utf8Path) -> Result<(), ExportError> {
    write::publish_folder(temporary, folder).map_err(|error| {
        // A name that is ours by now has a folder on it too, but then ours has left its own.
        let is_lost = is_taken(folder) && is_taken(temporary);
        if is_lost { CreateError::Exists(folder.to_owned()).into() } else { error.into() }
    })
}

fn read(source: &Source, taken: &mut BTreeSet<String>) -> Result<Piece, ExportError> {
    // Read once: of a pipe there is no second time, and of a file that is written meanwhile it would be another text.
    let (mut recorded, bytes) = Recorded::read_with_bytes(&source.record)?;
    let name = match recorded.kind {
        RecordKind::Log => "log",
        RecordKind::Events => "events",
    };
    let mut files = vec![(name, bytes)];
    if let Some(events) = &source.events {
        let (told, bytes) = Recorded::read_with_bytes(events)?;
        if let Some(what) = difference(&recorded, &told) {
            return Err(ExportError::Differ { record: source.record.clone(), events: events.clone(), what });
        }
        (recorded.times, recorded.end) = (told.times, told.end);
        files.push(("events", bytes));
    }
    let case_id = case_id(source.case_id.as_ref(), &recorded.command, taken)?;
    let written_at = written_at(&source.record);
    let written_at = written_at.map_err(|error| RereadError::Read { path: source.record.clone(), source: error })?;
    Ok(Piece { case_id, recorded, written_at, files })
}

/// What a log and a file of events do not agree on.
fn difference(log: &Recorded, events: &Recorded) -> Option<&'static str> {
    [
        (log.kind != RecordKind::Log, "the first is no log"),
        (events.kind != RecordKind::Events, "the second is no file of events"),
        (log.command != events.command, "the command"),
        (log.exit_code != events.exit_code, "the exit code"),
        (log.stdout != events.stdout, "standard output"),
        (log.stderr != events.stderr, "standard error"),
        (log.notes != events.notes, "the notes of the recorder"),
    ]
    .into_iter()
    .find_map(|(differs, what)| differs.then_some(what))
}

/// When a log was written: its name says so, and where it has another name its file.
fn written_at(path: &Utf8Path) -> io::Result<Timestamp> {
    let name = path.file_name().unwrap_or_default();
    let time = |format: &str, text: Option<&str>| DateTime::strptime(format, text?).ok();
    let contract = name.strip_prefix("safe-run-").and_then(|rest| rest.get(..15));
    let named = time("%Y%m%d-%H%M%S", contract).or_else(|| time("%Y%m%dT%H%M%SZ", name.get(..16)));
    match named.and_then(|time| time.to_zoned(TimeZone::UTC).ok()) {
        Some(time) => Ok(time.timestamp()),
        None => Timestamp::try_from(fs::metadata(path)?.modified()?).map_err(io::Error::other),
    }
}

/// The id of a command: its program and a digest, the same for the same command, with a number for one that comes again.
fn case_id(given: Option<&CaseId>, command: &str, taken: &mut BTreeSet<String>) -> Result<CaseId, ExportError> {
    if let Some(id) = given {
        return if taken.insert(id.collision_key()) { Ok(id.clone()) } else { Err(ExportError::Twice(id.clone())) };
    }
    let program = command.split(' ').next().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    let plain: String =
        program.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_').take(40).collect();
    let stem = format!("cmd-{plain}-{}", &Sha256Digest::of(command.as_bytes()).short()[..8]);
    let numbered = (2_u64..).map(|number| format!("{stem}-{number}"));
    let mut names = std::iter::once(stem.clone()).chain(numbered);
    let free = names.find(|name| taken.insert(name.to_ascii_lowercase())).unwrap_or_default();
    Ok(free.parse::<CaseId>()?)
}

fn fill(
    writer: &RunWriter,
    pieces: &[Piece],
    sources: &[Source],
    destination: &Destination<'_>,
) -> Result<(), WriteError> {
    for piece in pieces {
        for (name, bytes) in &piece.files {
            let name = format!("{}.{name}.txt", piece.case_id);
            writer.write_asset(&name, AssetKind::Other, Some(&piece.case_id), bytes)?;
        }
        writer.write_case(&case(piece, writer)?)?;
    }
    let started = pieces.iter().map(Piece::started_at).min().unwrap_or_default();
    writer.write_manifest(&started.to_string())?;
    writer.write_run(&run(pieces, sources, destination, started))
}

fn run(pieces: &[Piece], sources: &[Source], destination: &Destination<'_>, started: Timestamp) -> Run {
    // The name alone: where it lies on this machine is nobody's business.
    let record = sources.first().and_then(|source| source.record.file_name()).unwrap_or_default();
    let total = Some(pieces.len().into());
    let failed = Some(0_u64.into());
    Run {
        schema_version: RunSchema::V1,
        run_id: destination.run_id.clone(),
        version: destination.side,
        generated_at: started.to_string(),
        base_url: TOOL.to_owned(),
        cases_path: record.to_owned(),
        out_dir: "../..".to_owned(),
        selected_case_ids: pieces.iter().map(|piece| piece.case_id.clone()).collect(),
        runner_version: destination.writer.clone(),
        repo_commit: None,
        dirty: None,
        node_version: None,
        timeout_ms: None,
        retries: None,
        concurrency: None,
        retry_policy: None,
        limits: None,
        case_digests: None,
        cases_digest: None,
        shard: None,
        group_id: None,
        repeat: None,
        repeats: None,
        until_decided: None,
        accepted: None,
        stats: Some(Stats {
            cases_total: total,
            cases_completed: total,
            cases_failed: failed,
            duration_ms: None,
            extra: Extra::new(),
        }),
        extra: Extra::new(),
    }
}

impl Piece {
    fn started_at(&self) -> Timestamp {
        self.recorded.times.map_or(self.written_at, |(started, _)| started)
    }

    fn elapsed(&self) -> Duration {
        self.recorded.times.map_or(Duration::ZERO, |(_, elapsed)| elapsed)
    }
}

/// The artifact: the command is a call of a tool, and what it printed and its exit code are the result.
fn case(piece: &Piece, writer: &RunWriter) -> Result<Case, WriteError> {
    let Piece { case_id, recorded, .. } = piece;
    let start = u64::try_from(piece.started_at().as_millisecond()).unwrap_or_default();
    let latency = u64::try_from(piece.elapsed().as_millis()).unwrap_or(u64::MAX);
    let call = ToolCall {
        call_id: CALL.to_owned(),
        action_id: None,
        tool: TOOL.to_owned(),
        args: object(json!({ "command": recorded.command })),
        risk_level: None,
        risk_tags: None,
        extra: Extra::new(),
    };
    let output = Content::Json(object(json!({ "exit_code": recorded.exit_code })));
    let events = [
        (start, EventBody::ToolCall(call)),
        (start.saturating_add(latency), EventBody::ToolResult(result(piece, latency.into(), writer)?)),
        (
            start.saturating_add(latency),
            EventBody::FinalOutput(FinalOutputEvent {
                content_type: ContentType::Json,
                content: output.clone(),
                extra: Extra::new(),
            }),
        ),
    ];
    let attempt = recorded.times.map(|(started, _)| Attempt {
        attempt: 1_u64.into(),
        started_at: started.to_string(),
        latency_ms: Some(latency.into()),
        outcome: AttemptOutcome::Ok,
        error_class: None,
        extra: Extra::new(),
    });
    Ok(Case {
        case_id: case_id.clone(),
        version: writer.side(),
        workflow_id: Some(TOOL.to_owned()),
        attempts: attempt.map(|attempt| vec![attempt]),
        outcome: Outcome::Ok(Answer {
            proposed_actions: Vec::new(),
            events: events.into_iter().map(|(ts, body)| Event { ts: ts.into(), body }).collect(),
            final_output: FinalOutput {
                content_type: ContentType::Json,
                output_hash: Some(output.short_hash()),
                content: output,
                redactions_applied: None,
                extra: Extra::new(),
            },
        }),
        extra: object(json!({ "title": title(&recorded.command) })),
    })
}

/// What the command printed and its exit code: in the artifact, or beside it where it is long.
fn result(piece: &Piece, latency_ms: Millis, writer: &RunWriter) -> Result<ToolResult, WriteError> {
    let Piece { case_id, recorded, .. } = piece;
    let mut payload = object(json!({
        "exit_code": recorded.exit_code,
        "stdout": text(&recorded.stdout),
        "stderr": text(&recorded.stderr),
    }));
    let EndDetails { signal, aborted_by, left_behind } = recorded.end;
    let details = [
        ("signal", signal.map(Value::from)),
        ("aborted_by", aborted_by.map(Value::from)),
        ("left_behind", left_behind.map(Value::from)),
    ];
    payload.extend(details.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    if !recorded.notes.is_empty() {
        payload.insert("notes".to_owned(), json!(recorded.notes));
    }
    let status = if recorded.exit_code == 0 { ToolStatus::Ok } else { ToolStatus::Error };
    let result = |summary, asset: Option<counterproof_artifact::ManifestItem>| ToolResult {
        call_id: CALL.to_owned(),
        action_id: None,
        status,
        latency_ms,
        payload_summary: Some(summary),
        payload_asset_href: asset.as_ref().map(|asset| asset.href.clone()),
        payload_asset_sha256: asset.and_then(|asset| asset.sha256),
        extra: Extra::new(),
    };
    let compact = Value::Object(payload.clone()).to_string();
    if compact.len() <= INLINE {
        return Ok(result(Content::Json(payload), None));
    }
    let name = format!("full_payload_{}_{case_id}.json", writer.side());
    let whole = format!("{:#}\n", Value::Object(payload));
    let asset = writer.write_asset(&name, AssetKind::FullPayload, Some(case_id), whole.as_bytes())?;
    let summary = compact.chars().take(SUMMARY_CHARS).chain(['…']).collect();
    Ok(result(Content::Text(summary), Some(asset)))
}

/// A stream as a text. Every line ends in it, so that an empty line is told from none.
fn text(lines: &[String]) -> String {
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// What the case is about: the command, as far as a title goes.
fn title(command: &str) -> String {
    let mut characters = command.chars();
    let mut title: String = characters.by_ref().take(TITLE_CHARS).collect();
    title.extend(characters.next().map(|_| '…'));
    title
}

/// The fields of what is written as an object.
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}

#[cfg(test)]
mod tests {
    use counterproof_store::write::Durability;

    use super::*;

    #[test]
    fn a_run_that_came_to_be_meanwhile_is_there_already_and_stays_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(place.path()).unwrap();
        for (folder, ours) in [("theirs", "ours"), ("file", "ours")] {
            let (folder, ours) = (root.join(folder), root.join(ours));
            write::create_folder(&ours).unwrap();
            match folder.file_name() {
                Some("file") => write::write(&folder, b"mine", Durability::Cached).unwrap(),
                _ => write::create_folder(&folder.join("assets")).unwrap(),
            }
            let lost = publish(&ours, &folder);
            assert!(
                matches!(&lost, Err(ExportError::Create(CreateError::Exists(path))) if *path == folder),
                "{lost:?}"
            );
        }
        assert!(root.join("theirs/assets").is_dir() && root.join("file").is_file());
        let gone = publish(&root.join("nothing"), &root.join("new"));
        assert!(matches!(gone, Err(ExportError::Write(_))), "{gone:?}");
    }
}
