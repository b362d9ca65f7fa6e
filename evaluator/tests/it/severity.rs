//! What ranks before what, from the smallest pairs that show it; and causes that cases share.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{CaseEvaluation, SeverityShare};
use serde_json::{Value, json};

use crate::kit::{CASE, Pair, action, answer, answer_of, answer_with, failure, step};

fn severity(old: &Value, new: &Value) -> f64 {
    Pair::with_answers(old, new).row().severity.map_or(f64::NAN, |severity| severity.score)
}

fn paying(amount: u32, output: &str) -> Value {
    let read = step("c1", "read", &json!({"id": "W1"}), &json!({"sums": [50, 60]}));
    answer_of(&json!({
        "events": read,
        "proposed_actions": [action("a1", "pay", &json!({"amount": amount}), &["c1"])],
        "final_output": {"content_type": "text", "content": output},
    }))
}

/// The same with the call that carried the action out.
fn carried(amount: u32, status: &str) -> Value {
    let mut made = paying(amount, "Done.");
    let [mut call, mut result] = step("c2", "pay", &json!({"amount": amount}), &json!("no"));
    call["action_id"] = json!("a1");
    result["status"] = json!(status);
    made["events"].as_array_mut().unwrap().extend([call, result]);
    made
}

fn parts(row: &CaseEvaluation) -> Vec<&str> {
    row.severity.iter().flat_map(|severity| &severity.parts).map(|part| part.code.as_str()).collect()
}

#[test]
fn the_same_has_none_and_no_answer_has_the_most() {
    assert!(severity(&answer(), &answer()).abs() < 1e-9);
    assert!((severity(&answer(), &failure()) - 1.0).abs() < 1e-9);
    assert!(severity(&failure(), &answer()).abs() < 1e-9, "to answer again is nothing to worry about");
}

#[test]
fn a_changed_action_outweighs_a_changed_text() {
    let said = severity(&paying(50, "You get 50."), &paying(50, "You get 60 in 30 days."));
    let worded = severity(&paying(50, "You get 50."), &paying(50, "50 is yours."));
    let done = severity(&paying(50, "You get 50."), &paying(60, "You get 50."));
    assert!(worded.abs() < 1e-9 && said > worded && done > 4.0 * said, "{worded} {said} {done}");
}

#[test]
fn an_action_whose_call_failed_did_nothing() {
    let mut nothing = paying(60, "Done.");
    nothing["proposed_actions"] = json!([]);
    let failed = Pair::with_answers(&nothing, &carried(60, "error")).row();
    assert!(!parts(&failed).contains(&"high-risk-actions"), "{:?}", failed.severity);
    let worked = Pair::with_answers(&nothing, &carried(60, "ok")).row();
    assert_eq!(parts(&worked)[0], "high-risk-actions");
}

#[test]
fn an_invented_value_that_its_tool_refused_weighs_little() {
    let share = |status: &str| {
        let severity =
            Pair::with_answers(&carried(60, "ok"), &carried(777, status)).titled("Pay me").row().severity.unwrap();
        severity.parts.iter().find(|part| part.code == "ungrounded-argument").map(|part| part.share)
    };
    assert_eq!((share("ok"), share("error")), (Some(0.4), Some(0.05)));
}

#[test]
fn the_parts_give_the_score_and_the_largest_comes_first() {
    let row = Pair::with_answers(&paying(50, "You get 50."), &paying(777, "You get 777."))
        .expecting(&json!({"must_include": ["50"]}))
        .row();
    let severity = row.severity.clone().unwrap();
    assert_eq!(parts(&row), ["high-risk-actions", "expectation-failed", "ungrounded-argument", "output-numbers"]);
    let rest = |parts: &[SeverityShare]| parts.iter().map(|part| 1.0 - part.share).product::<f64>();
    let (decisive, others) = severity.parts.split_at(2);
    let expected = 1.0 - rest(decisive) * (1.0 - (1.0 - rest(others)) / 2.0);
    assert!((severity.score - expected).abs() < 1e-3, "{severity:?}");
    assert!(severity.parts.windows(2).all(|two| two[0].share >= two[1].share));
}

#[test]
fn one_change_in_many_cases_is_one_cluster() {
    let old = answer();
    let total = |total: u32| answer_with(|answer| answer["events"][1]["payload_summary"]["total"] = json!(total));
    let pair = [("a", total(60)), ("b", total(70)), ("c", total(40)), ("d", answer())]
        .into_iter()
        .fold(Pair::empty(), |pair, (id, new)| pair.with(Side::Baseline, id, &old).with(Side::New, id, &new));
    let evaluation = pair.evaluation();
    let clusters: Vec<_> =
        evaluation.clusters.iter().map(|it| (it.code.as_str(), it.place.as_str(), it.case_ids.len())).collect();
    let place = "get_order result.total";
    assert_eq!(clusters, [("tool-result-changed", place, 2), ("tool-result-changed", place, 1)], "grown, and fallen");
    for case in &evaluation.cases[..3] {
        let cluster = evaluation.clusters.iter().find(|it| it.id == case.cause.as_ref().unwrap().cluster).unwrap();
        assert!(cluster.case_ids.contains(&case.case_id));
    }
    assert_eq!(evaluation.cases[3].cause, None);
}

#[test]
fn a_failure_is_the_cause_of_a_case_that_could_not_be_run() {
    let row = Pair::with_answers(&answer(), &failure()).row();
    let cause = row.cause.unwrap();
    assert_eq!((cause.code.as_str(), cause.place.as_str()), ("runner-failure", "http_error 500"));
}

/// An answer with these writes, each carried out by a call with this result.
fn writes(all: &[(&str, Value, Value)]) -> Value {
    let mut made = answer_of(&json!({"events": [], "proposed_actions": []}));
    for (index, (tool, params, result)) in all.iter().enumerate() {
        let (id, call_id) = (format!("a{index}"), format!("w{index}"));
        let [mut call, result] = step(&call_id, tool, params, result);
        call["action_id"] = json!(id);
        made["events"].as_array_mut().unwrap().extend([call, result]);
        let mut proposed = action(&id, tool, params, &[]);
        proposed["risk_level"] = json!("high");
        made["proposed_actions"].as_array_mut().unwrap().push(proposed);
    }
    made
}

fn pay(id: &str, amount: u32) -> (&'static str, Value, Value) {
    ("pay", json!({"order_id": id, "amount": amount}), json!({"paid": amount}))
}

#[test]
fn one_write_among_many_that_differs_outranks_every_case_without_one() {
    let orders: Vec<_> = (0..9).map(|order| format!("W{order}")).collect();
    let paid = |last: u32| {
        let mut all: Vec<_> = orders.iter().map(|order| pay(order, 50)).collect();
        all.push(pay("W9", last));
        writes(&all)
    };
    let one_of_ten = severity(&paid(50), &paid(51));
    let mut talk = paid(50);
    let reads = (0..20).flat_map(|read| step(&format!("r{read}"), "read", &json!({"id": read}), &json!({"x": read})));
    talk["events"].as_array_mut().unwrap().extend(reads);
    talk["final_output"] = json!({"content_type": "text", "content": "777, 888 and 999 of 2024."});
    let without = severity(&paid(50), &talk);
    assert!(without > 0.0 && one_of_ten > without && one_of_ten >= 0.6, "{one_of_ten} {without}");
}

#[test]
fn the_same_values_in_another_form_add_nothing_and_are_one_cluster() {
    let listed =
        |tool: &'static str, items: Value| writes(&[(tool, json!({"id": "W1", "items": items}), json!({"x": 1}))]);
    let pair = [("a", "exchange"), ("b", "return")].into_iter().fold(Pair::empty(), |pair, (id, tool)| {
        let (old, new) = (listed(tool, json!(["1", "2"])), listed(tool, json!("['1', '2']")));
        pair.with(Side::Baseline, id, &old).with(Side::New, id, &new)
    });
    let evaluation = pair.evaluation();
    let clusters: Vec<_> =
        evaluation.clusters.iter().map(|it| (it.code.as_str(), it.place.as_str(), it.case_ids.len())).collect();
    assert_eq!(clusters, [("argument-form", "arguments", 2)]);
    assert!(evaluation.cases.iter().all(|case| case.severity.as_ref().unwrap().score.abs() < 1e-9));
    let other = severity(&listed("exchange", json!(["1", "2"])), &listed("exchange", json!("['1', '3']")));
    assert!(other >= 0.6, "{other}");
}

#[test]
fn an_error_in_a_result_with_status_ok_is_a_failed_write() {
    let refused = ("pay", json!({"order_id": "W1", "amount": 50}), json!("# result = \"Error: no such order\""));
    let row = Pair::with_answers(&writes(&[pay("W1", 50)]), &writes(std::slice::from_ref(&refused))).row();
    assert_eq!(parts(&row)[0], "high-risk-actions", "{:?}", row.severity);
    let again = severity(&writes(&[pay("W1", 50)]), &writes(&[refused.clone(), pay("W1", 50)]));
    assert!(again < 0.6, "the write was made in the end: {again}");
    assert!(severity(&writes(std::slice::from_ref(&refused)), &writes(&[refused])) < 1e-9);
}

#[test]
fn the_order_of_writes_counts_only_on_the_same_thing() {
    let set = |id: &str, to: &str| ("set", json!({"user_id": id, "to": to}), json!({"set": to}));
    let order = |all: &[(&str, &str)]| writes(&all.iter().map(|(id, to)| set(id, to)).collect::<Vec<_>>());
    let there_and_back = order(&[("U1", "Rome"), ("U1", "Oslo")]);
    assert!(severity(&there_and_back, &order(&[("U1", "Oslo"), ("U1", "Rome")])) >= 0.6);
    let apart = order(&[("U1", "Rome"), ("U2", "Oslo")]);
    assert!(severity(&apart, &order(&[("U2", "Oslo"), ("U1", "Rome")])) < 0.6);
}

#[test]
fn a_case_that_baseline_failed_ranks_below_those_it_solved() {
    let row = |phrase: &str| {
        let pair = Pair::with_answers(&paying(50, "You get 50."), &paying(60, "You get 60."));
        pair.expecting(&json!({"must_include": [phrase]})).row()
    };
    let score = |row: &CaseEvaluation| row.severity.as_ref().unwrap().score;
    let (solved, failed) = (row("You get"), row("Goodbye"));
    assert!(score(&solved) >= 0.6 && score(&failed) < 0.1, "{:?} {:?}", solved.severity, failed.severity);
    assert!(parts(&failed).contains(&"baseline-failed"));
}

#[test]
fn a_label_that_baseline_failed_ranks_the_case_like_an_unmet_expectation() {
    let row = |label: Option<bool>| {
        let pair = Pair::with_answers(&paying(50, "You get 50."), &paying(60, "You get 60."));
        let pair = label.into_iter().fold(pair, |pair, solved| pair.labelled(Side::Baseline, &json!({CASE: solved})));
        pair.row()
    };
    let score = |row: &CaseEvaluation| row.severity.as_ref().unwrap().score;
    let (unknown, solved, failed) = (row(None), row(Some(true)), row(Some(false)));
    assert!((score(&unknown) - score(&solved)).abs() < 1e-9);
    assert!(score(&solved) >= 0.6 && score(&failed) < 0.1, "{:?} {:?}", solved.severity, failed.severity);
    assert!(parts(&failed).contains(&"baseline-failed"));
    assert_eq!(failed.verdict, solved.verdict, "labels rank and do not judge");
}

#[test]
fn labels_of_new_say_nothing_of_baseline() {
    let pair = Pair::with_answers(&paying(50, "You get 50."), &paying(60, "You get 60."));
    let row = pair.labelled(Side::New, &json!({CASE: false})).row();
    assert!(!parts(&row).contains(&"baseline-failed"), "{:?}", row.severity);
}

#[test]
fn a_call_is_paired_as_its_action_is() {
    let old = writes(&[pay("W1", 50), pay("W2", 60)]);
    let row = Pair::with_answers(&old, &writes(&[pay("W2", 60), pay("W1", 51)])).row();
    assert!(row.reasons.iter().all(|reason| !reason.message.contains("order_id")), "{:?}", row.reasons);
    let cause = row.cause.unwrap();
    assert_eq!((cause.code.as_str(), cause.place.as_str()), ("arguments", "pay.amount"));
}

fn said(role: &str, content: &str) -> Value {
    json!({"type": "message", "ts": 1, "role": role, "content": content})
}

#[test]
fn a_message_is_the_first_divergence_only_if_no_step_differs() {
    let talk = |greeting: &str, question: &str, read: &str| {
        let mut events = vec![said("assistant", greeting), said("user", question)];
        events.extend(step("c1", "read", &json!({"id": read}), &json!({"sum": 5})));
        answer_of(&json!({"events": events, "proposed_actions": []}))
    };
    let pointer = |old: &Value, new: &Value| {
        let divergence = Pair::with_answers(old, new).row().first_divergence.unwrap();
        divergence.pointers.last().unwrap().pointer.clone()
    };
    let old = talk("Hello!", "Where is W1?", "W1");
    assert_eq!(pointer(&old, &talk("Hi!", "Find W1.", "W2")), "/events/2");
    assert_eq!(pointer(&old, &talk("Hi!", "Find W1.", "W1")), "/events/0");
    assert_eq!(pointer(&old, &talk("Hello!", "Find W1.", "W1")), "/events/1");
}

#[test]
fn a_read_without_dependent_steps_is_no_cause() {
    let asked = |reads: &[&str], amount: u32| {
        let calls = reads.iter().enumerate();
        let events: Vec<_> = calls
            .flat_map(|(index, id)| step(&format!("c{index}"), "read", &json!({"id": id}), &json!({"of": id})))
            .collect();
        let refs: Vec<_> = (0..reads.len()).map(|index| format!("c{index}")).collect();
        let refs: Vec<_> = refs.iter().map(String::as_str).collect();
        let paid = action("a1", "pay", &json!({"order_id": "W1", "amount": amount}), &refs);
        answer_of(&json!({"events": events, "proposed_actions": [paid]}))
    };
    let cause = |new: &Value| Pair::with_answers(&asked(&["W1"], 50), new).row().cause.unwrap().place;
    assert_eq!(cause(&asked(&["W1", "W1"], 51)), "pay.amount", "repeated");
    assert_eq!(cause(&asked(&["W1", "W7"], 51)), "pay.amount", "about something else");
    assert_eq!(cause(&asked(&["W7", "W1"], 51)), "pay.amount", "moved");
}

#[test]
fn a_write_that_is_missing_outranks_any_number_of_additional_ones() {
    let all: Vec<_> = (0..4).map(|order| pay(&format!("W{order}"), 50)).collect();
    let (missing, additional) =
        (severity(&writes(&all), &writes(&all[1..])), severity(&writes(&all[1..]), &writes(&all)));
    let many = severity(&writes(&all[..1]), &writes(&all));
    assert!(missing > many && many >= additional && additional >= 0.6, "{missing} {many} {additional}");
}

/// An agent that reads, and may hand the case over in the end.
fn handing_over(tool: Option<&str>) -> Value {
    let mut events = step("c1", "read", &json!({"id": "W1"}), &json!({"sum": 50})).to_vec();
    if let Some(tool) = tool {
        events.extend(step("c2", tool, &json!({"summary": "The customer wants the money of W1 back."}), &json!("ok")));
    }
    answer_of(&json!({"events": events, "proposed_actions": []}))
}

#[test]
fn a_hand_over_on_one_side_only_ranks_like_a_write_of_its_risk() {
    let (without, with) = (handing_over(None), handing_over(Some("transfer_to_human_agents")));
    let (missing, additional) = (severity(&with, &without), severity(&without, &with));
    let of_medium_risk = (0.8 * 0.6..0.6).contains(&missing) && (0.6 * 0.6..missing).contains(&additional);
    assert!(of_medium_risk, "{missing} {additional}");
    assert!(severity(&with, &with) < 1e-9);
    let row = Pair::with_answers(&with, &without).row();
    assert_eq!(parts(&row)[0], "hand-over");
    let other = severity(&without, &handing_over(Some("read_more")));
    assert!(other < additional, "a tool that reads: {other}");
}
