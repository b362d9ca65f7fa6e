//! Previews of arguments and results: redacted, and cut to a fixed size.

use counterproof_artifact::Sha256Digest;
use counterproof_ledger::event::{ArgsPreview, ResultPreview};
use counterproof_redaction::{Applied, Redactor};

use super::{IncomingArgs, ResultBytes};

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
    pub(super) text: String,
    /// True if the text is not whole.
    pub(super) is_truncated: bool,
}

/// Returns the preview of arguments, and the hash of their bytes if they are not inspected.
pub(super) fn of_args(args: &IncomingArgs<'_>, redactor: &Redactor) -> (ArgsPreview, Option<Sha256Digest>) {
    let of_text = |text: &str| {
        let preview = preview(text.as_bytes(), redactor);
        ArgsPreview { truncated: preview.is_truncated, args_preview: Some(preview.text) }
    };
    match args {
        IncomingArgs::Inspected { text, .. } => (of_text(text), None),
        IncomingArgs::Uninspected { hash, text: Some(text) } => (of_text(text), Some(*hash)),
        IncomingArgs::Uninspected { hash, text: None } => {
            (ArgsPreview { truncated: true, args_preview: Some(TRUNCATED.to_owned()) }, Some(*hash))
        }
        IncomingArgs::Ambiguous { .. } => (ArgsPreview { truncated: true, args_preview: None }, None),
    }
}

/// Returns the preview of a result, and the hash of its bytes if the preview does not have all of them.
pub(super) fn of_result(result: &ResultBytes<'_>, redactor: &Redactor) -> (ResultPreview, Option<Sha256Digest>) {
    match result {
        ResultBytes::None => (ResultPreview::default(), None),
        ResultBytes::Inspected(bytes) => {
            let preview = preview(bytes, redactor);
            let hash = preview.is_truncated.then(|| Sha256Digest::from_bytes(bytes));
            (ResultPreview { truncated: preview.is_truncated, result_preview: Some(preview.text) }, hash)
        }
        ResultBytes::TooLarge { hash } => {
            (ResultPreview { truncated: true, result_preview: Some(TRUNCATED.to_owned()) }, Some(*hash))
        }
    }
}

/// Redacts a payload and cuts it.
fn preview(payload: &[u8], redactor: &Redactor) -> Preview {
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
