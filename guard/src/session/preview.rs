//! Previews of arguments and results: redacted, and cut to a fixed size.

use counterproof_redaction::{Applied, Redactor};

/// Largest preview in bytes.
pub const MAX_PREVIEW_BYTES: usize = 16 * 1024;

/// The preview of a payload that is too large to be inspected.
pub const TRUNCATED: &str = "[TRUNCATED]";

/// Longest name of a tool in events, in bytes: that of the ledger's tables.
const MAX_NAME_BYTES: usize = 512;

/// Longest message of an error in bytes.
const MAX_MESSAGE_BYTES: usize = 500;

/// A text that is safe to store.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Preview {
    /// The text.
    pub(super) text: String,
    /// True if the text is not whole.
    pub(super) is_truncated: bool,
}

/// Redacts a payload and cuts it.
pub(super) fn preview(payload: &[u8], redactor: &Redactor) -> Preview {
    let is_truncated = payload.len() > MAX_PREVIEW_BYTES;
    let redacted = if is_truncated {
        // The cut may be inside a secret. Its first part must be masked as well.
        redactor.truncated_bytes(&payload[..MAX_PREVIEW_BYTES], &mut Applied::default())
    } else {
        redactor.bytes(payload, &mut Applied::default())
    };
    // Masks can be longer than what they replace.
    let text = cut(&String::from_utf8_lossy(without_torn_character(&redacted)), MAX_PREVIEW_BYTES).to_owned();
    Preview { text, is_truncated }
}

/// Redacts the message of an error and cuts it to its first line, so that it holds no stack trace.
pub(super) fn message(text: &str, redactor: &Redactor) -> String {
    let text = redactor.text(text, &mut Applied::default());
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    cut(line, MAX_MESSAGE_BYTES).to_owned()
}

/// Redacts the name of a tool and cuts it.
pub(super) fn name(text: &str, redactor: &Redactor) -> String {
    cut(&redactor.text(text, &mut Applied::default()), MAX_NAME_BYTES).to_owned()
}

/// Drops the first bytes of a character that was cut at the end.
fn without_torn_character(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
