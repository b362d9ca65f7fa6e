//! A file of events: `schemas/safe-run-event.v1.schema.json`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Deserialize;

use super::{At, Source, Told, Wrong, written};
use crate::jsonl::EVENT_SCHEMA;

#[derive(Deserialize)]
struct Wire {
    schema_version: String,
    seq: u64,
    stream: String,
    at_us: u64,
    text: String,
    encoding: Option<String>,
    started_at: Option<Timestamp>,
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
        Some("base64") => written(&STANDARD.decode(&wire.text).map_err(|_| Wrong::Base64)?),
        Some(_) => return Err(Wrong::NoEvent),
        None if source == Source::Meta => wire.text,
        None => written(wire.text.as_bytes()),
    };
    let at = Some(Duration::from_micros(wire.at_us));
    Ok(Told { line, seq: wire.seq, source, text, started_at: wire.started_at, at })
}
