//! The tools `read`, `write` and `edit`.

use std::fmt::Write as _;

use counterproof_artifact::Sha256Digest;
use counterproof_sessions::event::{FileChange, FileOperation};
use counterproof_sessions::store::MASK;
use memchr::{memchr_iter, memmem};

use super::arguments::Arguments;
use super::toolbox::{Done, Failed};
use super::workspace_files::{Links, WorkspaceFiles, Written};

/// The most lines that `read` returns without `limit`.
pub(super) const DEFAULT_LINES: u64 = 136;

/// The most characters that `read` returns, however long the lines are.
const MAX_READ_CHARS: usize = 100_000;

pub(super) fn read(files: &WorkspaceFiles, arguments: &Arguments) -> Result<Done, Failed> {
    let path = arguments.text("path")?;
    let (offset, limit) = (arguments.optional_number("offset")?, arguments.optional_number("limit")?);
    let bytes = files.read(path, Links::Follow)?;
    let operation = read_operation(&files.relative(path)?, &bytes);
    let failed = |message: String| Failed::after(vec![operation.clone()], message);
    if bytes.contains(&0) {
        return Err(failed(format!("`{path}` is a binary file")));
    }
    let is_utf8 = std::str::from_utf8(&bytes).is_ok();
    let text = String::from_utf8_lossy(&bytes);
    let skipped = offset.unwrap_or(1) - 1;
    let rest = &text[after_lines(&text, skipped)..];
    if rest.is_empty() && skipped > 0 {
        return Err(failed(format!("`{path}` has no line {}", skipped + 1)));
    }
    let shown = &rest[..after_lines(rest, limit.unwrap_or(DEFAULT_LINES))];
    let left = rest[shown.len()..].lines().count();
    // A model that asks for less has not lost anything.
    let content = if limit.is_some() { shown } else { rest };
    let (mut message, cut) = truncated(shown, MAX_READ_CHARS);
    if limit.is_none() && left > 0 && !cut {
        let next = skipped + DEFAULT_LINES + 1;
        let _ = writeln!(message, "[Output truncated. {left} lines removed. Read on with offset {next}.]");
    }
    if !is_utf8 {
        message.push_str("\n[The file is not UTF-8: bytes that cannot be shown are replaced.]\n");
    }
    let is_truncated = cut || (limit.is_none() && left > 0);
    Ok(Done { content: content.to_owned(), message, is_truncated, reads: vec![operation], ..Done::default() })
}

pub(super) fn write(files: &WorkspaceFiles, arguments: &Arguments) -> Result<Done, Failed> {
    let (path, content) = (arguments.text("path")?, arguments.text("content")?);
    if content.contains(MASK) {
        refuse_masks(content, &files.read(path, Links::Refuse).unwrap_or_default())?;
    }
    let word = match files.write(path, content.as_bytes())? {
        Written::Created => "created",
        Written::Replaced => "replaced",
    };
    Ok(Done::text(format!("{word} `{}` ({} bytes)", files.relative(path)?, content.len())))
}

pub(super) fn edit(files: &WorkspaceFiles, arguments: &Arguments) -> Result<Done, Failed> {
    let (path, old, new) = (arguments.text("path")?, arguments.text("old_string")?, arguments.text("new_string")?);
    if old.is_empty() {
        return Err(Failed::new("`old_string` is empty; use `write` for a new file"));
    }
    if old == new {
        return Err(Failed::new("`old_string` and `new_string` are the same"));
    }
    let bytes = files.read(path, Links::Refuse)?;
    let relative = files.relative(path)?;
    let reads = vec![read_operation(&relative, &bytes)];
    let failed = |message: &str| Failed::after(reads.clone(), format!("`{relative}` {message}"));
    if std::str::from_utf8(&bytes).is_err() {
        return Err(failed("is not UTF-8, and cannot be edited"));
    }
    let Some(start) = memmem::find(&bytes, old.as_bytes()) else {
        return Err(failed("does not contain `old_string`"));
    };
    // From the next byte, so that a second place is found that overlaps the first one.
    if memmem::find(&bytes[start + 1..], old.as_bytes()).is_some() {
        return Err(failed("contains `old_string` more than once; add lines around it"));
    }
    refuse_masks(new, old.as_bytes())?;
    let edited = [&bytes[..start], new.as_bytes(), &bytes[start + old.len()..]].concat();
    files.write(path, &edited).map_err(|error| Failed::after(reads.clone(), error.to_string()))?;
    Ok(Done { reads, ..Done::text(format!("edited `{relative}`")) })
}

/// Refuses text with more masks than the old text has: the model saw a masked secret, and would replace the secret by the mask.
fn refuse_masks(new: &str, old: &[u8]) -> Result<(), Failed> {
    if new.matches(MASK).count() <= memmem::find_iter(old, MASK).count() {
        return Ok(());
    }
    Err(Failed::new(format!("`{MASK}` hides a secret of the file; use `edit` on the lines without it")))
}

/// Returns where the line begins that comes after this number of lines; the end of the text if there are fewer.
fn after_lines(text: &str, lines: u64) -> usize {
    let Some(last) = lines.checked_sub(1).and_then(|last| usize::try_from(last).ok()) else { return 0 };
    memchr_iter(b'\n', text.as_bytes()).nth(last).map_or(text.len(), |end| end + 1)
}

fn read_operation(path: &str, bytes: &[u8]) -> FileOperation {
    let digest = Sha256Digest::from_bytes(bytes);
    FileOperation {
        operation: FileChange::Read,
        path: path.to_owned(),
        from_path: None,
        before_sha256: Some(digest),
        after_sha256: Some(digest),
        patch: None,
    }
}

/// Returns the first characters of a text, with a note about the rest. The second value is true if there is a rest.
pub(super) fn truncated(text: &str, characters: usize) -> (String, bool) {
    let Some((end, _)) = text.char_indices().nth(characters) else { return (text.to_owned(), false) };
    let removed = text[end..].chars().count();
    (format!("{}\n[Output truncated. {removed} characters removed.]", &text[..end]), true)
}
