//! Properties of any pair of answers: a run is unchanged against itself, and differences without meaning change no verdict.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use counterproof_artifact::evaluation::Verdict;
use counterproof_artifact::{Case, Outcome, Side};
use counterproof_evaluator::{
    ActionRow, Differences, EventIndex, EventRow, JsonChange, JsonChanges, Row, Rules, WithEvidence, follow_evidence,
};
use counterproof_validation::{Code, validate_case};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::kit::{CASE, Pair, answer};

pub(crate) fn arguments() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..200).prop_map(Value::from),
        (-1e6f64..1e6).prop_map(Value::from),
        "[a-z\u{e9}\u{202e} ]{0,6}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[a-d/~]{1,2}", inner), 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    });
    prop::collection::vec(("[a-d]", value), 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

/// An answer with any number of steps, some of them concurrent. The evidence of its first action is its first step.
pub(crate) fn any_answer() -> impl Strategy<Value = Value> {
    let step = ("(get|set|find)_[ab]", arguments(), arguments(), any::<bool>(), 0..3_usize);
    let action = ("(get|set)_[ab]", arguments(), "(low|medium|high|unknown)");
    (prop::collection::vec(step, 0..6), prop::collection::vec(action, 1..4), "[a-c \n]{0,30}").prop_map(
        |(steps, actions, output)| {
            let mut made = answer();
            let mut events = Vec::new();
            for (index, (tool, args, payload, ok, early)) in steps.iter().enumerate() {
                let call_id = format!("c{index}");
                let status = if *ok { "ok" } else { "error" };
                // The call is made before the results of earlier calls arrive.
                let place = events.len().saturating_sub(*early);
                events.insert(place, json!({"type": "tool_call", "call_id": call_id, "tool": tool, "args": args}));
                events.push(json!({
                    "type": "tool_result", "call_id": call_id, "status": status, "latency_ms": 1,
                    "payload_summary": payload,
                }));
            }
            events.iter_mut().enumerate().for_each(|(index, event)| event["ts"] = json!(index));
            let evidence = if steps.is_empty() { json!([]) } else { json!([{"kind": "tool_result", "call_id": "c0"}]) };
            let template = made["proposed_actions"][0].clone();
            let actions = actions.iter().enumerate().map(|(index, (tool, params, risk))| {
                let mut action = template.clone();
                action["action_id"] = json!(format!("a{index}"));
                action["tool_name"] = json!(tool);
                action["params"] = params.clone();
                action["risk_level"] = json!(risk);
                action["evidence_refs"] = if index == 0 { evidence.clone() } else { json!([]) };
                action
            });
            made["proposed_actions"] = actions.collect();
            made["events"] = json!(events);
            made["final_output"]["content"] = json!(output);
            made
        },
    )
}

/// How a comparison is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    /// With baseline and new swapped.
    Mirrored,
}

/// The changes of a pair, sorted: their order depends on which side's keys come first.
fn changed_values(changes: &JsonChanges, direction: Direction) -> Vec<String> {
    let mirror = |change: &JsonChange| JsonChange { baseline: change.new.clone(), new: change.baseline.clone() };
    let read = changes.iter().map(|change| match direction {
        Direction::Forward => change.clone(),
        Direction::Mirrored => mirror(change),
    });
    sorted(read.map(|change| format!("{change:?}")).collect())
}

/// The rows in an order that does not depend on the comparison.
fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort_unstable();
    rows
}

/// Asserts that every operation of the one comparison is mirrored in the other.
#[track_caller]
pub(crate) fn is_mirrored(there: &Differences, back: &Differences) {
    let seen = |row: Row, direction| if direction == Direction::Mirrored { row.mirrored() } else { row };
    let events = |found: &Differences, direction: Direction| {
        let row = |row: &EventRow| {
            let (pair, changes) = (seen(row.row, direction), changed_values(&row.changes, direction));
            format!("{pair:?} {} {} {changes:?}", row.moved, row.concurrent)
        };
        sorted(found.events.iter().map(row).collect())
    };
    let actions = |found: &Differences, direction: Direction| {
        let row =
            |row: &ActionRow| format!("{:?} {:?}", seen(row.row, direction), changed_values(&row.changes, direction));
        sorted(found.actions.iter().map(row).collect())
    };
    let met = |found: &Differences| found.recovery.map(|row| found.events[row].row);
    assert_eq!((there.cost, there.exact), (back.cost, back.exact));
    assert_eq!(events(there, Direction::Forward), events(back, Direction::Mirrored));
    assert_eq!(actions(there, Direction::Forward), actions(back, Direction::Mirrored));
    assert_eq!(met(there), met(back).map(Row::mirrored));
    let parted = |found: &Differences| {
        found.parting.map(|sides| (sides.baseline.map(|step| step.event), sides.new.map(|step| step.event)))
    };
    assert_eq!(parted(there), parted(back).map(|(baseline, new)| (new, baseline)));
}

/// The same value with the keys of every object in reverse order.
pub(crate) fn reordered(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(reordered).collect(),
        Value::Object(fields) => {
            let turned: Map<_, _> = fields.iter().rev().map(|(key, value)| (key.clone(), reordered(value))).collect();
            Value::Object(turned)
        }
        other => other.clone(),
    }
}

/// The differences of two artifacts, both of which are answers.
fn differences(old: &Value, new: &Value) -> Differences {
    let pair = Pair::with_answers(old, new);
    let request = pair.request();
    let load = |side: &counterproof_evaluator::SideRuns| side.first().load(&CASE.parse().unwrap());
    let (old, new) = (load(&request.baseline), load(&request.new));
    let (old, new) = (old.answer().unwrap(), new.answer().unwrap());
    let (old_evidence, new_evidence) = (follow_evidence(old), follow_evidence(new));
    let old = WithEvidence { loaded: old, evidence: &old_evidence };
    Differences::between(old, WithEvidence { loaded: new, evidence: &new_evidence }, &Rules::default())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn an_answer_is_unchanged_against_itself_in_any_key_order(made in any_answer()) {
        Pair::with_answers(&made, &reordered(&made)).is(Verdict::Unchanged, &[]);
    }

    #[test]
    fn every_row_of_an_answer_with_itself_is_a_pair_at_the_same_index(made in any_answer()) {
        let found = differences(&made, &reordered(&made));
        prop_assert!(found.is_empty() && found.exact && found.cost == 0 && found.recovery.is_none());
        for (index, row) in found.events.iter().enumerate().map(|(index, row)| (index, row.row))
            .chain(found.actions.iter().enumerate().map(|(index, row)| (index, row.row)))
        {
            prop_assert_eq!(row, Row::Both { baseline: index, new: index });
        }
    }

    #[test]
    fn the_order_of_keys_does_not_change_the_result(old in any_answer(), new in any_answer()) {
        let plain = Pair::with_answers(&old, &new).row();
        let turned = Pair::with_answers(&reordered(&old), &reordered(&new)).row();
        prop_assert_eq!(plain.verdict, turned.verdict);
        let codes = |row: &counterproof_artifact::evaluation::CaseEvaluation| {
            row.reasons.iter().map(|reason| (reason.code.clone(), reason.pointers.clone())).collect::<Vec<_>>()
        };
        prop_assert_eq!(codes(&plain), codes(&turned));
    }

    #[test]
    fn a_difference_does_not_depend_on_the_order_of_the_sides(old in any_answer(), new in any_answer()) {
        let there = Pair::with_answers(&old, &new).row();
        let back = Pair::with_answers(&new, &old).row();
        prop_assert_eq!(there.verdict == Verdict::Unchanged, back.verdict == Verdict::Unchanged);
        prop_assert_eq!(there.first_divergence.is_some(), there.verdict != Verdict::Unchanged);
    }

    #[test]
    fn swapping_the_sides_mirrors_every_operation(old in any_answer(), new in any_answer()) {
        is_mirrored(&Pair::with_answers(&old, &new).differences(), &Pair::with_answers(&new, &old).differences());
    }

    #[test]
    fn a_ref_is_found_where_the_check_says_that_it_resolves(
        made in any_answer(), kind in 0..3_usize, id in "c[0-7]|d[0-2]|events\\[[0-9]{1,2}\\]", ids in prop::collection::vec("c[0-7]", 12),
    ) {
        let mut made = made;
        made["case_id"] = json!(CASE);
        made["version"] = json!("new");
        let events = made["events"].as_array_mut().unwrap();
        events.push(json!({"type": "retrieval", "ts": 1, "query": "", "doc_ids": ["d0", "d1"]}));
        for (event, id) in events.iter_mut().zip(&ids) {
            event["event_id"] = json!(id);
        }
        let (kind, field) = [("tool_result", "call_id"), ("retrieval_doc", "doc_id"), ("event", "id")][kind];
        made["proposed_actions"][0]["evidence_refs"] = json!([{"kind": kind, field: id}]);
        let unresolved = validate_case(&made).iter().any(|finding| finding.code == Code::EvidenceUnresolved);
        let Outcome::Ok(answer) = serde_json::from_value::<Case>(made).unwrap().outcome else { unreachable!() };
        let target = &answer.proposed_actions[0].evidence_refs[0].target;
        prop_assert_eq!(EventIndex::new(&answer.events).find(target).is_none(), unresolved);
    }

    #[test]
    fn any_bytes_in_place_of_an_artifact_give_a_verdict(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let row = Pair::empty().with_bytes(Side::Baseline, CASE, &bytes).with(Side::New, CASE, &answer()).row();
        prop_assert_eq!(row.verdict, Verdict::Invalid);
    }
}
