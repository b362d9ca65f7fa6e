//! What was asked, said and done, in a few values: the request, both answers, and the writes that differ.

use std::collections::{BTreeMap, HashSet};

use counterproof_artifact::evaluation::{ChangedArgument, Effect, Story};
use counterproof_artifact::{Content, RiskLevel, Side, Sides};
use counterproof_cases::CaseSpec;
use serde_json::Value;

use super::calls::{is_write, is_writing_call};
use super::outcomes::Outcomes;
use super::writes::{self, Write, WriteRow};
use crate::diff::json::JsonChange;
use crate::diff::{Differences, WithEvidence};
use crate::grounding::carried_out;
use crate::load::evidence::resolved_count;
use crate::load::{Artifact, LoadedAnswer};
use crate::messages::field_path;
use crate::values::text;

/// Characters of a request and of an answer: two lines of a wide page.
const SAID_CHARS: usize = 240;

/// Characters of a name, a value or a target.
const VALUE_CHARS: usize = 40;

/// Maximum number of tools whose writes differ, and of values of each.
const EFFECTS_LISTED: usize = 8;
const VALUES_LISTED: usize = 3;

/// What the story of a case is made of.
pub(crate) struct StoryInput<'a> {
    pub(crate) spec: Option<&'a CaseSpec>,
    pub(crate) artifacts: Sides<&'a Artifact>,
    /// The differences of the answers with their sides; `None` unless both sides answered.
    pub(crate) compared: Option<(Sides<WithEvidence<'a>>, &'a Differences)>,
}

/// Collects the story of a case.
pub(crate) fn of_case(input: &StoryInput<'_>) -> Story {
    let mut story = Story { asked: input.spec.map(asked).filter(|asked| !asked.is_empty()), ..Story::default() };
    let differs = input.compared.as_ref().is_none_or(|(_, differences)| !differences.is_empty());
    if differs {
        story.baseline_said = input.artifacts.baseline.answer().map(said);
        story.new_said = input.artifacts.new.answer().map(said);
    }
    let Some((sides, differences)) = input.compared else { return story };
    let outcomes = sides.map(|side| Outcomes::new(side.loaded));
    let all = Sides::from_fn(|side| writes::of_side(side, sides.get(side).loaded, outcomes.get(side), differences));
    // By tool, because one side may state a lower risk for the same act.
    let stated = all.baseline.iter().chain(&all.new).filter(|write| is_write(write.risk, write.tool));
    let writing: HashSet<&str> = stated.map(|write| write.tool).collect();
    let writes = Sides::from_fn(|side| {
        let stated = all.get(side).iter().filter(|write| writing.contains(write.tool)).cloned();
        stated.chain(other_calls(side, sides.get(side).loaded, outcomes.get(side), differences)).collect::<Vec<_>>()
    });
    let took_effect = writes.as_ref().map(|writes| writes.iter().filter(|write| !write.failed).count() as u64);
    (story.baseline_writes, story.new_writes) = (took_effect.baseline, took_effect.new);
    if differs {
        story.effects = effects(&writes, sides, differences);
    }
    story
}

/// The words of the user; of a conversation, those of the first turn.
fn asked(spec: &CaseSpec) -> String {
    let first_turn = || spec.turns.first().map_or("", |turn| turn.user.as_str());
    let user = if spec.input.user.is_empty() { first_turn() } else { spec.input.user.as_str() };
    text::one_line(user, SAID_CHARS)
}

fn said(loaded: &LoadedAnswer) -> String {
    match &loaded.answer.final_output.content {
        Content::Text(text) => text::one_line(text, SAID_CHARS),
        Content::Json(object) => text::one_line(&Value::Object(object.clone()).to_string(), SAID_CHARS),
    }
}

/// The writing calls of a side that no action records and that do not state high risk.
fn other_calls<'a>(
    side: Side,
    loaded: &'a LoadedAnswer,
    outcomes: &Outcomes<'_>,
    differences: &Differences,
) -> Vec<Write<'a>> {
    let recorded = carried_out(loaded);
    let rows = differences.events.iter().enumerate();
    let calls = rows.filter_map(|(row, pair)| {
        let position = (*pair.row.indexes().get(side))?;
        let call = loaded.answer.events[position].tool_call()?;
        // Calls of high risk are among the writes already.
        let is_other = call.risk_level != Some(RiskLevel::High) && !recorded.contains_key(&position);
        (is_other && is_writing_call(call)).then(|| Write {
            tool: &call.tool,
            arguments: &call.args,
            risk: call.risk_level.unwrap_or(RiskLevel::Unknown),
            failed: outcomes.call_failed(call),
            events: Some((position, position)),
            row: WriteRow::Call(row),
            is_noise: pair.noise,
        })
    });
    calls.collect()
}

#[derive(Default)]
struct OfTool<'w, 'a> {
    writes: Sides<Vec<&'w Write<'a>>>,
}

fn effects(writes: &Sides<Vec<Write<'_>>>, sides: Sides<WithEvidence<'_>>, differences: &Differences) -> Vec<Effect> {
    let mut tools: BTreeMap<&str, OfTool<'_, '_>> = BTreeMap::new();
    for write in &writes.baseline {
        tools.entry(write.tool).or_default().writes.baseline.push(write);
    }
    for write in &writes.new {
        tools.entry(write.tool).or_default().writes.new.push(write);
    }
    let mut effects: Vec<_> =
        tools.into_iter().filter_map(|(tool, of_tool)| effect(tool, &of_tool.writes, sides, differences)).collect();
    // Stable: tools with the same harm stay in the order of their names.
    effects.sort_by_key(|effect| (effect.harm().is_none(), effect.harm()));
    effects.truncate(EFFECTS_LISTED);
    effects
}

/// The effect of one tool; `None` where both sides wrote the same.
fn effect(
    tool: &str,
    writes: &Sides<Vec<&Write<'_>>>,
    sides: Sides<WithEvidence<'_>>,
    differences: &Differences,
) -> Option<Effect> {
    let succeeded = writes.as_ref().map(|writes| writes.iter().filter(|write| !write.failed).count() as u64);
    let failed = writes.as_ref().map(|writes| writes.iter().filter(|write| write.failed).count() as u64);
    let bare = without_evidence(writes, sides, differences);
    let changed = changed_arguments(writes, differences);
    let more_failed = if failed.new > failed.baseline { failed.new } else { 0 };
    let without_evidence = if bare.new > bare.baseline { bare.new } else { 0 };
    let is_same = succeeded.baseline == succeeded.new && changed.is_empty();
    if is_same && more_failed == 0 && without_evidence == 0 {
        return None;
    }
    let mut all = writes.baseline.iter().chain(&writes.new);
    let proposed = all.clone().all(|write| write.events.is_none());
    Some(Effect {
        tool: text::one_line(tool, VALUE_CHARS),
        baseline: succeeded.baseline,
        new: succeeded.new,
        without_evidence,
        failed: more_failed,
        proposed,
        irreversible: all.any(|write| write.risk == RiskLevel::High),
        changed,
    })
}

/// How many writes of each side have no evidence that resolves. A case without any evidence says nothing of a single write.
fn without_evidence(
    writes: &Sides<Vec<&Write<'_>>>,
    sides: Sides<WithEvidence<'_>>,
    differences: &Differences,
) -> Sides<u64> {
    let is_recorded = sides.iter().any(|(_, side)| side.evidence.iter().any(|refs| !refs.is_empty()));
    Sides::from_fn(|side| {
        let is_bare = |write: &&&Write<'_>| {
            let WriteRow::Action(row) = write.row else { return false };
            let action = *differences.actions[row].row.indexes().get(side);
            action.is_some_and(|action| resolved_count(&sides.get(side).evidence[action]) == 0)
        };
        let bare = writes.get(side).iter().filter(|write| !write.failed).filter(is_bare).count();
        if is_recorded { bare as u64 } else { 0 }
    })
}

/// The arguments that differ where both sides made the write of one row.
fn changed_arguments(writes: &Sides<Vec<&Write<'_>>>, differences: &Differences) -> Vec<ChangedArgument> {
    let on_new = |write: &&&Write<'_>| {
        let mut new = writes.new.iter();
        !write.failed && !write.is_noise && new.any(|other| other.row == write.row && !other.failed)
    };
    let rows = writes.baseline.iter().filter(on_new).map(|write| write.row.changes(differences));
    let changes = rows.filter(|changes| !changes.are_only_reworded()).flat_map(|changes| changes.iter());
    changes.filter_map(changed_argument).take(VALUES_LISTED).collect()
}

fn changed_argument(change: &JsonChange) -> Option<ChangedArgument> {
    // `/proposed_actions/0/params/amount`; other fields of an action, such as its risk, are not arguments.
    let field = change.pointer().split('/').nth(3)?;
    if !matches!(field, "params" | "args") {
        return None;
    }
    let [baseline, new] = [&change.baseline, &change.new].map(|place| match place.as_ref().map(|place| &place.value) {
        None => "none".to_owned(),
        Some(Value::String(text)) => text::one_line(text, VALUE_CHARS),
        Some(value) => text::one_line(&value.to_string(), VALUE_CHARS),
    });
    Some(ChangedArgument { name: text::one_line(&field_path(change.pointer()), VALUE_CHARS), baseline, new })
}
