//! Writes the events of a record as JSON lines: `schemas/safe-run-event.v1.schema.json`.

use std::io::{self, Read, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::Record;
use super::command_record::{Event, EventKind};
use crate::capture::{Line, LineEnd};

pub const EVENT_SCHEMA: &str = "safe-run-event.v1";

pub const EVENT_SCHEMA_SOURCE: &str = include_str!("../../../schemas/safe-run-event.v1.schema.json");

#[derive(Serialize)]
struct Head<'a> {
    schema_version: &'a str,
    seq: u64,
    stream: &'a str,
    at_us: u128,
}

#[derive(Serialize)]
struct Start<'a> {
    started_at: String,
    args: Vec<Argument<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Argument<'a> {
    Text(&'a str),
    Bytes { base64: String },
}

#[derive(Serialize)]
struct End {
    exit_code: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aborted_by: Option<i32>,
    #[serde(skip_serializing_if = "is_zero")]
    left_behind: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Record {
    /// Writes each event as one line of JSON.
    pub fn write_json_lines(&self, out: &mut impl Write) -> io::Result<()> {
        self.for_each_event(|event| self.write_json_line(&event, out))
    }

    fn write_json_line(&self, event: &Event<'_>, out: &mut impl Write) -> io::Result<()> {
        let stream = match &event.kind {
            EventKind::Line(stream, _) => stream.name(),
            _ => "META",
        };
        let at_us = event.at.as_micros();
        // The head is written first and left open, because a line can be larger than memory and is streamed into the
        // object.
        write_fields(&Head { schema_version: EVENT_SCHEMA, seq: event.seq, stream, at_us }, b"", out)?;
        match &event.kind {
            EventKind::Line(_, line) => write_line(line, out)?,
            meta => write_fields(&serde_json::json!({ "text": self.meta(meta) }), b",", out)?,
        }
        match event.kind {
            EventKind::Started => write_fields(&self.start(), b",", out)?,
            EventKind::Exited(exit_code) => write_fields(&self.end(exit_code), b",", out)?,
            EventKind::Line(..) | EventKind::Incomplete(_) => {}
        }
        out.write_all(b"}\n")
    }

    fn start(&self) -> Start<'_> {
        let args = self.command.iter().map(|word| match word.to_str() {
            Some(text) => Argument::Text(text),
            None => Argument::Bytes { base64: STANDARD.encode(word.as_encoded_bytes()) },
        });
        Start { started_at: self.started_at.to_string(), args: args.collect() }
    }

    fn end(&self, exit_code: i32) -> End {
        End { exit_code, signal: self.ending.signal(), aborted_by: self.aborted_by, left_behind: self.left_behind }
    }
}

/// Writes the fields of an object without the closing brace. With a non-empty `separator`, the fields continue an object that
/// is already open, and the opening brace is omitted too.
fn write_fields(fields: &impl Serialize, separator: &[u8], out: &mut impl Write) -> io::Result<()> {
    let text = serde_json::to_vec(fields)?;
    let from = usize::from(!separator.is_empty());
    out.write_all(separator)?;
    out.write_all(&text[from..text.len() - 1])
}

fn write_line(line: &Line<'_>, out: &mut impl Write) -> io::Result<()> {
    if line.is_utf8()? {
        out.write_all(b",\"text\":\"")?;
        write_escaped(line.reader(), out)?;
    } else {
        out.write_all(b",\"encoding\":\"base64\",\"text\":\"")?;
        line.write_base64(out)?;
    }
    out.write_all(b"\"")?;
    match line.end {
        LineEnd::Lf => Ok(()),
        LineEnd::CrLf => out.write_all(b",\"line_end\":\"crlf\""),
        LineEnd::EndOfStream => out.write_all(b",\"line_end\":\"none\""),
    }
}

/// Writes UTF-8 of any length as the content of a JSON string, without the quotes.
fn write_escaped(mut text: impl Read, out: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = text.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        let mut done = 0;
        // Only single-byte characters are escaped, so a block can end within a character.
        for (index, byte) in buffer[..read].iter().enumerate() {
            let escaped = match byte {
                b'"' => "\\\"".to_owned(),
                b'\\' => "\\\\".to_owned(),
                0..=0x1f | 0x7f => format!("\\u{byte:04x}"),
                _ => continue,
            };
            out.write_all(&buffer[done..index])?;
            out.write_all(escaped.as_bytes())?;
            done = index + 1;
        }
        out.write_all(&buffer[done..read])?;
    }
}
