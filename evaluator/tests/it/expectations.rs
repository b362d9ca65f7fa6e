//! The meaning of each key of `expected`, and the values that expressions can read.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{ExpectationResult, Judgement, Verdict};
use serde_json::{Value, json};

use crate::kit::{Pair, action, answer, answer_of, answer_with, step};

/// The result of an expectation on an answer.
fn judged(expected: &Value, answer: &Value) -> ExpectationResult {
    let mut row = Pair::with_answers(answer, answer).expecting(expected).row();
    assert_eq!(row.expectations.len(), 1, "{expected}");
    let result = row.expectations.remove(0);
    assert_eq!(result.baseline, result.new, "both sides are judged by the same code");
    result
}

#[track_caller]
fn holds(expected: &Value, answer: &Value, met: bool) {
    let result = judged(expected, answer);
    assert_eq!(result.new.as_ref().unwrap().is_met(), met, "{expected}: {result:?}");
}

fn saying(content: &Value) -> Value {
    let content_type = if content.is_string() { "text" } else { "json" };
    answer_of(&json!({"final_output": {"content_type": content_type, "content": content}}))
}

fn calling(tools: &[&str]) -> Value {
    let call = |(index, tool): (usize, &&str)| json!({"type": "tool_call", "ts": index, "call_id": format!("c{index}"), "tool": tool, "args": {}});
    answer_of(&json!({"events": tools.iter().enumerate().map(call).collect::<Vec<_>>()}))
}

#[test]
fn required_actions_are_matched_by_type_not_by_tool() {
    holds(&json!({"action_required": ["refund"]}), &answer(), true);
    holds(&json!({"action_required": ["refund_order"]}), &answer(), false);
    holds(&json!({"action_required": ["refund", "note"]}), &answer(), false);
    holds(&json!({"action_required": []}), &answer_of(&json!({})), true);
}

#[test]
fn required_tools_are_matched_with_the_calls_in_any_order() {
    holds(&json!({"tool_required": ["b", "a"]}), &calling(&["a", "x", "b"]), true);
    holds(&json!({"tool_required": ["a", "c"]}), &calling(&["a", "b"]), false);
    // The tool of a proposed action is not a call.
    holds(&json!({"tool_required": ["refund_order"]}), &answer(), false);
}

#[test]
fn a_refused_call_is_named_with_its_rule_and_any_other_payload_is_none() {
    let called = |status: &str, payload: &Value| {
        let call = json!({"type": "tool_call", "ts": 1, "call_id": "c", "tool": "shop.pay", "args": {}});
        let result = json!({
            "type": "tool_result", "ts": 2, "call_id": "c", "status": status, "latency_ms": 1, "payload_summary": payload,
        });
        answer_of(&json!({"recorded_run": by_guard(), "events": [call, result]}))
    };
    let decision = json!({"decision": {"action": "BLOCK", "rule_id": "limit", "summary": "too much"}});
    let expected = json!({"no_refused_calls": true});
    let found = |answer: &Value| judged(&expected, answer).new.unwrap();
    let refused = "call of shop.pay: refused by the rule limit (too much)".to_owned();
    assert_eq!(found(&called("error", &decision)), Judgement::Unmet(refused));
    let without_rule = json!({"decision": {"reason_code": "AMBIGUOUS_REQUEST"}});
    let refused = "call of shop.pay: refused (AMBIGUOUS_REQUEST)".to_owned();
    assert_eq!(found(&called("error", &without_rule)), Judgement::Unmet(refused));
    let without_end = json!({"type": "tool_call", "ts": 1, "call_id": "c", "tool": "shop.pay", "args": {},
        "decision": {"rule_id": "limit"}});
    let refused = "call of shop.pay: refused by the rule limit".to_owned();
    assert_eq!(found(&answer_of(&json!({"events": [without_end]}))), Judgement::Unmet(refused));
    for (status, payload) in [("ok", &decision), ("error", &json!("decision")), ("error", &json!({"decision": "no"}))] {
        holds(&expected, &called(status, payload), true);
    }
    let [old, new] = [called("ok", &json!({"paid": 1})), called("error", &decision)];
    let row = Pair::with_answers(&old, &new).expecting(&expected).row();
    let message = "no_refused_calls no longer met: call of shop.pay: refused by the rule limit (too much)";
    assert_eq!(row.reasons[0].message, message);
    let failed = "result of shop.pay: refused by the rule limit (too much), but succeeded on baseline";
    assert_eq!(row.reasons[1].message, failed);
}

/// The facts of a run that a shim recorded.
fn by_guard() -> Value {
    json!({"sources": [{"kind": "agent"}, {"kind": "server", "server_name": "shop"}]})
}

#[test]
fn without_a_guard_it_is_unknown_whether_a_call_was_refused() {
    let expected = json!({"no_refused_calls": true});
    let found = |recorded: &Value| judged(&expected, &answer_of(&json!({"recorded_run": recorded}))).new.unwrap();
    let undecided = Judgement::Undecided("no guard recorded the calls".to_owned());
    assert_eq!(found(&json!({"sources": [{"kind": "agent"}]})), undecided);
    assert_eq!(found(&json!({"sources": []})), undecided);
    assert_eq!(judged(&expected, &answer()).new, Some(undecided), "no recorded run at all");
    assert_eq!(found(&by_guard()), Judgement::Met("none refused".to_owned()));
    // A guard that no longer takes part is a difference.
    let [old, new] = [by_guard(), json!({"sources": []})].map(|it| answer_of(&json!({"recorded_run": it})));
    let row = Pair::with_answers(&old, &new).expecting(&expected).row();
    let message = "no_refused_calls could not be decided on new: no guard recorded the calls";
    assert_eq!(row.reasons[0].message, message);
}

#[test]
fn a_tool_sequence_must_be_a_prefix_of_all_calls() {
    let sequence = json!({"tool_sequence": ["a", "b"]});
    for (calls, met) in [
        (&["a", "b"][..], true),
        (&["a", "b", "c"], true),
        (&["a", "x", "b"], false),
        (&["x", "a", "b"], false),
        (&["b", "a"], false),
        (&["a"], false),
        (&[], false),
    ] {
        holds(&sequence, &calling(calls), met);
    }
    holds(&json!({"tool_sequence": []}), &calling(&["a"]), true);
}

#[test]
fn documents_are_required_among_all_retrievals() {
    let retrieval = |ids: &[&str]| json!({"type": "retrieval", "ts": 1, "query": "q", "doc_ids": ids});
    let answer = answer_of(&json!({"events": [retrieval(&["d1", "d2"]), retrieval(&["d3"])]}));
    holds(&json!({"retrieval_required": {"doc_ids": ["d3", "d1"]}}), &answer, true);
    holds(&json!({"retrieval_required": {"doc_ids": ["d1", "d4"]}}), &answer, false);
}

#[test]
fn phrases_are_found_in_any_letter_case_in_texts_and_indented_json() {
    let text = saying(&json!("Ihre RÜCKZAHLUNG ist unterwegs."));
    let object = saying(&json!({"Total": 50, "items": ["Lamp"]}));
    for (phrases, answer, all, none) in [
        (json!(["rückzahlung", "UNTERWEGS"]), &text, true, false),
        (json!(["rückzahlung", "sorry"]), &text, false, false),
        (json!(["sorry"]), &text, false, true),
        (json!(["\"total\": 50", "  \"items\": [\n    \"lamp\""]), &object, true, false),
        (json!(["\"total\":50"]), &object, false, true),
        (json!([]), &text, true, true),
    ] {
        holds(&json!({"must_include": phrases}), answer, all);
        holds(&json!({"must_not_include": phrases}), answer, none);
    }
}

#[test]
fn a_schema_is_draft_07_by_default_and_every_violation_is_reported() {
    // A list of schemas for `items` means one for each place in draft-07, and is an error in 2020-12.
    let tuple = json!({"properties": {"pair": {"items": [{"type": "string"}], "additionalItems": false}}});
    holds(&json!({"json_schema": tuple}), &saying(&json!({"pair": ["a"]})), true);
    holds(&json!({"json_schema": tuple}), &saying(&json!({"pair": ["a", "b"]})), false);
    let newer = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"pair": {"prefixItems": [{"type": "string"}]}}});
    holds(&json!({"json_schema": newer}), &saying(&json!({"pair": [1]})), false);
    // It is held against the content alone, and a word that no draft knows is no error.
    holds(&json!({"json_schema": {"type": "string", "nonsense": 1}}), &saying(&json!("text")), true);
    holds(&json!({"json_schema": false}), &saying(&json!("text")), false);
    let two = json!({"json_schema": {"required": ["a"], "properties": {"b": {"type": "number"}}}});
    let found = judged(&two, &saying(&json!({"b": "x"}))).new.unwrap().found().to_owned();
    assert!(found.contains("\"a\"") && found.contains("/b"), "{found}");
}

#[test]
fn a_schema_whose_references_multiply_is_undecided_with_the_reason() {
    let mut parts: serde_json::Map<_, _> = (0..40)
        .map(|part| {
            let next = json!({"$ref": format!("#/definitions/a{}", part + 1)});
            (format!("a{part}"), json!({"allOf": [next.clone(), next]}))
        })
        .collect();
    parts.insert("a40".to_owned(), json!({"type": "integer"}));
    let expected = json!({"json_schema": {"definitions": parts, "$ref": "#/definitions/a0"}});
    let Some(Judgement::Undecided(reason)) = judged(&expected, &saying(&json!("text"))).new else {
        panic!("it is decided");
    };
    assert!(reason.contains("more than 10000 schemas"), "{reason}");
}

#[test]
fn evidence_is_required_for_all_actions_above_low_risk_and_must_resolve_for_all() {
    let expected = json!({"evidence_required_for_actions": true});
    let with = |risk: &str, calls: &[&str]| {
        let mut action = action("a1", "refund_order", &json!({}), calls);
        action["risk_level"] = json!(risk);
        let events = step("c1", "get_order", &json!({}), &json!({"total": 50}));
        answer_of(&json!({"proposed_actions": [action], "events": events}))
    };
    for (risk, calls, met) in [
        ("high", &["c1"][..], true),
        ("high", &[], false),
        ("medium", &[], false),
        ("unknown", &[], false),
        ("low", &[], true),
        ("low", &["c9"], false),
        ("high", &["c1", "c9"], false),
    ] {
        holds(&expected, &with(risk, calls), met);
    }
    holds(&expected, &answer_of(&json!({})), true);
    let off = Pair::with_answers(&with("high", &[]), &with("high", &[]))
        .expecting(&json!({"evidence_required_for_actions": false}));
    assert_eq!(off.row().expectations, []);
}

#[test]
fn an_expression_reads_the_answer_and_the_input() {
    for (expression, met) in [
        ("final_output.content.contains('50') && final_output.content_type == 'text'", true),
        ("proposed_actions.all(a, a.params.amount <= 50 && size(a.evidence_refs) == 2)", true),
        ("events.exists(e, e.type == 'tool_result' && e.payload_summary.total + 1 == 51)", true),
        ("input.user == 'My money, please' && !has(input.context)", true),
        ("proposed_actions[0].params.amount < 50", false),
    ] {
        holds(&json!({"expect": [expression]}), &answer(), met);
    }
}

#[test]
fn an_expression_reads_a_payload_inline_or_from_an_asset() {
    let kept = answer_with(|answer| {
        answer["events"][1].as_object_mut().unwrap().remove("payload_summary");
        answer["events"][1]["payload_asset_href"] = json!("assets/payload.json");
    });
    let pair = Pair::with_answers(&answer(), &kept).with_asset(Side::New, "payload.json", b"{\"total\": 50}");
    let row = pair.expecting(&json!({"expect": ["events[1].payload_summary.total == 50"]})).row();
    assert!(row.expectations[0].new.as_ref().unwrap().is_met(), "{row:?}");
}

#[test]
fn an_expression_that_is_neither_true_nor_false_is_not_met_and_says_why() {
    let result =
        judged(&json!({"expect": [{"name": "the total", "expr": "final_output.content.total == 50"}]}), &answer());
    assert_eq!(result.expected, "the total: `final_output.content.total == 50`");
    let new = result.new.unwrap();
    assert!(new.is_unmet(), "{new:?}");
    assert_eq!(new.found(), "it failed: cannot read field `total` of a string");
    let row = Pair::with_answers(&answer(), &saying(&json!({"total": 50})))
        .expecting(&json!({"expect": ["final_output.content.contains('refund')"]}))
        .row();
    assert_eq!(row.verdict, Verdict::Regressed);
    assert!(row.reasons[0].message.contains("`contains` does not take an object and a string"), "{:?}", row.reasons[0]);
}

#[test]
fn an_expression_that_takes_too_long_is_not_decided_and_no_regression() {
    let many: Vec<_> = (0..200).map(|index| json!({"type": "note", "ts": index})).collect();
    let long = answer_with(|answer| answer["events"].as_array_mut().unwrap().extend(many));
    let expected = json!({"expect": ["events.all(a, events.all(b, events.all(c, a.ts + b.ts + c.ts >= 0)))"]});
    let row = Pair::with_answers(&answer(), &long).expecting(&expected).row();
    assert_eq!(row.verdict, Verdict::Changed, "{row:#?}");
    let undecided = row.reasons.iter().find(|reason| reason.code == "expectation-undecided").unwrap();
    assert!(undecided.message.contains("takes more than 1000000 steps"), "{undecided:?}");
    assert!(row.expectations[0].new.as_ref().unwrap().is_undecided());
    assert_eq!(row.unmet_on_new().len(), 1);
    assert_eq!(
        Pair::with_answers(&long, &answer()).expecting(&expected).row().verdict,
        Verdict::Changed,
        "and no improvement"
    );
    assert_eq!(Pair::with_answers(&long, &long).expecting(&expected).row().verdict, Verdict::Unchanged);
}

#[test]
fn a_false_expression_shows_the_values_that_it_read() {
    let found = |expect: &str, content: &Value| {
        let expected = json!({"expect": [{"name": "a fair total", "expr": expect}]});
        judged(&expected, &saying(content)).new.unwrap().found().to_owned()
    };
    let total = "final_output.content.total < 50";
    assert_eq!(found(total, &json!({"total": 60})), "final_output.content.total is 60");
    assert_eq!(found("size(events) > 1 + 1", &json!("Hi")), "size(events) is 0");
    assert_eq!(found("1 == 2", &json!("Hi")), "it is false");
    let unnamed = judged(&json!({"expect": [total]}), &saying(&json!({"total": 60}))).new.unwrap();
    assert_eq!(unnamed.found(), format!("`{total}` is false: final_output.content.total is 60"));
    let hostile = found("final_output.content == 'b'", &json!(format!("a\u{202e}{}", "\n".repeat(1000))));
    assert!(hostile.starts_with(r#"final_output.content is "a\u{202e}\n"#) && hostile.len() < 400, "{hostile}");
}
