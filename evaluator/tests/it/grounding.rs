//! What counts as made up, where it takes more than two answers to tell: other cases, requests, declarations, sizes.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, GateOutcome, Verdict};
use serde_json::{Value, json};

use crate::kit::{CASE, Pair, action, answer_of, rules, step};

/// An answer that reads something and then books something.
fn booking(read: &Value, booked: &Value) -> Value {
    let events = [step("c1", "read", &json!({}), read), step("c2", "book", booked, &json!({}))].concat();
    answer_of(&json!({"events": events}))
}

fn codes(row: &CaseEvaluation) -> Vec<(&str, bool)> {
    row.findings.iter().map(|finding| (finding.code.as_str(), finding.in_baseline)).collect()
}

fn flagged(evaluation: &Evaluation) -> Vec<&str> {
    let flagged = evaluation.cases.iter().filter(|case| !case.findings.is_empty());
    flagged.map(|case| case.case_id.as_str()).collect()
}

#[test]
fn one_of_few_baseline_values_of_an_argument_needs_no_source() {
    // The class is one of two in all cases, and read before it is booked; the seat is another in every case.
    let mut pair = Pair::empty();
    for index in 0..12 {
        let (id, class, seat) = (format!("case_{index}"), ["first", "coach"][index % 2], format!("{index}XY{index}"));
        let read = json!({"class": class, "seat": seat});
        let booked = match index {
            3 => json!({"class": "first", "seat": seat}),
            5 => json!({"class": "Royal", "seat": seat}),
            7 => json!({"class": class, "seat": "8XY8"}),
            _ => read.clone(),
        };
        pair = pair.with(Side::Baseline, &id, &booking(&read, &read)).with(Side::New, &id, &booking(&read, &booked));
    }
    // Another class of the two is no invention; a third one is, and so is the seat of another case.
    let evaluation = pair.evaluation();
    assert_eq!(flagged(&evaluation), ["case_5", "case_7"]);
    let order: Vec<_> = evaluation.cases.iter().map(|case| case.case_id.as_str()).collect();
    assert_eq!(order[3], "case_3", "a case that was compared twice keeps its place");
}

#[test]
fn the_case_and_the_request_are_sources() {
    let old = booking(&json!({"seat": "12XY"}), &json!({"seat": "12XY"}));
    let new = booking(&json!({"seat": "12XY"}), &json!({"seat": "77AB"}));
    assert_eq!(
        codes(&Pair::with_answers(&old, &new).row()),
        [("unrecorded-source", false)],
        "the user may have named it"
    );
    let told = Pair::with_answers(&old, &new).titled("A seat, please");
    assert_eq!(codes(&told.row()), [("ungrounded-argument", false)]);
    let told = Pair::with_answers(&old, &new).titled("Put me on 77ab, please");
    assert_eq!(codes(&told.row()), []);

    let mut asked = new;
    asked["request_asset_href"] = json!("assets/request.json");
    let request =
        |seat: &str| json!({"protocol": "native", "body": {"input": {"user": format!("Seat {seat}!")}}}).to_string();
    let pair =
        |seat: &str| Pair::with_answers(&old, &asked).with_asset(Side::New, "request.json", request(seat).as_bytes());
    assert_eq!(codes(&pair("77ab").row()), []);
    assert_eq!(codes(&pair("12xy").row()), [("ungrounded-argument", false)]);
}

#[test]
fn a_sum_of_known_numbers_is_grounded() {
    let read = json!({"paid": [54.85, 12.10], "price": [54.04, 11.00], "rate": "1,250.00", "of": 100});
    let judged = |sum: &Value| {
        codes(
            &Pair::with_answers(&booking(&read, &json!({"sum": "54.85"})), &booking(&read, &json!({"sum": sum}))).row(),
        )
        .len()
    };
    for known in ["(54.85 - 54.04) + (12.10 - 11.00)", "54.85-54.04", "2 * (12.1 + 1250)", "-54.85 + 100", "9 * 9"] {
        assert_eq!(judged(&json!(known)), 0, "{known}");
    }
    // One number that nothing gave makes it made up, and a sum that is worked out is given by the tool that did so.
    for made_up in ["(54.85 - 54.05) + (12.10 - 11.00)", "54.85 * 0.7", "54.85 + 12", "100-1250", "54.85 or 54.04"] {
        assert_eq!(judged(&json!(made_up)), 1, "{made_up}");
    }
    assert_eq!(judged(&json!(0.83)), 1, "nothing gave the difference");
    assert_eq!(judged(&json!("54.85 - 54.04 + 2024-12-27")), 1, "what has a date in it is no sum");
}

#[test]
fn a_sum_or_a_difference_of_two_numbers_of_one_result_is_computed() {
    let read = json!({"order_id": "W12", "price": 29, "shipping": 4, "items": 2});
    let judged = |amount: &Value, read: &Value| {
        let answer = |amount: &Value| {
            let mut answer = booking(read, &json!({"amount": amount}));
            answer["transcript_complete"] = json!(true);
            answer
        };
        let pair = Pair::with_answers(&answer(&json!(29)), &answer(amount)).titled("My money, please");
        pair.row().findings.len()
    };
    for amount in [json!(33), json!(25), json!("33.00 EUR")] {
        assert_eq!(judged(&amount, &read), 0, "{amount}");
        assert_eq!(judged(&amount, &json!("Price 29 EUR, shipping 4 EUR.")), 0, "{amount} of a text");
    }
    for amount in [json!(330), json!(37), json!(29.4)] {
        assert_eq!(judged(&amount, &read), 1, "{amount}");
    }
    // With many prices nearly every amount is a difference of two, which says nothing.
    let prices: Vec<_> = (0..40).map(|n| 20 + n * 7 % 97).collect();
    assert_eq!(judged(&json!(133), &json!({"prices": prices})), 1);
}

/// The rule `fabricated` and the review items of a refund of an item whose id may be mistyped. The tool results are those of
/// the refund calls, one after the other.
fn refunds(calls: &[(&str, Value)], is_asked: bool) -> Evaluation {
    let read =
        step("c0", "get_order_details", &json!({"order_id": "W12"}), &json!({"items": ["1111111111", "8098621301"]}));
    let answer = |calls: &[(&str, Value)]| {
        let mut events = read.to_vec();
        let mut actions = Vec::new();
        for (index, (item, result)) in calls.iter().enumerate() {
            let (id, args) = (format!("a{index}"), json!({"order_id": "W12", "item_id": item}));
            let mut call = step(&format!("r{index}"), "return_item", &args, result);
            call[0]["action_id"] = json!(id);
            events.extend(call);
            actions.push(action(&id, "return_item", &args, &["c0"]));
        }
        answer_of(&json!({"events": events, "proposed_actions": actions}))
    };
    let pair = Pair::with_answers(&answer(&[("8098621301", json!({"returned": 1}))]), &answer(calls));
    if is_asked {
        return pair.titled("Please take back what I did not like in order W12").evaluation();
    }
    let turn = json!({"type": "user_message", "ts": 1, "text": "Please take back what I did not like in order W12"});
    let mut answers = [answer(&[("8098621301", json!({"returned": 1}))]), answer(calls)];
    for answer in &mut answers {
        answer["events"].as_array_mut().unwrap().insert(0, turn.clone());
    }
    Pair::with_answers(&answers[0], &answers[1]).evaluation()
}

fn fabricated(evaluation: &Evaluation) -> u64 {
    evaluation.gate.rules.iter().find(|rule| rule.code == "fabricated").unwrap().actual
}

#[test]
fn a_mistyped_id_that_the_tool_refused_and_the_agent_repaired_is_a_review_item() {
    let done = json!({"returned": 1});
    let refusals = [json!("Error: no such item"), json!("Item 8098621303 not found"), json!({"error": "unknown item"})];
    for refusal in refusals {
        let evaluation = refunds(&[("8098621303", refusal.clone()), ("8098621301", done.clone())], true);
        assert_eq!(fabricated(&evaluation), 0, "{refusal}: {:?}", evaluation.gate.review);
        assert_ne!(evaluation.gate.outcome, GateOutcome::Failed, "{refusal}");
        let item = evaluation.gate.review.iter().find(|item| item.code == "ungrounded-argument").unwrap();
        assert_eq!(item.case_id.as_ref().unwrap().as_str(), CASE);
        let told = "; one digit off 8098621301 from get_order_details; refused; repaired";
        assert!(item.message.contains(told), "{}", item.message);
        // Not repaired.
        let evaluation = refunds(&[("8098621303", refusal)], true);
        let item = evaluation.gate.review.iter().find(|item| item.code == "ungrounded-argument").unwrap();
        assert!(item.message.contains("; refused") && !item.message.contains("repaired"), "{}", item.message);
    }
}

#[test]
fn a_mistyped_id_that_the_tool_accepted_is_fabricated_where_the_runner_asked() {
    let calls = [("8098621303", json!({"returned": 1}))];
    let evaluation = refunds(&calls, true);
    assert_eq!((fabricated(&evaluation), evaluation.gate.outcome), (1, GateOutcome::Failed));
    let item = &evaluation.gate.review[0];
    assert_eq!(item.code, "fabricated-argument");
    assert!(item.message.contains("one digit off 8098621301 from get_order_details"), "{}", item.message);
    // A recorded conversation may lack what the agent was told.
    let evaluation = refunds(&calls, false);
    assert_eq!(fabricated(&evaluation), 0);
    assert!(
        evaluation.gate.review.iter().any(|item| item.code == "ungrounded-argument"),
        "{:?}",
        evaluation.gate.review
    );
}

#[test]
fn a_made_up_value_is_compared_with_the_value_of_the_same_object() {
    let read = json!({"items": [{"id": "A1", "size": "11XL"}, {"id": "B2", "size": "22XL"}]});
    let old = booking(&read, &json!({"items": [{"id": "A1", "size": "11XL"}, {"id": "B2", "size": "22XL"}]}));
    let new = booking(&read, &json!({"items": [{"id": "B2", "size": "77QQ"}, {"id": "A1", "size": "11XL"}]}));
    let row = Pair::with_answers(&old, &new).titled("Two shirts").row();
    assert_eq!(codes(&row), [("ungrounded-argument", false)]);
    let finding = &row.findings[0];
    assert!(finding.message.contains("baseline had \"22XL\""), "{}", finding.message);
    assert!(finding.pointers[0].pointer.ends_with("/items/1/size"), "{:?}", finding.pointers);
    // In a list of ids, the one that new lacks.
    let ids = json!({"ids": ["1111111111", "8098621301"]});
    let row = Pair::with_answers(&booking(&ids, &ids), &booking(&ids, &json!({"ids": ["1111111111", "9999999999"]})))
        .titled("Two shirts")
        .row();
    assert!(row.findings[0].message.contains("baseline had \"8098621301\""), "{}", row.findings[0].message);
}

#[test]
fn a_sum_on_the_baseline_grounds_a_sum_unless_the_transcript_is_complete() {
    let read = json!({"paid": 54.85, "price": 54.04});
    let judged = |sum: &str, is_complete: bool| {
        let old = booking(&read, &json!({"sum": "54.85 - 54.04"}));
        let mut new = booking(&read, &json!({"sum": sum}));
        new["transcript_complete"] = json!(is_complete);
        codes(&Pair::with_answers(&old, &new).titled("What is the difference?").row()).len()
    };
    // A rate may be one that the agent was told outside of the transcript.
    assert_eq!((judged("54.85 * 1.19", false), judged("54.85 * 1.19", true)), (0, 1));
    assert_eq!((judged("54.85 + 54.04", false), judged("54.85 + 54.04", true)), (0, 0));
}

#[test]
fn a_result_of_a_calculator_is_a_source_and_a_refused_sum_is_not() {
    let read = json!({"paid": 54.85, "price": 54.04});
    let events = |sum: &str, status: &str, result: &Value, booked: f64| {
        let mut sum = step("c2", "calculate", &json!({"expression": sum}), result);
        sum[1]["status"] = json!(status);
        let first = step("c1", "read", &json!({}), &read);
        let last = step("c3", "refund", &json!({"amount": booked}), &json!({}));
        let events = [first, sum, last].concat();
        answer_of(&json!({"events": events}))
    };
    let old = events("54.85 - 54.04", "ok", &json!({"result": 54.85}), 54.85);
    let judged = |new: &Value| codes(&Pair::with_answers(&old, new).row()).len();
    assert_eq!(judged(&events("54.85 - 54.04", "ok", &json!({"result": "0.81"}), 0.81)), 0);
    assert_eq!(judged(&events("54.85 - 54.04", "ok", &json!({"result": "0.81"}), 0.82)), 1);
    // A call that was refused gives nothing but what it was given.
    assert_eq!(judged(&events("54.85 - 33.33", "error", &json!({"error": "cannot do 54.85 - 33.33"}), 33.33)), 1);
}

#[test]
fn different_requests_are_the_cause_of_different_answers() {
    let request =
        |text: &str| json!({"protocol": "native", "body": {"version": text, "input": {"user": text}}}).to_string();
    let linked = |seat: &str| {
        let mut answer = booking(&json!({"seat": seat}), &json!({"seat": seat}));
        answer["request_asset_href"] = json!("assets/request.json");
        answer
    };
    let row = Pair::with_answers(&linked("12XY"), &linked("77AB"))
        .with_asset(Side::Baseline, "request.json", request("Seat 12XY").as_bytes())
        .with_asset(Side::New, "request.json", request("Seat 77AB").as_bytes())
        .row();
    let cause = row.cause.unwrap();
    assert_eq!((cause.code.as_str(), cause.place.as_str()), ("input-changed", "input.user"));
    assert!(cause.message.contains("Seat 12XY") && cause.message.contains("Seat 77AB"), "{}", cause.message);
}

#[test]
fn in_a_complete_transcript_every_value_has_a_source() {
    let mut made_up = booking(&json!({"seat": "12XY"}), &json!({"seat": "77AB"}));
    Pair::with_answers(&made_up, &made_up).titled("A seat, please").is(Verdict::Unchanged, &[]);
    made_up["transcript_complete"] = json!(true);
    let row = Pair::with_answers(&made_up, &made_up).titled("A seat, please").is(Verdict::Unchanged, &[]);
    assert_eq!(codes(&row), [("ungrounded-argument", true)], "both sides made it up");
    let row = Pair::with_answers(&made_up, &made_up).is(Verdict::Unchanged, &[]);
    assert_eq!(codes(&row), [], "without the input nobody can tell");
}

#[test]
fn a_finding_names_the_place_on_both_sides_and_where_the_value_came_from() {
    let old = booking(&json!({"seats": ["12XY"]}), &json!({"seats": [{"id": "12XY"}]}));
    let new = booking(&json!({"seats": ["12XY"]}), &json!({"seats": [{"id": "77AB"}]}));
    let row = Pair::with_answers(&old, &new).row();
    let finding = &row.findings[0];
    let pointers: Vec<_> = finding.pointers.iter().map(|place| place.pointer.as_str()).collect();
    assert_eq!(pointers, ["/events/2/args/seats/0/id"; 2]);
    assert_eq!(
        finding.message,
        "book: seats.0.id \"77AB\" is not in what was recorded; baseline had \"12XY\" from the result of read"
    );
}

#[test]
fn a_payload_too_large_to_search_makes_no_value_ungrounded() {
    let pair = |read: Value| {
        let new = booking(&read, &json!({"seat": "77AB"}));
        Pair::with_answers(&booking(&json!({"seat": "12XY"}), &json!({"seat": "12XY"})), &new)
    };
    let mut linked = booking(&json!({}), &json!({"seat": "77AB"}));
    linked["events"][1].as_object_mut().unwrap().remove("payload_summary");
    linked["events"][1]["payload_asset_href"] = json!("assets/large.json");
    let large = Pair::with_answers(&booking(&json!({"seat": "12XY"}), &json!({"seat": "12XY"})), &linked);
    let large = large.with_asset(Side::New, "large.json", &vec![b'1'; 9 * 1024 * 1024]);
    assert_eq!(codes(&large.row()), []);
    assert_eq!(codes(&pair(json!({"seat": "12XY"})).row()), [("unrecorded-source", false)]);
}

#[test]
fn a_megabyte_of_values_on_one_line_is_searched_like_any_other() {
    let many = |from: u32| (from..from + 60_000).map(|n| format!("id{n}x")).collect::<Vec<_>>();
    let old = booking(&json!({"ids": many(0)}), &json!({"ids": many(0)}));
    let new = booking(&json!({"ids": many(0)}), &json!({"ids": many(100_000)}));
    let row = Pair::with_answers(&old, &new).row();
    assert_eq!(row.findings.len(), 20);
    assert!(row.findings[19].message.ends_with("and 59980 more like this"), "{}", row.findings[19].message);
    assert_eq!(row.case_id.as_str(), CASE);
}

#[test]
fn a_rule_that_ignores_arguments_does_not_hide_a_made_up_value() {
    let read = json!({"seat": "12XY"});
    let rule = rules("[[rule]]\ntool = \"book\"\nignore = true");
    let pair = Pair::with_answers(&booking(&read, &read), &booking(&read, &json!({"seat": "77AB"}))).under(rule);
    assert_eq!(codes(&pair.is(Verdict::Changed, &["unrecorded-source"])), [("unrecorded-source", false)]);
}
