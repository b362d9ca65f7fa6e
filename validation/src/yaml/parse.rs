//! Parses YAML into a JSON value.

use serde_json::Value;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Budget, Error};

use counterproof_json_text::Position;

/// Bytes of text that aliases may add to any file. Large files may add as much as they have.
const MAX_ALIAS_TEXT_BYTES: usize = 64 << 20;

/// Why a text is not a YAML document that JSON can express.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct YamlError {
    /// The place in the text, if known.
    pub position: Option<Position>,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub remedy: &'static str,
}

/// Parses one YAML 1.2 document: `no` is a string, and an id such as `007` keeps its zeros. An empty text is null.
pub fn parse(text: &str) -> Result<Value, YamlError> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        with_snippet: false,
        budget: budget(text.len()),
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: alias_events(text.len()) },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let position = error.location().and_then(|location| {
            let (line, column) = (usize::try_from(location.line()).ok()?, usize::try_from(location.column()).ok()?);
            (line > 0).then_some(Position { line, column: column.max(1) })
        });
        let (what, remedy) = explain(&error, text.len());
        // The position has a field of its own, so the message does not repeat it.
        let message = what.split(" at line ").next().unwrap_or(&what).to_owned();
        YamlError { position, message, remedy }
    })
}

/// Returns a message and a remedy for an error in a text of this size. The parser's own messages for limits refer to its
/// options.
fn explain(error: &Error, bytes: usize) -> (String, &'static str) {
    let (mut cause, mut in_alias) = (error.without_snippet(), false);
    while let Error::AliasError { error, .. } = cause {
        (cause, in_alias) = (error.without_snippet(), true);
    }
    let limits = format!(
        "more than {} YAML events or {} bytes of text, the limits for a file of this size",
        alias_events(bytes),
        alias_text_bytes(bytes)
    );
    let aliases =
        (format!("the aliases expand to {limits}"), "write the values out, or use no aliases inside each other");
    match cause {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            (format!("duplicate key \"{key}\""), "keep one of the two")
        }
        Error::MultipleDocuments { .. } => {
            ("a second YAML document starts here".to_owned(), "write one document, without `---` between its parts")
        }
        Error::AliasReplayLimitExceeded { .. } => aliases,
        Error::Budget { breach, .. } => match breach {
            BudgetBreach::Depth { depth } => {
                (format!("the values are nested {depth} levels deep, which is more than the limit"), "nest less")
            }
            BudgetBreach::ScalarBytes { .. } => aliases,
            BudgetBreach::RecordedAnchorEvents { .. } | BudgetBreach::RecordedAnchorBytes { .. } if in_alias => aliases,
            // Each anchor keeps a copy of what is below it.
            BudgetBreach::RecordedAnchorEvents { .. } | BudgetBreach::RecordedAnchorBytes { .. } => (
                format!("the values below anchors, counted once for each anchor, are {limits}"),
                "remove anchors that no alias uses, or put them on smaller values",
            ),
            _ => (format!("invalid YAML: {cause}"), "correct the YAML at this position"),
        },
        other => (format!("invalid YAML: {other}"), "correct the YAML at this position"),
    }
}

/// Returns how many YAML events the aliases of a text may expand to: in proportion to its size, so that every case of a
/// large file can use a default, but nested aliases cannot multiply.
fn alias_events(bytes: usize) -> usize {
    (bytes / 2).max(1_000_000)
}

/// Returns how many bytes of text the aliases of a text may add.
fn alias_text_bytes(bytes: usize) -> usize {
    bytes.max(MAX_ALIAS_TEXT_BYTES)
}

/// The limits of the YAML parser for a text of this size. They bound what aliases add, and the depth. The size of the text
/// bounds what is written out, so these limits follow it.
fn budget(bytes: usize) -> Option<Budget> {
    let text_bytes = bytes.saturating_add(alias_text_bytes(bytes));
    serde_saphyr::budget! {
        max_events: usize::MAX,
        max_nodes: usize::MAX,
        max_aliases: usize::MAX,
        max_anchors: usize::MAX,
        max_merge_keys: usize::MAX,
        enforce_alias_anchor_ratio: false,
        max_total_scalar_bytes: text_bytes,
        max_recorded_anchor_events: alias_events(bytes),
        max_recorded_anchor_bytes: text_bytes,
    }
}
