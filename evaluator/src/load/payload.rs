//! Payloads of events. A payload compares equal whether it is inline or stored as an asset.

use camino::Utf8Path;
use counterproof_artifact::{Content, Event, EventBody, Href, Sha256Digest};
use counterproof_store::confined_path;
use serde_json::{Map, Value};

use crate::values::{same, same_object};

/// Payloads larger than this are compared only by their digest.
const UP_TO_BYTES: u64 = 8 * 1024 * 1024;

/// The payload of a tool result, or the snippets of a retrieval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Payload<'a> {
    /// A text.
    Text(&'a str),
    /// An object.
    Object(&'a Map<String, Value>),
    /// Any other value. Only assets have one.
    Other(&'a Value),
}

impl<'a> Payload<'a> {
    fn from_value(value: &'a Value) -> Self {
        match value {
            Value::String(text) => Payload::Text(text),
            Value::Object(fields) => Payload::Object(fields),
            other => Payload::Other(other),
        }
    }

    /// Copies the payload into a value.
    pub fn to_value(self) -> Value {
        match self {
            Payload::Text(text) => Value::from(text),
            Payload::Object(fields) => Value::Object(fields.clone()),
            Payload::Other(value) => value.clone(),
        }
    }

    fn is_same(self, other: Payload<'_>) -> bool {
        match (self, other) {
            (Payload::Object(a), Payload::Object(b)) => same_object(a, b),
            (Payload::Other(a), Payload::Other(b)) => same(a, b),
            (a, b) => a == b,
        }
    }
}

/// True if two events have equal payloads, or none.
pub(crate) fn is_same(baseline: Option<Payload<'_>>, new: Option<Payload<'_>>) -> bool {
    match (baseline, new) {
        (Some(old), Some(new)) => old.is_same(new),
        (old, new) => old.is_none() && new.is_none(),
    }
}

/// The content of an asset: JSON, text, or only its digest if it is too large.
#[derive(Debug)]
pub(crate) struct AssetContent {
    pub(crate) value: Value,
    /// True if the value is only a digest of the content.
    pub(crate) is_digest: bool,
}

/// The payloads of an answer that are stored as assets.
#[derive(Debug, Default)]
pub struct Payloads {
    /// By the index of the event, in ascending order.
    stored: Vec<(usize, Value)>,
    first_unread: Option<usize>,
}

impl Payloads {
    pub(crate) fn read(folder: &Utf8Path, events: &[Event]) -> Self {
        let mut payloads = Self::default();
        for (index, event) in events.iter().enumerate() {
            let Some(asset) = event.asset_href().and_then(|href| asset(folder, href)) else { continue };
            if asset.is_digest {
                payloads.first_unread.get_or_insert(index);
            }
            payloads.stored.push((index, asset.value));
        }
        payloads
    }

    /// Returns the payloads of the events at these positions, in ascending order, by their new positions.
    pub(crate) fn at(&self, positions: &[usize]) -> Self {
        let stored = self.stored.iter();
        let stored = stored.filter_map(|(index, value)| Some((positions.binary_search(index).ok()?, value.clone())));
        let first_unread = self.first_unread.and_then(|index| positions.binary_search(&index).ok());
        Self { stored: stored.collect(), first_unread }
    }

    /// Returns the first event whose payload is too large to read and is represented by a digest.
    pub const fn first_unread(&self) -> Option<usize> {
        self.first_unread
    }

    /// Returns the payload of an event: from the asset that it links to, or from the event itself.
    pub(crate) fn get<'a>(&'a self, index: usize, body: &'a EventBody) -> Option<Payload<'a>> {
        let stored = || {
            let place = self.stored.binary_search_by_key(&index, |(index, _)| *index).ok()?;
            Some(Payload::from_value(&self.stored[place].1))
        };
        match body {
            EventBody::ToolResult(result) if result.payload_asset_href.is_some() => stored(),
            EventBody::ToolResult(result) => match result.payload_summary.as_ref()? {
                Content::Text(text) => Some(Payload::Text(text)),
                Content::Json(fields) => Some(Payload::Object(fields)),
            },
            EventBody::Retrieval(_) => stored(),
            EventBody::ToolCall(_) | EventBody::FinalOutput(_) | EventBody::Unknown { .. } => None,
        }
    }
}

/// Reads an asset. `None` if it cannot be read.
pub(crate) fn asset(folder: &Utf8Path, href: &Href) -> Option<AssetContent> {
    let (mut file, length) = confined_path::open_with_length(folder, href.as_str()).ok()?;
    if length > UP_TO_BYTES {
        // The digest keeps equal assets equal without reading them into memory.
        let (digest, _) = Sha256Digest::from_reader(file).ok()?;
        return Some(AssetContent { value: Value::String(format!("sha256:{digest}")), is_digest: true });
    }
    let bytes = confined_path::read_to_end(&mut file, length).ok()?;
    // An asset that is not JSON is compared as a text.
    let text = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
    Some(AssetContent { value: serde_json::from_slice(&bytes).unwrap_or_else(|_| text()), is_digest: false })
}
