//! Expectations of the turns of a conversation.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use counterproof_artifact::evaluation::{Judgement, Verdict};
use serde_json::{Value, json};

use crate::kit::{Pair, answer_of};

fn call(turn: u64, id: &str, tool: &str, amount: u64) -> [Value; 2] {
    let call =
        json!({"type": "tool_call", "ts": 1, "call_id": id, "tool": tool, "args": {"amount": amount}, "turn": turn});
    let result = json!({"type": "tool_result", "ts": 2, "call_id": id, "status": "ok", "latency_ms": 1, "turn": turn});
    [call, result]
}

/// A conversation of two turns: a lookup, then a refund on its result.
fn conversation(amount: u64, said: &str) -> Value {
    let events = [call(1, "a", "get_order", 0), call(2, "b", "refund", amount)].concat();
    let text = |text: &str| json!({"content_type": "text", "content": text});
    answer_of(&json!({
        "attempts": [
            {"attempt": 1, "started_at": "2026-01-31T12:00:00Z", "latency_ms": 100, "outcome": "ok", "request": 1, "turn": 1},
            {"attempt": 2, "started_at": "2026-01-31T12:00:01Z", "latency_ms": 250, "outcome": "ok", "request": 2, "turn": 2},
        ],
        "events": events,
        "proposed_actions": [{
            "action_id": "b", "action_type": "refund", "tool_name": "refund", "params": {"amount": amount},
            "risk_level": "high", "risk_tags": [], "evidence_refs": [{"kind": "tool_result", "call_id": "a"}], "turn": 2,
        }],
        "final_output": text(said),
        "turns": [{"turn": 1, "final_output": text("It is paid.")}, {"turn": 2, "final_output": text(said)}],
    }))
}

fn judged(answer: &Value, case: &Value) -> Vec<(Option<u64>, String, Option<bool>)> {
    let row = Pair::with_answers(answer, answer).of_case(case).row();
    let met = |judgement: &Judgement| (!judgement.is_undecided()).then(|| judgement.is_met());
    let result = |result: &counterproof_artifact::evaluation::ExpectationResult| {
        let turn = result.turn.map(counterproof_artifact::Count::get);
        (turn, result.code.clone(), met(result.new.as_ref().unwrap()))
    };
    row.expectations.iter().map(result).collect()
}

#[test]
fn a_turn_is_judged_by_its_own_calls_and_answer() {
    let case = json!({
        "turns": [
            {"user": "Is A-1 paid?", "expected": {"tool_required": ["refund"], "must_include": ["paid"], "max_steps": 1}},
            {"user": "Refund it", "expected": {
                "tool_sequence": ["refund"], "must_include": ["paid"], "evidence_required_for_actions": true,
                "max_latency_ms": 300, "expect": ["input.user == 'Refund it' && proposed_actions.size() == 1"],
            }},
        ],
        "expected": {"tool_sequence": ["get_order", "refund"], "max_latency_ms": 300},
    });
    let results = judged(&conversation(50, "Refunded."), &case);
    let of = |turn: Option<u64>, code: &str, met: bool| (turn, code.to_owned(), Some(met));
    assert_eq!(
        results,
        [
            of(Some(1), "tool_required", false),
            of(Some(1), "must_include", true),
            of(Some(1), "max_steps", true),
            of(Some(2), "tool_sequence", true),
            of(Some(2), "must_include", false),
            of(Some(2), "evidence_required_for_actions", true),
            of(Some(2), "max_latency_ms", true),
            of(Some(2), "expect", true),
            of(None, "tool_sequence", true),
            of(None, "max_latency_ms", false),
        ]
    );
}

#[test]
fn an_expectation_that_new_no_longer_meets_names_its_turn() {
    let case = json!({"turns": [
        {"user": "Is A-1 paid?"},
        {"user": "Refund it", "expected": {"expect": ["proposed_actions.all(a, a.params.amount <= 50)"], "must_include": ["Refunded"]}},
    ]});
    let row = Pair::with_answers(&conversation(50, "Refunded."), &conversation(500, "Refunded.")).of_case(&case).row();
    assert_eq!(row.verdict, Verdict::Regressed);
    let messages: Vec<_> = row.reasons.iter().map(|reason| reason.message.as_str()).collect();
    assert!(messages.iter().any(|message| message.starts_with("turn 2: expect no longer met")), "{messages:#?}");
}

#[test]
fn an_answer_without_the_turn_is_undecided_or_unmet() {
    let case = json!({"turns": [{"user": "a"}, {"user": "b"}, {"user": "c", "expected": {"must_include": ["x"]}}]});
    assert_eq!(judged(&conversation(50, "x"), &case)[0].2, Some(false));
    let mut without = conversation(50, "x");
    without.as_object_mut().unwrap().remove("turns");
    assert_eq!(judged(&without, &case)[0].2, None);
}
