//! A file of events: `schemas/safe-run-event.v1.schema.json`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Deserialize;

use super::{At, EndDetails, Source, Told, Wrong};
use crate::jsonl::EVENT_SCHEMA;
use crate::log::text_of;

#[derive(Deserialize)]
struct Wire {
    schema_version: String,
    seq: u64,
    stream: String,
    at_us: u64,
    text: String,
    encoding: Option<String>,
    started_at: Option<Timestamp>,
    args: Option<Vec<Word>>,
    signal: Option<i32>,
    aborted_by: Option<i32>,
    left_behind: Option<u32>,
}

/// A word of the command; what it is stands in the text of the event, as in a log.
#[derive(Deserialize)]
#[serde(untagged)]
enum Word {
    Text(#[expect(dead_code, reason = "its type alone is held against the schema")] String),
    Bytes {
        #[expect(dead_code, reason = "its type alone is held against the schema")]
        base64: String,
    },
}

/// Every event of the file.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Told>, At> {
    let lines = bytes.strip_suffix(b"\n").unwrap_or(bytes).split(|byte| *byte == b'\n');
    (1..).zip(lines).map(|(line, text)| event(line, text).map_err(|wrong| (line, wrong))).collect()
}

fn event(line: usize, text: &[u8]) -> Result<Told, Wrong> {
    let wire: Wire = serde_json::from_slice(text).map_err(|error| Wrong::Json(error.to_string()))?;
    let source = Source::of(&wire.stream).filter(|_| wire.schema_version == EVENT_SCHEMA).ok_or(Wrong::NoEvent)?;
    let text = match wire.encoding.as_deref() {
        Some("base64") => text_of(&STANDARD.decode(&wire.text).map_err(|_| Wrong::Base64)?),
        Some(_) => return Err(Wrong::NoEvent),
        None if source == Source::Meta => wire.text,
        None => text_of(wire.text.as_bytes()),
    };
    if wire.seq == 1 {
        let has_words = wire.args.is_some_and(|args| !args.is_empty());
        let required = [("started_at", wire.started_at.is_some()), ("args", has_words)];
        required
            .into_iter()
            .try_for_each(|(field, is_there)| if is_there { Ok(()) } else { Err(Wrong::Missing(field)) })?;
    }
    let at = Some(Duration::from_micros(wire.at_us));
    let end = EndDetails { signal: wire.signal, aborted_by: wire.aborted_by, left_behind: wire.left_behind };
    Ok(Told { line, seq: wire.seq, source, text, started_at: wire.started_at, at, end })
}
