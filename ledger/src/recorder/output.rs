//! Where the events of a recorder go first: its spool file, and the file of events; and the text of an event.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::with_causes;
use counterproof_store::line_log::{LineReader, LineWriter, LogState};
use counterproof_store::write;
use jiff::Timestamp;
use serde::Serialize;

use crate::event::{AgentClient, EVENT_VERSION, EventBody, EventSource, ShimHealth, WorkingEnvironment, Workload};
use crate::spool::{SpoolError, SpoolFolder};
use crate::store::SourceId;

/// The files of a recorder. Only writes to these files happen under its lock.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) text: EventText,
    pub(super) spool: Option<OwnSpool>,
    pub(super) spool_path: Option<Utf8PathBuf>,
    pub(super) events: Option<EventsFile>,
    pub(super) limits: BacklogLimits,
    /// The number of the last event. An event that cannot be written has a number, so that its absence is noticed.
    pub(super) seq: u64,
    pub(super) recorded: u64,
    pub(super) losses: Losses,
    pub(super) has_ended: bool,
    pub(super) is_closed: bool,
    pub(super) drops_previews: bool,
    pub(super) dropped_previews: u64,
    pub(super) events_file_error: Option<RecordError>,
}

/// What was lost since the last event that was recorded.
#[derive(Debug, Default)]
pub(super) struct Losses {
    events: u64,
    reason: String,
    /// Bytes of events that another program has cut off.
    bytes: u64,
}

#[derive(Debug)]
pub struct RecorderSummary {
    pub events: u64,
    /// Number of events whose preview was dropped, because the store was too slow.
    pub dropped_previews: u64,
    /// Bytes of events that another program has cut off the spool file, and that no event states.
    pub cut_off_bytes: u64,
    /// Bytes of events that are not in the store yet. They are in the spool file, from which another process moves them.
    pub left_bytes: u64,
    /// The spool file with these events. `None` if there are none, or if it was removed and cannot be created again.
    pub left_in: Option<Utf8PathBuf>,
    pub store_error: Option<String>,
    /// The first error of the file of events, which does not stop the recording if there is a ledger.
    pub events_file_error: Option<RecordError>,
}

impl Output {
    pub(super) fn record(&mut self, mut body: EventBody) -> Result<(), RecordError> {
        // Nothing may follow the last event: readers take a run with an end for complete.
        if self.has_ended || self.is_closed {
            return Err(RecordError::Ended);
        }
        self.update_drops_previews();
        // Previews first, which are most of the bytes. Decisions are never dropped.
        let dropped = self.drops_previews && drop_previews(&mut body);
        let written = self.restore_spool().map_err(RecordError::from).and_then(|()| self.write(&body));
        if let Err(error) = written {
            self.seq += 1;
            // The lost event keeps its number: the gap shows readers that an event is missing.
            self.losses.add_event(&error);
            return Err(error);
        }
        self.losses = Losses::default();
        self.dropped_previews += u64::from(dropped);
        self.has_ended = matches!(body, EventBody::RunEnd { .. });
        Ok(())
    }

    fn write(&mut self, body: &EventBody) -> Result<(), RecordError> {
        let now = Timestamp::now();
        let mut lines = String::new();
        let mut count = 0;
        // In the same write, so that a reader who sees the event also sees what is missing before it.
        if let Some(health) = self.losses.health() {
            count += 1;
            lines += &self.text.line(self.seq + count, now, &serde_json::to_string(&EventBody::ShimHealth { health })?);
        }
        count += 1;
        lines += &self.text.line(self.seq + count, now, &serde_json::to_string(body)?);
        if let Some(spool) = &mut self.spool {
            // The spool first: it is the one that must not lose an event.
            spool.append(&lines)?;
        }
        if let Some(events) = &mut self.events {
            match events.append(&lines) {
                // The event is in the spool.
                Err(error) if self.spool.is_some() => drop(self.events_file_error.get_or_insert(error)),
                written => written?,
            }
        }
        self.seq += count;
        // The event about losses counts too: it is in the ledger.
        self.recorded += count;
        Ok(())
    }

    /// Creates the spool file again if it was removed.
    pub(super) fn restore_spool(&mut self) -> Result<(), SpoolError> {
        if let Some(spool) = &mut self.spool {
            self.losses.bytes += spool.restore()?;
        }
        Ok(())
    }

    /// Returns the number of bytes that the store does not have yet.
    pub(super) fn backlog(&self) -> u64 {
        self.spool.as_ref().map_or(0, |spool| spool.backlog().bytes())
    }

    fn update_drops_previews(&mut self) {
        let backlog = self.backlog();
        if backlog >= self.limits.drop_previews_at {
            self.drops_previews = true;
        } else if backlog < self.limits.record_previews_below {
            self.drops_previews = false;
        }
    }
}

impl Losses {
    fn add_event(&mut self, error: &RecordError) {
        // The first reason is the cause. The next ones usually follow from it.
        if self.events == 0 {
            self.reason = with_causes(error);
        }
        self.events += 1;
    }

    pub(super) fn cut_off_bytes(&self) -> u64 {
        self.bytes
    }

    fn health(&self) -> Option<ShimHealth> {
        let events =
            (self.events > 0).then(|| format!("events that were not recorded: {} ({})", self.events, self.reason));
        let bytes = (self.bytes > 0).then(|| {
            format!("bytes of events that were cut off the spool file before the ledger had them: {}", self.bytes)
        });
        let message: Vec<String> = events.into_iter().chain(bytes).collect();
        (!message.is_empty()).then(|| ShimHealth { code: "events_lost".to_owned(), message: message.join("; ") })
    }
}

/// How long a new recorder waits for a spool file that another process has locked.
const START_WAIT: Duration = Duration::from_secs(5);

/// How long an event waits for such a file, when the file of the recorder was removed.
const RESTORE_WAIT: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct OwnSpool {
    folder: SpoolFolder,
    source: SourceId,
    writer: LineWriter,
    drained: u64,
    generation: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Backlog {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Offsets of different generations are of different contents.
    pub(super) generation: u64,
}

impl OwnSpool {
    pub(super) fn create(folder: SpoolFolder, source: SourceId) -> Result<Self, SpoolError> {
        let writer = folder.lock(&source, START_WAIT)?;
        Ok(Self { folder, source, writer, drained: 0, generation: 0 })
    }

    /// Appends lines. The file must be intact: call [`Self::restore`] first.
    pub(super) fn append(&mut self, lines: &str) -> Result<(), SpoolError> {
        Ok(self.writer.append_unsynced(lines.as_bytes())?)
    }

    /// Makes the file one that survives the end of this process. Returns how many bytes of such events another program has cut off.
    pub(super) fn restore(&mut self) -> Result<u64, SpoolError> {
        match self.writer.state() {
            LogState::Intact => return Ok(0),
            // Another program has removed the file. The open one still has the events, and the lock of a removed file protects
            // nothing: a new file gets the events that the store does not have.
            LogState::Removed => {
                let mut new = self.folder.lock(&self.source, RESTORE_WAIT)?;
                if let Err(error) = self.writer.copy_to(&mut new, self.drained) {
                    // An unlocked file would look as if its process had ended.
                    new.remove()?;
                    return Err(error.into());
                }
                self.writer = new;
                self.drained = 0;
                self.generation += 1;
                return Ok(0);
            }
            LogState::Resized => {}
        }
        let before = self.writer.length();
        // Cut off by another program: what is left is whole lines, and the next event states how many bytes are missing.
        let left = self.writer.accept_size()?;
        let cut = before - left.max(self.drained);
        self.drained = self.drained.min(left);
        self.generation += 1;
        Ok(cut)
    }

    pub(super) fn backlog(&self) -> Backlog {
        Backlog { start: self.drained, end: self.writer.length(), generation: self.generation }
    }

    pub(super) fn read_from(&self, offset: u64) -> Result<LineReader, SpoolError> {
        Ok(self.writer.read_from(offset)?)
    }

    /// States that the store has the lines of a generation before an offset.
    pub(super) fn set_drained(&mut self, end: u64, generation: u64) {
        // The file may have been created again while the store was written. Its offsets mean other lines then.
        if self.generation == generation {
            self.drained = end;
        }
    }

    /// Empties the file if the store has all lines and they have at least this size.
    pub(super) fn clear_from(&mut self, size: u64) -> Result<(), SpoolError> {
        // Only a file of some size: emptying one after each event would cost more than the space.
        if self.drained >= size && self.backlog().bytes() == 0 {
            self.writer.clear()?;
            self.drained = 0;
            self.generation += 1;
        }
        Ok(())
    }

    pub(super) fn remove(self) -> Result<(), SpoolError> {
        Ok(self.writer.remove()?)
    }
}

impl Backlog {
    pub(super) fn bytes(self) -> u64 {
        self.end - self.start
    }
}

/// A file of events. Several processes can append to the same file.
#[derive(Debug)]
pub(super) struct EventsFile {
    path: Utf8PathBuf,
    file: File,
    is_torn: bool,
}

impl EventsFile {
    pub(super) fn open(path: &Utf8Path) -> Result<Self, RecordError> {
        let failed = |source: io::Error| RecordError::EventsFile { path: path.to_owned(), source };
        // Events have previews of arguments and results.
        write::create_private_file(path).map_err(|error| failed(error.source))?;
        #[expect(clippy::disallowed_methods, reason = "appends whole lines; the existing content stays")]
        let file = OpenOptions::new().append(true).open(path).map_err(failed)?;
        Ok(Self { path: path.to_owned(), file, is_torn: false })
    }

    /// Appends a line with its newline, with one write.
    pub(super) fn append(&mut self, line: &str) -> Result<(), RecordError> {
        let written = if self.is_torn {
            // The rest of a line must not become a part of the next one.
            self.file.write_all(format!("\n{line}").as_bytes())
        } else {
            self.file.write_all(line.as_bytes())
        };
        self.is_torn = written.is_err();
        written.map_err(|source| RecordError::EventsFile { path: self.path.clone(), source })
    }
}

/// What all events of a recorder state, in the order of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EventOrigin {
    #[serde(skip)]
    pub run_id: String,
    pub agent_id: String,
    pub client: AgentClient,
    pub env: WorkingEnvironment,
    pub source: EventSource,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
}

/// The size of the events that the store does not have yet, at which previews are dropped and recorded again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BacklogLimits {
    /// Previews are dropped from this number of bytes on.
    pub drop_previews_at: u64,
    /// Previews are recorded again below this number of bytes.
    pub record_previews_below: u64,
}

impl Default for BacklogLimits {
    /// 64 MiB, which 2,000 calls with the largest previews fill, and 100,000 events without previews. A ledger that accepts events
    /// again needs a few seconds for them.
    fn default() -> Self {
        // Two limits, so that previews are not switched on and off with each event.
        Self { drop_previews_at: 64 << 20, record_previews_below: 32 << 20 }
    }
}

/// A recorder that cannot start, or an event that cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("failed to record the event")]
    Spool(#[from] SpoolError),
    #[error("failed to write the event to `{path}`")]
    EventsFile { path: Utf8PathBuf, source: std::io::Error },
    #[error("`{field}` must have 1 to 256 bytes and no NUL character")]
    Id { field: &'static str },
    #[error("failed to serialise the event")]
    Serialise(#[from] serde_json::Error),
    #[error("the run has ended; no event is recorded after its end")]
    Ended,
    #[error("failed to start a thread")]
    Thread(#[source] std::io::Error),
}

#[derive(Debug)]
pub(super) struct EventText {
    run_id: String,
    rest: String,
}

impl EventText {
    pub(super) fn new(origin: &EventOrigin) -> Result<Self, serde_json::Error> {
        let rest = serde_json::to_string(origin)?;
        let run_id = serde_json::to_string(&origin.run_id)?;
        // Without the braces: the fields of the event follow in the same object.
        Ok(Self { run_id, rest: rest[1..rest.len() - 1].to_owned() })
    }

    /// Returns the line of an event, with its newline. The body is an object with the field `type`.
    pub(super) fn line(&self, seq: u64, ts: Timestamp, body: &str) -> String {
        let Self { run_id, rest } = self;
        let body = &body[1..];
        // Joined as text: the envelope is the same for all events of a source, and an agent waits for each of them.
        let line =
            format!("{{\"v\":\"{EVENT_VERSION}\",\"ts\":\"{ts}\",\"run_id\":{run_id},\"seq\":{seq},{rest},{body}\n");
        if line.contains(LINE_SEPARATORS) { escape_line_separators(&line) } else { line }
    }
}

/// Characters beyond ASCII that end a line for some readers, such as `splitlines` of Python. JSON permits them in strings.
const LINE_SEPARATORS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

/// Escapes separators of lines in JSON, where they can only occur in strings.
fn escape_line_separators(json: &str) -> String {
    json.chars().fold(String::with_capacity(json.len() + 8), |mut escaped, character| {
        if LINE_SEPARATORS.contains(&character) {
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        } else {
            escaped.push(character);
        }
        escaped
    })
}

pub(super) fn drop_previews(body: &mut EventBody) -> bool {
    match body {
        EventBody::ToolCallStart { call } if call.preview.args_preview.is_some() => {
            call.preview.args_preview = None;
            // Readers must see that the preview is missing, and not take the call for one without arguments.
            call.preview.truncated = true;
            true
        }
        EventBody::ToolCallEnd(end) if end.preview.result_preview.is_some() => {
            end.preview.result_preview = None;
            end.preview.truncated = true;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_for_every_reader() {
        let text = EventText { run_id: "\"r\"".to_owned(), rest: "\"agent_id\":\"a\"".to_owned() };
        let line = text.line(1, Timestamp::UNIX_EPOCH, "{\"text\":\"a\u{2028}b\u{2029}c\u{85}d\u{e9}\"}");
        assert!(line.ends_with("{\"text\":\"a\\u2028b\\u2029c\\u0085d\u{e9}\"}\n".trim_start_matches('{')), "{line}");
        let event: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(event["text"], "a\u{2028}b\u{2029}c\u{85}d\u{e9}");
    }
}
