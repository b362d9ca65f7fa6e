//! The proposed actions of a session: what it changed. Files count once, by what is left of all their changes at the end.
//! Commands count once by their text, with the exit code of the last run. Commands that only read are not actions.

use std::collections::BTreeMap;

use counterproof_artifact::{EvidenceRef, EvidenceTarget, Extra, ProposedAction, RiskLevel, Sha256Digest};
use counterproof_sessions::event::{EventBody, FileChange, FileOperation, SessionEvent};
use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use super::command_risk::{CommandRisk, command_risk};
use super::masked::Masker;
use super::steps::{COMMAND, Step};

/// Parts of paths that decide how the repository is built or what runs in it, or that hold keys.
const SENSITIVE: [&str; 9] =
    [".git/", ".github/workflows/", ".gitlab-ci", ".env", ".ssh/", "Jenkinsfile", ".npmrc", ".pypirc", "id_rsa"];

/// How far the time of a file can lie before its change: the longest tick of a Linux kernel.
const FILE_CLOCK: SignedDuration = SignedDuration::from_millis(10);

/// Most calls that are named as the evidence of one file.
const MAX_EVIDENCE: usize = 8;

/// The actions of a session, and the action that each step carries out.
#[derive(Debug, Default)]
pub(super) struct Actions {
    pub(super) proposed: Vec<ProposedAction>,
    of_step: BTreeMap<usize, String>,
}

impl Actions {
    pub(super) fn new(events: &[SessionEvent], steps: &[Step<'_>], masker: &Masker<'_>) -> Self {
        let mut actions = Self::default();
        actions.add_files(events, steps, masker);
        actions.add_commands(steps, masker);
        actions
    }

    pub(super) fn of_step(&self, number: usize) -> Option<String> {
        self.of_step.get(&number).cloned()
    }

    fn add(&mut self, tool: &str, params: Map<String, Value>, risk: CommandRisk, evidence: Vec<String>) -> String {
        let action_id = format!("action-{}", self.proposed.len() + 1);
        let reference = |call_id| EvidenceRef { target: EvidenceTarget::ToolResult { call_id }, extra: Extra::new() };
        self.proposed.push(ProposedAction {
            action_id: action_id.clone(),
            action_type: tool.split('.').next().unwrap_or(tool).to_owned(),
            tool_name: tool.to_owned(),
            params,
            risk_level: risk.level,
            risk_tags: risk.tags,
            evidence_refs: evidence.into_iter().map(reference).collect(),
            extra: Extra::new(),
        });
        action_id
    }

    fn add_files(&mut self, events: &[SessionEvent], steps: &[Step<'_>], masker: &Masker<'_>) {
        for (path, change) in changes(events) {
            let Some(operation) = change.operation() else { continue };
            let path = masker.text(&path);
            let path = path.strip_prefix("<workspace>/").unwrap_or(&path);
            let mut params =
                Map::from_iter([("path".to_owned(), json!(path)), ("operation".to_owned(), json!(operation))]);
            if operation == "rename" {
                params.extend(change.from.as_ref().map(|from| ("from".to_owned(), json!(masker.text(from)))));
            }
            params.extend(change.digest(masker).map(|(name, digest)| (name.to_owned(), json!(digest))));
            let evidence = file_evidence(path, &change, steps);
            self.add(&format!("file.{operation}"), params, file_risk(path, operation), evidence);
        }
    }

    fn add_commands(&mut self, steps: &[Step<'_>], masker: &Masker<'_>) {
        // In the order of their first run. The last run decides: a test that was red first and is green now is green.
        let mut last: Vec<(String, CommandRisk, &Step<'_>)> = Vec::new();
        for step in steps.iter().filter(|step| !step.is_refused()) {
            let Some(line) = step.command.and_then(|command| command.command.as_ref()) else { continue };
            let Some(risk) = command_risk(line) else { continue };
            let text = masker.text(&line.text());
            match last.iter_mut().find(|(known, ..)| *known == text) {
                Some((_, _, known)) => *known = step,
                None => last.push((text, risk, step)),
            }
        }
        for (text, risk, step) in last {
            let mut params = Map::from_iter([("command".to_owned(), json!(text))]);
            let exit_code = step.command.and_then(|command| command.exit_code);
            params.extend(exit_code.map(|code| ("exit_code".to_owned(), json!(code))));
            let action = self.add(COMMAND, params, risk, vec![step.call_id()]);
            self.of_step.insert(step.number, action);
        }
    }
}

/// What is known about a file at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileState {
    Missing,
    Known(Sha256Digest),
    Unknown,
}

impl FileState {
    fn new(digest: Option<Sha256Digest>) -> Self {
        digest.map_or(FileState::Unknown, FileState::Known)
    }
}

/// All changes of a file in one.
#[derive(Debug)]
struct NetChange<'a> {
    before: FileState,
    after: FileState,
    /// The path at the beginning, if it was another.
    from: Option<String>,
    patches: Vec<&'a str>,
    last: &'a SessionEvent,
}

impl NetChange<'_> {
    fn operation(&self) -> Option<&'static str> {
        match (self.before, self.after) {
            (FileState::Missing, FileState::Missing) => None,
            (FileState::Missing, _) => Some("create"),
            (_, FileState::Missing) => Some("delete"),
            _ if self.from.is_some() => Some("rename"),
            (FileState::Known(before), FileState::Known(after)) if before == after => None,
            _ => Some("modify"),
        }
    }

    /// Returns the digest that names the new content, or that of the patches if the content is not known.
    fn digest(&self, masker: &Masker<'_>) -> Option<(&'static str, Sha256Digest)> {
        match self.after {
            FileState::Missing => None,
            FileState::Known(digest) => Some(("sha256", digest)),
            FileState::Unknown if self.patches.is_empty() => None,
            FileState::Unknown => {
                let patches: Vec<_> = self.patches.iter().map(|patch| masker.text(patch)).collect();
                Some(("patch_sha256", Sha256Digest::from_bytes(patches.join("\n").as_bytes())))
            }
        }
    }
}

fn changes(events: &[SessionEvent]) -> BTreeMap<String, NetChange<'_>> {
    let mut changes: BTreeMap<String, NetChange<'_>> = BTreeMap::new();
    for event in events {
        let EventBody::FileOperation(file) = &event.body else { continue };
        let Some(before) = before(file) else { continue };
        let after =
            if file.operation == FileChange::Delete { FileState::Missing } else { FileState::new(file.after_sha256) };
        let moved = if file.operation == FileChange::Rename { file.from_path.as_ref() } else { None };
        let mut change = moved
            .and_then(|from| changes.remove(from))
            .or_else(|| changes.remove(&file.path))
            .unwrap_or(NetChange { before, after, from: None, patches: Vec::new(), last: event });
        change.after = after;
        change.last = event;
        if change.from.is_none() {
            change.from = moved.cloned();
        }
        change.patches.extend(file.patch.as_deref());
        changes.insert(file.path.clone(), change);
    }
    changes
}

fn before(file: &FileOperation) -> Option<FileState> {
    match file.operation {
        FileChange::Read => None,
        FileChange::Create => Some(FileState::Missing),
        FileChange::Modify | FileChange::Delete | FileChange::Rename => Some(FileState::new(file.before_sha256)),
    }
}

fn file_risk(path: &str, operation: &str) -> CommandRisk {
    let is_outside = path.starts_with(['/', '~', '<']) || path.starts_with("../") || path.get(1..2) == Some(":");
    let is_sensitive = SENSITIVE.iter().any(|part| path.contains(part));
    let lower = path.to_ascii_lowercase();
    let name = lower.rsplit('/').next().unwrap_or_default();
    let is_test = lower.split('/').any(|part| matches!(part, "test" | "tests" | "__tests__" | "spec"))
        || name.starts_with("test_")
        || ["_test.", ".test.", "_spec.", ".spec."].iter().any(|part| name.contains(part));
    let tags =
        [("delete", operation == "delete"), ("outside", is_outside), ("sensitive", is_sensitive), ("tests", is_test)];
    CommandRisk {
        level: if is_outside || is_sensitive { RiskLevel::High } else { RiskLevel::Medium },
        tags: tags.into_iter().filter(|(_, applies)| *applies).map(|(tag, _)| tag.to_owned()).collect(),
    }
}

/// Returns the calls that a change of a file rests on: those before it that name the file, or else the call before it. Calls
/// that failed are no evidence of a change that took place.
fn file_evidence(path: &str, change: &NetChange<'_>, steps: &[Step<'_>]) -> Vec<String> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let succeeded = || steps.iter().filter(|step| !step.has_failed());
    let is_named = |step: &&Step<'_>| !name.is_empty() && step.names(name) && may_have_made(step.event, change.last);
    let mut named: Vec<_> = succeeded().filter(is_named).map(Step::call_id).collect();
    if named.is_empty() {
        named.extend(succeeded().rfind(|step| is_before(step.event, change.last)).map(Step::call_id));
    }
    named.split_off(named.len().saturating_sub(MAX_EVIDENCE))
}

/// True if a call began before a file was changed. The times decide: a change can be seen, and recorded, before the result of
/// the call that made it. Within the clock of the file system, the order of the records decides.
fn is_before(call: &SessionEvent, change: &SessionEvent) -> bool {
    let tick = change.timestamp.saturating_add(FILE_CLOCK).unwrap_or(change.timestamp);
    call.timestamp < change.timestamp || (call.seq <= change.seq && call.timestamp <= tick)
}

/// True if a call that names a file may have made its change: it began before, or within the clock of the file system after the
/// time of the change. The order of the records does not decide there, because a look that another turn asked for can see the
/// change before the call has its result.
fn may_have_made(call: &SessionEvent, change: &SessionEvent) -> bool {
    let tick = change.timestamp.saturating_add(FILE_CLOCK).unwrap_or(change.timestamp);
    is_before(call, change) || (call.timestamp > change.timestamp && call.timestamp <= tick)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn file(
        operation: FileChange,
        path: &str,
        from: Option<&str>,
        before: Option<&str>,
        after: Option<&str>,
    ) -> SessionEvent {
        let digest = |text: Option<&str>| text.map(|text| Sha256Digest::from_bytes(text.as_bytes()));
        let (before_sha256, after_sha256) = (digest(before), digest(after));
        let (path, from_path) = (path.to_owned(), from.map(str::to_owned));
        let body = FileOperation { operation, path, from_path, before_sha256, after_sha256, patch: None };
        SessionEvent::captured(Timestamp::UNIX_EPOCH, EventBody::FileOperation(body))
    }

    fn tools(events: &[SessionEvent]) -> Vec<String> {
        let actions = Actions::new(events, &[], &Masker::new("", events));
        actions
            .proposed
            .iter()
            .map(|action| format!("{} {}", action.tool_name, action.params["path"].as_str().unwrap()))
            .collect()
    }

    #[test]
    fn a_file_counts_by_what_is_left_of_its_changes() {
        use FileChange::{Create, Delete, Modify, Read, Rename};
        let change = |operation, before, after| file(operation, "a", None, before, after);
        for (events, expected) in [
            (vec![change(Create, None, Some("1")), change(Modify, Some("1"), Some("2"))], vec!["file.create a"]),
            (vec![change(Create, None, Some("1")), change(Delete, Some("1"), None)], vec![]),
            (vec![change(Modify, Some("1"), Some("2")), change(Modify, Some("2"), Some("1"))], vec![]),
            (vec![change(Modify, None, None), change(Modify, None, None)], vec!["file.modify a"]),
            (vec![change(Read, None, None)], vec![]),
            (vec![file(Rename, "b", Some("a"), Some("1"), Some("1"))], vec!["file.rename b"]),
            (
                vec![change(Create, None, Some("1")), file(Rename, "b", Some("a"), Some("1"), Some("1"))],
                vec!["file.create b"],
            ),
        ] {
            assert_eq!(tools(&events), expected);
        }
    }

    #[test]
    fn a_call_is_before_a_change_that_was_seen_early_or_has_a_coarse_time() {
        let event = |seq: u64, millis| SessionEvent {
            seq: Some(seq),
            ..SessionEvent::captured(
                Timestamp::from_millisecond(millis).unwrap(),
                file(FileChange::Modify, "a", None, None, None).body,
            )
        };
        let change = event(5, 1000);
        for (call, expected) in [
            (event(4, 990), true),
            // The change was seen before the result of the call.
            (event(7, 990), true),
            (event(4, 1004), true),
            (event(7, 1004), false),
            (event(4, 1100), false),
        ] {
            assert_eq!(is_before(&call, &change), expected, "{call:?}");
        }
        // The change was seen by the look of another turn, and has the time of the last tick.
        assert!(may_have_made(&event(7, 1004), &change));
        assert!(!may_have_made(&event(7, 1000), &change) && !may_have_made(&event(7, 1100), &change));
    }

    #[test]
    fn files_outside_of_the_repository_and_of_its_control_are_of_high_risk() {
        for (path, level, tags) in [
            ("src/a.py", RiskLevel::Medium, ""),
            ("tests/test_a.py", RiskLevel::Medium, "tests"),
            ("/etc/hosts", RiskLevel::High, "outside"),
            ("../b", RiskLevel::High, "outside"),
            (".github/workflows/ci.yml", RiskLevel::High, "sensitive"),
        ] {
            let risk = file_risk(path, "modify");
            assert_eq!((risk.level, risk.tags.join(" ").as_str()), (level, tags), "{path}");
        }
    }
}
