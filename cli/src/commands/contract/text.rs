//! Contracts as lines of text.

use counterproof_contracts::store::{Note, NoteKind};
use counterproof_contracts::{Details, Transition};
use serde_json::Value;

/// Returns a transition as one line.
pub(super) fn transition(transition: &Transition) -> String {
    let Transition { from, to, at, actor, reason, owner, .. } = transition;
    let owner = owner.as_ref().map_or_else(String::new, |owner| format!(" (owner {owner})"));
    format!("{at}  {from} → {to}{owner}  by {actor}: {reason}")
}

/// Returns a note as one line.
pub(super) fn note(note: &Note) -> String {
    let kind = match note.kind {
        NoteKind::ApprovalRequested => "approval requested",
        NoteKind::NotRolledBack => "not rolled back",
    };
    format!("{}  {kind}  by {}: {}", note.at, note.actor, note.reason)
}

/// Returns the evidence of a transition or a note as lines.
pub(super) fn details(details: &Details) -> Vec<String> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect()
    };
    let verification = &details.get("verification").cloned().unwrap_or_default();
    let mut lines = texts(&verification["reasons"]);
    lines.extend(texts(&verification["evidence"]).into_iter().map(|file| format!("evidence: {file}")));
    let rollback = &details.get("rollback").cloned().unwrap_or_default();
    lines.extend(rollback["way_back"].as_str().map(|way| format!("restore with: {way}")));
    lines
}
