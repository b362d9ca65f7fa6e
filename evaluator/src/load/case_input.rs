//! What an agent was given for a case: the input of the cases file or of the stored request, and the turns of a conversation among
//! its events. The contract has no type for turns, so they are recognised by their `role`, or else by their type.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use counterproof_artifact::{CaseId, Event, EventBody, Sha256Digest};
use counterproof_cases::CaseSpec;
use counterproof_store::ReadError;
use serde_json::{Map, Value};

use crate::load::{CaseEnvelope, ComparedRun, SideRuns};
use crate::values;

/// Fields of a request that address it and are not part of the input.
const ADDRESS: [&str; 4] = ["case_id", "version", "run_meta", "model"];

/// The input that one side received for a case.
#[derive(Debug)]
pub(crate) struct CaseInput<'a> {
    case_id: &'a CaseId,
    spec: Option<&'a CaseSpec>,
    run: &'a ComparedRun,
    envelope: Option<&'a CaseEnvelope>,
    request: OnceCell<Option<Value>>,
}

impl<'a> CaseInput<'a> {
    /// Describes the input of a case in a run. The stored request is read on first use.
    pub(crate) fn new(
        case_id: &'a CaseId,
        spec: Option<&'a CaseSpec>,
        run: &'a ComparedRun,
        envelope: Option<&'a CaseEnvelope>,
    ) -> Self {
        Self { case_id, spec, run, envelope, request: OnceCell::new() }
    }

    /// Returns the digest of the case's input, if the run has one.
    fn digest(&self) -> Option<Sha256Digest> {
        self.run.reader().run().case_digests.as_ref()?.get(self.case_id).copied()
    }

    /// Whether the run records what it asked.
    pub(crate) fn is_recorded(&self) -> bool {
        self.digest().is_some()
    }

    /// True if the runner asked the agent once, and the whole input is known: from the stored request, or from the cases file of
    /// a run whose runner recorded what it asked.
    pub(crate) fn is_all_that_was_asked(&self) -> bool {
        (self.spec.is_some() && self.digest().is_some()) || self.request().is_some()
    }

    pub(crate) const fn case_is_known(&self) -> bool {
        self.spec.is_some()
    }

    /// Calls `take` with each value of the case's input in the cases file.
    pub(crate) fn case_texts(&self, mut take: impl FnMut(&Value)) {
        let Some(spec) = self.spec else { return };
        take(&Value::from(spec.input.user.as_str()));
        spec.turns.iter().for_each(|turn| take(&Value::from(turn.user.as_str())));
        spec.input.context.iter().for_each(&mut take);
        spec.input.extra.values().for_each(take);
    }

    /// Returns the input of the stored request: the field `input` in the native protocol, else the body without its address.
    pub(crate) fn request(&self) -> Option<&Value> {
        let read = || {
            let mut stored = self.run.read_json(self.envelope?.request.as_ref()?)?;
            let is_native = stored.get("protocol").is_none_or(|protocol| protocol == "native");
            let mut body = stored.get_mut("body")?.take();
            let fields = body.as_object_mut()?;
            if let (true, Some(input)) = (is_native, fields.get_mut("input")) {
                return Some(input.take());
            }
            // The address differs between the runs by design, and would make every input a changed one.
            fields.retain(|field, _| !ADDRESS.contains(&field.as_str()));
            Some(body)
        };
        self.request.get_or_init(read).as_ref()
    }
}

/// The cases that not all runs were asked with the same input, as far as the runs record it.
pub(crate) fn changed_inputs(baseline: &SideRuns, new: &SideRuns) -> BTreeSet<CaseId> {
    let mut known: BTreeMap<&CaseId, Sha256Digest> = BTreeMap::new();
    let mut changed = BTreeSet::new();
    let runs = baseline.iter().chain(new.iter());
    for (case_id, digest) in runs.filter_map(|run| run.reader().run().case_digests.as_ref()).flatten() {
        if *known.entry(case_id).or_insert(*digest) != *digest {
            changed.insert(case_id.clone());
        }
    }
    changed
}

/// The ids of the cases that both sides may be compared in: without those whose input changed.
pub(crate) fn comparable(baseline: &SideRuns, new: &SideRuns) -> Result<Vec<CaseId>, ReadError> {
    let changed = changed_inputs(baseline, new);
    let mut ids = super::pair(baseline, new)?;
    ids.retain(|id| !changed.contains(id));
    Ok(ids)
}

/// True if both sides received the same input. `None` if neither digests nor stored requests are available.
pub(crate) fn is_same(baseline: &CaseInput<'_>, new: &CaseInput<'_>) -> Option<bool> {
    match (baseline.digest(), new.digest()) {
        // Digests first: they are in the run document, and a stored request is another file.
        (Some(old), Some(new)) => Some(old == new),
        _ => Some(values::same(baseline.request()?, new.request()?)),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// The person that the agent serves. The turn is input.
    User,
    /// The agent. The turn is wording, like the final output.
    Assistant,
}

/// The fields that hold the text of a turn.
const TEXTS: [&str; 4] = ["content", "text", "message", "parts"];

/// Returns who speaks in an event; `None` for an event that is not a turn.
pub(crate) fn speaker(event: &Event) -> Option<Speaker> {
    let EventBody::Unknown { kind, fields } = &event.body else { return None };
    // Without a text, an event with a role is a note about the conversation and not a turn.
    if !TEXTS.iter().any(|name| fields.contains_key(*name)) {
        return None;
    }
    match fields.get("role") {
        Some(_) => role(fields),
        None => named(kind.split('_').next().unwrap_or_default()).filter(|_| is_turn(kind)),
    }
}

/// Returns the text of a turn; `None` for a turn of several parts, or without text.
pub(crate) fn text_of(fields: &Map<String, Value>) -> Option<&str> {
    TEXTS.iter().find_map(|name| fields.get(*name)?.as_str())
}

fn role(fields: &Map<String, Value>) -> Option<Speaker> {
    fields.get("role")?.as_str().and_then(named)
}

fn named(role: &str) -> Option<Speaker> {
    match role.to_ascii_lowercase().as_str() {
        "user" | "human" | "customer" => Some(Speaker::User),
        "assistant" | "agent" | "ai" | "model" | "bot" => Some(Speaker::Assistant),
        _ => None,
    }
}

/// True for types such as `user`, `user_message` and `assistant_turn`.
fn is_turn(kind: &str) -> bool {
    matches!(
        kind.split_once('_').map(|(_, rest)| rest),
        None | Some("message" | "turn" | "utterance" | "says" | "said")
    )
}

/// Types of events that hold what an agent wrote or thought.
const AGENT_EVENTS: [&str; 9] = [
    "assistant_message",
    "agent_message",
    "ai_message",
    "model_message",
    "thought",
    "thinking",
    "reasoning",
    "plan",
    "reflection",
];

/// Types of events that hold what the user said.
const USER_EVENTS: [&str; 3] = ["user_message", "user_turn", "human_message"];

/// True if the agent wrote the fields of an event of an unknown type.
pub(crate) fn is_by_agent(kind: &str, fields: &Map<String, Value>) -> bool {
    role(fields) == Some(Speaker::Assistant) || is_one_of(kind, &AGENT_EVENTS)
}

/// True if an event of an unknown type is a turn of the user.
pub(crate) fn is_user_turn(kind: &str, fields: &Map<String, Value>) -> bool {
    role(fields) == Some(Speaker::User) || is_one_of(kind, &USER_EVENTS)
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn speaks(event: Value) -> Option<Speaker> {
        let event: Event = serde_json::from_value(event).unwrap();
        speaker(&event)
    }

    #[test]
    fn a_turn_is_recognised_by_its_role_or_its_type() {
        let turn = |kind: &str, role: &str| speaks(json!({"type": kind, "ts": 1, "role": role, "content": "hi"}));
        assert_eq!(turn("message", "user"), Some(Speaker::User));
        assert_eq!(turn("llm.turn", "Assistant"), Some(Speaker::Assistant));
        assert_eq!(turn("message", "system"), None);
        let typed = |kind: &str| speaks(json!({"type": kind, "ts": 1, "text": "hi"}));
        assert_eq!(typed("user_message"), Some(Speaker::User));
        assert_eq!(typed("assistant"), Some(Speaker::Assistant));
        assert_eq!(typed("agent_plan"), None);
        assert_eq!(speaks(json!({"type": "message", "ts": 1, "role": "user"})), None, "without text");
    }
}
