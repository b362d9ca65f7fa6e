//! Texts as columns store them. A database limits what an index and a text can contain.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::fmt::temporal::Pieces;

/// Longest id of a run, a shim or a call in bytes.
pub(super) const MAX_ID_BYTES: usize = 256;

/// Longest name or code in bytes. PostgreSQL indexes at most 2,704 bytes, and an index has up to three columns.
const MAX_NAME_BYTES: usize = 512;

/// Returns true if a text can be a key.
pub(crate) fn is_id(text: &str) -> bool {
    (1..=MAX_ID_BYTES).contains(&text.len()) && !text.contains('\0')
}

/// Cuts a name that is too long, and replaces characters that a database cannot store.
pub(super) fn name(text: &str) -> Cow<'_, str> {
    if text.len() > MAX_NAME_BYTES {
        let end = text.floor_char_boundary(MAX_NAME_BYTES);
        return Cow::Owned(format!("{}…", storable(&text[..end])));
    }
    storable(text)
}

/// Replaces NUL characters, which PostgreSQL cannot store in a text.
pub(super) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// Returns a time as the ledger stores it: a text whose order is that of the times.
pub fn sortable_time(time: Timestamp) -> String {
    format!("{time:.9}")
}

/// Returns a time of an event as the ledger stores it.
pub(super) fn parse_time(text: &str) -> Option<String> {
    text.parse::<Timestamp>().ok().map(sortable_time)
}

/// Returns true if a text has the form of a time, which may be out of range.
pub(super) fn is_time(text: &str) -> bool {
    Pieces::parse(text).is_ok_and(|pieces| pieces.time().is_some() && pieces.offset().is_some())
}
