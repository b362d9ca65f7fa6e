//! The turns of a conversation: the calls and the answer of each, as an answer of its own.

use std::collections::HashMap;

use counterproof_artifact::{Answer, Attempt, Event, Extra, FinalOutput, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::call_status;
use super::evidence::FollowedRef;
use super::run::{CaseEnvelope, EventIndex, LoadedAnswer};

/// The field of the artifact with the answer of each turn.
pub(super) const TURNS_FIELD: &str = "turns";

/// The field of events, actions and attempts with the number of the turn.
const TURN: &str = "turn";

/// The answer of one turn, as the runner records it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct TurnRecord {
    /// Counted from 1.
    pub(crate) turn: u64,
    /// The answer.
    pub(crate) final_output: FinalOutput,
    /// The tokens and the cost, if the agent reports them.
    pub(crate) usage: Option<Usage>,
}

/// Reads the turns of an artifact. Fields in another form count as absent: other producers may have the name too.
pub(super) fn read(extra: &Extra) -> Vec<TurnRecord> {
    extra.get(TURNS_FIELD).and_then(|turns| serde_json::from_value(turns.clone()).ok()).unwrap_or_default()
}

/// One turn of an answer, with the refs of its actions. The refs are resolved in the whole conversation.
#[derive(Debug)]
pub(crate) struct TurnAnswer {
    pub(crate) number: u64,
    pub(crate) loaded: LoadedAnswer,
    pub(crate) evidence: Vec<Vec<FollowedRef>>,
}

/// Splits an answer into its turns. Empty for an answer without turns.
pub(crate) fn of_answer(loaded: &LoadedAnswer, evidence: &[Vec<FollowedRef>]) -> Vec<TurnAnswer> {
    loaded.case.turns.iter().map(|record| of_turn(loaded, evidence, record)).collect()
}

fn of_turn(loaded: &LoadedAnswer, evidence: &[Vec<FollowedRef>], record: &TurnRecord) -> TurnAnswer {
    let is_in_turn = |extra: &Extra| extra.get(TURN).and_then(Value::as_u64) == Some(record.turn);
    let answer = &loaded.answer;
    let events = answer.events.iter().enumerate().filter(|(_, event)| is_in_turn(event.extra()));
    let (positions, events): (Vec<usize>, Vec<Event>) = events.map(|(index, event)| (index, event.clone())).unzip();
    let actions = answer.proposed_actions.iter().enumerate().filter(|(_, action)| is_in_turn(&action.extra));
    let (places, actions): (Vec<usize>, Vec<_>) = actions.map(|(index, action)| (index, action.clone())).unzip();
    let attempts: Vec<Attempt> =
        loaded.case.attempts.iter().filter(|attempt| is_in_turn(&attempt.extra)).cloned().collect();
    let unresolved = places.iter().enumerate().flat_map(|(index, place)| {
        let of_action = loaded.unresolved.iter().filter(move |(action, _)| action == place);
        of_action.map(move |(_, evidence)| (index, *evidence))
    });
    let mut turn = LoadedAnswer {
        case: CaseEnvelope { attempts, usage: record.usage.clone(), turns: Vec::new(), ..loaded.case.clone() },
        index: EventIndex::new(&events),
        payloads: loaded.payloads.at(&positions),
        unresolved: unresolved.collect(),
        manifest: loaded.manifest.clone(),
        silent_failures: HashMap::new(),
        answer: Answer { proposed_actions: actions, events, final_output: record.final_output.clone() },
    };
    turn.silent_failures = call_status::silent_failures(&turn);
    let evidence = places.iter().filter_map(|place| evidence.get(*place).cloned()).collect();
    TurnAnswer { number: record.turn, loaded: turn, evidence }
}
