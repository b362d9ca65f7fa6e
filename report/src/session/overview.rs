//! The top of the page: how the session ended, its sums, its errors and milestones, and the files that it changed.

use std::collections::BTreeMap;

use counterproof_artifact::one_line;
use counterproof_sessions::event::{EventBody, Fidelity, FileChange, SessionEvent};
use counterproof_sessions::message::{MessagePart, PartContent, history_parts};
use counterproof_sessions::milestone::MilestoneKind;
use counterproof_sessions::session::{SessionHead, SessionStatus, Share};
use counterproof_sessions::summary::Summary;
use jiff::Timestamp;

use super::blocks::PatchView;
use crate::view::display::number;

/// Longest texts, in characters.
const MAX_TITLE: usize = 200;
const MAX_EXCERPT: usize = 420;
const MAX_LINE: usize = 240;

/// Most errors and milestones that are not folded.
const SHOWN_NOTES: usize = 10;

#[derive(Debug)]
pub(super) struct Overview {
    pub(super) title: String,
    /// The class of the status: `good`, `bad` or `open`.
    pub(super) class: &'static str,
    pub(super) sign: &'static str,
    pub(super) status: &'static str,
    pub(super) sentence: String,
    /// Chips: the program, the models.
    pub(super) chips: Vec<String>,
    pub(super) facts: Vec<(&'static str, String)>,
    pub(super) asked: Option<Excerpt>,
    pub(super) answered: Option<Excerpt>,
    pub(super) notes: Vec<NoteView>,
    /// How many notes are folded; empty if none are.
    pub(super) more_notes: String,
    pub(super) files: Vec<FileView>,
    pub(super) recording: Vec<(&'static str, String)>,
}

/// The beginning of a text, and the record that has all of it.
#[derive(Debug)]
pub(super) struct Excerpt {
    pub(super) text: String,
    pub(super) anchor: u64,
    pub(super) is_cut: bool,
}

/// An error or a milestone.
#[derive(Debug)]
pub(super) struct NoteView {
    pub(super) class: &'static str,
    pub(super) word: String,
    pub(super) at: String,
    pub(super) text: String,
    pub(super) anchor: u64,
    /// Whether it is shown without unfolding.
    pub(super) is_first: bool,
}

/// All changes of a file.
#[derive(Debug)]
pub(super) struct FileView {
    pub(super) path: String,
    pub(super) word: &'static str,
    pub(super) counts: String,
    /// The records with the changes.
    pub(super) anchors: Vec<u64>,
}

impl Overview {
    pub(super) fn new(head: &SessionHead, events: &[SessionEvent]) -> Self {
        let summary = Summary::new(events);
        let mut notes = notes(head, events);
        let more_notes = fold_notes(&mut notes);
        let (class, sign) = match head.status {
            SessionStatus::Completed => ("good", "✓"),
            SessionStatus::Failed | SessionStatus::Interrupted => ("bad", "✗"),
            SessionStatus::Running | SessionStatus::Paused => ("open", "…"),
        };
        let title = head.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
        Self {
            title: title
                .map_or_else(|| format!("Session of {}", head.origin.word()), |title| one_line(title, MAX_TITLE)),
            class,
            sign,
            status: head.status.word(),
            sentence: sentence(head, &summary),
            chips: chips(head, events),
            facts: facts(head, events, &summary),
            asked: asked(events),
            answered: answered(events),
            notes,
            more_notes,
            files: files(events),
            recording: recording(head, events),
        }
    }
}

/// Returns how much time lies between two points: `3.2 s`, `4 min 5 s`, `2 h 3 min`.
pub(super) fn elapsed(from: Timestamp, to: Timestamp) -> String {
    duration(u64::try_from(to.duration_since(from).as_millis()).unwrap_or_default())
}

pub(super) fn duration(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{seconds}.{} s", millis % 1000 / 100),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", number(seconds / 3600), seconds % 3600 / 60),
    }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{} {many}", number(count)) }
}

/// Returns the state of the session in one line, from counts alone.
fn sentence(head: &SessionHead, summary: &Summary) -> String {
    let of = |kind: MilestoneKind| summary.milestones.iter().filter(move |milestone| milestone.kind == kind);
    let count = |kind| of(kind).count() as u64;
    let mut parts = Vec::new();
    match of(MilestoneKind::Tests).next_back().map(|milestone| milestone.succeeded) {
        Some(Some(true)) => parts.push("the last test run passed".to_owned()),
        Some(Some(false)) => parts.push("the last test run failed".to_owned()),
        Some(None) => parts.push("the result of the last test run is not known".to_owned()),
        None => {}
    }
    let files = summary.files_changed.len() as u64;
    parts.push(if files == 0 {
        "no file change recorded".to_owned()
    } else {
        counted(files, "file changed", "files changed")
    });
    for (kind, one, many) in [
        (MilestoneKind::Commit, "commit", "commits"),
        (MilestoneKind::Push, "push", "pushes"),
        (MilestoneKind::PullRequest, "pull request", "pull requests"),
        (MilestoneKind::Refusal, "refused call", "refused calls"),
    ] {
        if count(kind) > 0 {
            parts.push(counted(count(kind), one, many));
        }
    }
    if !summary.errors.is_empty() {
        parts.push(counted(summary.errors.len() as u64, "error", "errors"));
    }
    let ended = match head.status {
        SessionStatus::Completed => "Completed",
        SessionStatus::Failed => "Failed",
        SessionStatus::Interrupted => "Interrupted",
        SessionStatus::Running => "Still running",
        SessionStatus::Paused => "Paused",
    };
    format!("{ended}: {}.", parts.join(", "))
}

fn chips(head: &SessionHead, events: &[SessionEvent]) -> Vec<String> {
    let mut chips = vec![head.origin.word().to_owned()];
    chips.extend(head.workflow.as_ref().map(|workflow| one_line(workflow, MAX_LINE)));
    let mut models: Vec<&str> = Vec::new();
    for event in events {
        let EventBody::LlmCall(call) = &event.body else { continue };
        if let Some(model) = call.request.model.as_deref().filter(|model| !models.contains(model))
            && models.len() < 4
        {
            models.push(model);
        }
    }
    chips.extend(models.into_iter().map(|model| one_line(model, 60)));
    chips
}

fn facts(head: &SessionHead, events: &[SessionEvent], summary: &Summary) -> Vec<(&'static str, String)> {
    let end = head.ended_at.or_else(|| events.last().map(|event| event.timestamp));
    // An unknown number is not zero.
    let known = |number_of: Option<u64>| number_of.map_or_else(|| "not recorded".to_owned(), number);
    let tokens = summary.tokens;
    let mut facts = vec![
        ("duration", end.map_or_else(|| "not known".to_owned(), |end| elapsed(head.started_at, end))),
        ("model calls", number(summary.llm_calls)),
        ("tool calls", number(summary.tool_calls)),
        ("commands", number(summary.commands)),
        ("prompt tokens", known(tokens.prompt_tokens)),
        ("from a cache", known(tokens.cached_tokens)),
        ("completion tokens", known(tokens.completion_tokens)),
        ("cost", summary.cost.map_or_else(|| "not recorded".to_owned(), |cost| format!("{cost:.4}"))),
    ];
    if summary.checkpoints > 0 {
        facts.push(("checkpoints", number(summary.checkpoints)));
    }
    facts
}

fn excerpt(text: &str, anchor: u64) -> Excerpt {
    let text = text.trim();
    Excerpt { text: one_line(text, MAX_EXCERPT), anchor, is_cut: text.chars().count() > MAX_EXCERPT }
}

fn asked(events: &[SessionEvent]) -> Option<Excerpt> {
    let is_request = |part: &MessagePart| {
        part.role == "user" && matches!(&part.content, PartContent::Text(text) if !text.trim().is_empty())
    };
    (1_u64..).zip(events).find_map(|(anchor, event)| {
        let EventBody::LlmCall(call) = &event.body else { return None };
        let part = history_parts(&call.request.messages).into_iter().find(is_request)?;
        let PartContent::Text(text) = part.content else { return None };
        Some(excerpt(&text, anchor))
    })
}

fn answered(events: &[SessionEvent]) -> Option<Excerpt> {
    let numbered: Vec<_> = (1_u64..).zip(events).collect();
    numbered.into_iter().rev().find_map(|(anchor, event)| {
        let EventBody::LlmCall(call) = &event.body else { return None };
        let text = call.response.as_ref()?.content.as_deref().filter(|text| !text.trim().is_empty())?;
        event.agent.is_none().then(|| excerpt(text, anchor))
    })
}

/// Returns the errors and milestones in the order of the records.
fn notes(head: &SessionHead, events: &[SessionEvent]) -> Vec<NoteView> {
    let mut notes = Vec::new();
    for (anchor, event) in (1_u64..).zip(events) {
        let at = elapsed(head.started_at, event.timestamp);
        let note = |class, word: String, text: &str| NoteView {
            class,
            word,
            at: at.clone(),
            text: one_line(text, MAX_LINE),
            anchor,
            is_first: true,
        };
        if let Some(message) = counterproof_sessions::summary::error_message(event) {
            notes.push(note("bad", "✗ error".to_owned(), &message));
        }
        for milestone in counterproof_sessions::milestone::milestones(event) {
            let (class, sign) = match (milestone.kind, milestone.succeeded) {
                (_, Some(false)) if milestone.is_expected => ("plain", ""),
                (_, Some(false)) => ("bad", "✗ "),
                (_, Some(true)) => ("good", "✓ "),
                _ => ("plain", ""),
            };
            notes.push(note(class, format!("{sign}{}", milestone.kind.word()), &milestone.text));
        }
    }
    notes
}

/// Folds what a reader can do without if there are many notes: tests that passed before the last ones, and then the rest.
fn fold_notes(notes: &mut [NoteView]) -> String {
    if notes.len() <= SHOWN_NOTES {
        return String::new();
    }
    let mut left = SHOWN_NOTES;
    // From the end, which decided how the session ended.
    for (from_end, note) in notes.iter_mut().rev().enumerate() {
        note.is_first = left > 0 && (note.class != "good" || !note.word.ends_with("tests") || from_end < 2);
        left -= usize::from(note.is_first);
    }
    let folded = notes.iter().filter(|note| !note.is_first).count() as u64;
    counted(folded, "more milestone", "more errors and milestones")
}

pub(super) const fn change_word(operation: FileChange) -> &'static str {
    match operation {
        FileChange::Create => "created",
        FileChange::Modify => "changed",
        FileChange::Delete => "deleted",
        FileChange::Rename => "renamed",
        FileChange::Read => "read",
    }
}

fn files(events: &[SessionEvent]) -> Vec<FileView> {
    let mut files: BTreeMap<&str, (FileChange, FileChange, u64, u64, Vec<u64>)> = BTreeMap::new();
    for (anchor, event) in (1_u64..).zip(events) {
        let EventBody::FileOperation(file) = &event.body else { continue };
        if file.operation == FileChange::Read {
            continue;
        }
        let patch = file.patch.as_deref().map(PatchView::new).unwrap_or_default();
        let entry = files.entry(&file.path).or_insert((file.operation, file.operation, 0, 0, Vec::new()));
        entry.1 = file.operation;
        entry.2 += patch.added;
        entry.3 += patch.removed;
        entry.4.push(anchor);
    }
    let view =
        |(path, (first, last, added, removed, anchors)): (&str, (FileChange, FileChange, u64, u64, Vec<u64>))| {
            FileView {
                path: one_line(path, MAX_LINE),
                word: change_word(if last == FileChange::Modify { first } else { last }),
                counts: format!("+{} −{}", number(added), number(removed)),
                anchors,
            }
        };
    files.into_iter().map(view).collect()
}

fn recording(head: &SessionHead, events: &[SessionEvent]) -> Vec<(&'static str, String)> {
    let time = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    let share = |share: Share| match share {
        Share::All => "all",
        Share::Partial => "partial",
        Share::None => "none",
    };
    let coverage = head.coverage;
    let captured = events.iter().filter(|event| event.fidelity == Fidelity::Captured).count() as u64;
    let mut facts = vec![
        ("session", one_line(&head.session_id, MAX_LINE)),
        ("started", time(head.started_at)),
        ("ended", head.ended_at.map_or_else(|| "not known".to_owned(), time)),
        (
            "seen",
            format!(
                "model calls: {}; tool calls: {}; files: {}; commands: {}",
                share(coverage.llm_calls),
                share(coverage.tool_calls),
                share(coverage.files),
                share(coverage.commands)
            ),
        ),
        ("records", format!("{} captured, {} reconstructed", number(captured), number(events.len() as u64 - captured))),
    ];
    let folder = events.iter().find_map(|event| match &event.body {
        EventBody::Command(command) => command.cwd.as_ref(),
        _ => None,
    });
    facts.extend(folder.map(|folder| ("folder", one_line(folder, MAX_LINE))));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units_at_most() {
        for (millis, text) in
            [(0, "0 ms"), (999, "999 ms"), (1_250, "1.2 s"), (61_000, "1 min 1 s"), (7_380_000, "2 h 3 min")]
        {
            assert_eq!(duration(millis), text);
        }
    }
}
