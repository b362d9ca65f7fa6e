//! The checkpoints of a session, the newest first, and the sessions that were forked from it. In the conversation, a line
//! marks where they were made: a workflow makes one after each tool call.

use counterproof_artifact::one_line;
use counterproof_sessions::event::Checkpoint;
use counterproof_sessions::session::{Fork, Parent};
use serde_json::Value;

use super::record::RecordView;

/// Checkpoints that are not folded.
const SHOWN: usize = 5;

/// Longest step, reason and id, in characters.
const MAX_LINE: usize = 200;

/// Digits of a commit.
const COMMIT: usize = 12;

#[derive(Debug)]
pub(super) struct CheckpointView {
    /// Among the checkpoints of the session, from 1.
    pub(super) number: u64,
    pub(super) id: String,
    pub(super) step: String,
    pub(super) is_resumable: bool,
    /// Why it is not resumable; may be empty.
    pub(super) reason: String,
    /// The start of the commit with the files; empty if none is recorded.
    pub(super) commit: String,
    /// The command that goes on from here.
    pub(super) command: Option<String>,
    /// The messages that no request has, and what changed in the state.
    pub(super) record: RecordView,
}

impl CheckpointView {
    /// `ledger` is the quoted location of the ledger.
    pub(super) fn new(number: u64, checkpoint: &Checkpoint, ledger: Option<&str>, record: RecordView) -> Self {
        let Checkpoint { checkpoint_id, state, resumable, reason } = checkpoint;
        let option = ledger.map(|ledger| format!(" --ledger {ledger}")).unwrap_or_default();
        let is_word = is_word(checkpoint_id);
        let commit = state.workspace["commit"].as_str().unwrap_or_default();
        Self {
            number,
            id: one_line(checkpoint_id, MAX_LINE),
            step: one_line(&state.current_step, MAX_LINE),
            is_resumable: *resumable,
            reason: reason.as_deref().map(|reason| one_line(reason, MAX_LINE)).unwrap_or_default(),
            commit: one_line(&commit.chars().take(COMMIT).collect::<String>(), COMMIT),
            command: (*resumable && is_word).then(|| format!("counterproof session resume {checkpoint_id}{option}")),
            record,
        }
    }
}

/// Whether a text is one harmless word of a command. The id of an imported checkpoint may be any text.
fn is_word(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && text.len() <= MAX_LINE && !text.starts_with('-') && text.chars().all(is_allowed)
}

/// A mark in the conversation that leads to a checkpoint.
#[derive(Debug)]
pub(super) struct MarkView {
    pub(super) anchor: u64,
    pub(super) number: u64,
}

/// All checkpoints of a session.
#[derive(Debug)]
pub(super) struct CheckpointsView {
    pub(super) count: usize,
    /// The newest one that can be resumed: its number and its command.
    pub(super) newest: Option<(u64, String)>,
    pub(super) shown: Vec<CheckpointView>,
    pub(super) folded: Vec<CheckpointView>,
}

impl CheckpointsView {
    /// The checkpoints are in the order of their numbers.
    pub(super) fn new(mut checkpoints: Vec<CheckpointView>) -> Self {
        checkpoints.reverse();
        let count = checkpoints.len();
        let newest = checkpoints.iter().find_map(|it| Some((it.number, it.command.clone()?)));
        let folded = checkpoints.split_off(SHOWN.min(count));
        Self { count, newest, shown: checkpoints, folded }
    }

    /// One without a command may be resumable.
    pub(super) fn is_any_resumable(&self) -> bool {
        self.shown.iter().chain(&self.folded).any(|checkpoint| checkpoint.is_resumable)
    }
}

/// A session that was forked from this one, or the one that it was forked from.
#[derive(Debug)]
pub(super) struct ForkView {
    pub(super) session_id: String,
    /// Empty if it is not known.
    pub(super) checkpoint: String,
    /// The record of the checkpoint and its number, if it is one of this session.
    pub(super) link: Option<(u64, u64)>,
    pub(super) status: String,
}

impl ForkView {
    pub(super) fn parent(parent: &Parent) -> Self {
        let Parent { session_id, checkpoint_id } = parent;
        Self::new(session_id, checkpoint_id.as_deref(), None, "")
    }

    pub(super) fn of(fork: &Fork, checkpoints: &[CheckpointView]) -> Self {
        let Fork { session_id, checkpoint_id, status } = fork;
        let id = checkpoint_id.as_ref().map(|id| one_line(id, MAX_LINE));
        let found = checkpoints.iter().find(|checkpoint| Some(&checkpoint.id) == id.as_ref());
        let link = found.map(|checkpoint| (checkpoint.record.anchor, checkpoint.number));
        Self::new(session_id, checkpoint_id.as_deref(), link, status)
    }

    fn new(session_id: &str, checkpoint: Option<&str>, link: Option<(u64, u64)>, status: &str) -> Self {
        Self {
            session_id: one_line(session_id, MAX_LINE),
            checkpoint: checkpoint.map(|id| one_line(id, MAX_LINE)).unwrap_or_default(),
            link,
            status: one_line(status, MAX_LINE),
        }
    }
}

/// Returns the fields of an object that another one does not have, or has with another value.
pub(super) fn changed_fields(value: &Value, last: Option<&Value>) -> Value {
    let (Value::Object(fields), Some(last)) = (value, last) else { return value.clone() };
    let changed = fields.iter().filter(|(name, field)| last.get(name) != Some(field));
    changed.map(|(name, field)| (name.clone(), field.clone())).collect::<serde_json::Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_a_shell_would_read_otherwise_has_no_command() {
        for id in ["0199-ab", "cp_1.2"] {
            assert!(is_word(id), "{id}");
        }
        for id in ["", "--rewind", "a b", "a;b", "$(a)", "a\nb", "ä"] {
            assert!(!is_word(id), "{id}");
        }
    }
}
