//! The page of a case: the conversations, the writes with their evidence, what arguments are from, and the pages of other runs.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use camino::Utf8Path;
use counterproof_artifact::Side;
use counterproof_evaluator::{Request, SideRuns};
use counterproof_report::ReportWriter;
use serde_json::{Value, json};

use crate::kit::{CASE, Pair, action, answer_of, step};
use crate::links::{assert_whole, pages};
use crate::reported::Reported as _;

fn page_of(pair: &Pair) -> String {
    let report = pair.report();
    assert_whole(&report);
    pages(&report)[Utf8Path::new(&format!("cases/{CASE}.html"))].clone()
}

/// The column of a side.
fn column<'a>(page: &'a str, side: &str) -> &'a str {
    let (_, behind) = page.split_once(&format!("<h3 id=\"{side}-conversation\">")).unwrap();
    behind.split_once("</section>").unwrap().0
}

/// What a reader sees, in one line.
fn seen(html: &str) -> String {
    let text: String = html
        .split('<')
        .enumerate()
        .map(|(index, part)| match part.split_once('>') {
            Some((_, text)) if index > 0 => text,
            _ => part,
        })
        .collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Two lookups, then a cancellation of each order, which rests on the lookup where `proof` names it.
fn cancelling(orders: &[&str], proof: &[&str]) -> Value {
    let user = step("u", "get_user", &json!({"user_id": "mia"}), &json!({"orders": ["W1", "W2", "W3"]}));
    let look = step("g", "get_order", &json!({"order_id": "W1"}), &json!({"total": 50}));
    let mut events = [user, look].concat();
    let mut actions = Vec::new();
    for (index, order) in orders.iter().enumerate() {
        let args = json!({"order_id": order});
        events.extend(step(&format!("c{index}"), "cancel_order", &args, &json!({"state": "cancelled"})));
        actions.push(action(
            &format!("a{index}"),
            "cancel_order",
            &args,
            if proof.contains(order) { &["u"] } else { &[] },
        ));
    }
    answer_of(&json!({
        "events": events,
        "proposed_actions": actions,
        "final_output": {"content_type": "text", "content": format!("I cancelled {} orders.", orders.len())},
    }))
}

#[test]
fn reads_are_folded_and_each_write_is_a_card_with_its_evidence() {
    let (old, new) = (cancelling(&[], &[]), cancelling(&["W1", "W9"], &["W1"]));
    let case = json!({"title": "Cancel", "input": {"user": "Cancel my order, please"}});
    let page = page_of(&Pair::with_answers(&old, &new).of_case(&case));
    let card = page.split("<h1").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(card.contains("New cancelled 2 orders, 1 without evidence. Baseline cancelled none."), "{card}");
    let (old, new) = (column(&page, "baseline"), column(&page, "new"));
    for side in [old, new] {
        assert!(side.contains("Cancel my order, please"), "{side}");
        assert!(side.contains("<summary><bdi>2 reads, steps 1 to 3: get_user, get_order</bdi></summary>"), "{side}");
    }
    assert!(seen(old).contains("2 calls, changed nothing") && !old.contains("write"), "{old}");
    assert!(seen(new).contains("4 calls, 2 writes"), "{new}");
    assert_eq!(new.matches("class=\"made call write\"").count(), 2, "{new}");
    assert!(seen(new).contains("5 cancel_order W1 evidence: step 2 7 cancel_order W9 no evidence"), "{}", seen(new));
    assert!(new.contains("href=\"#new-event-1\">step 2</a>"), "{new}");
    assert!(seen(new).contains("I cancelled 2 orders.") && new.contains("<mark>2</mark>"), "{new}");
    let arguments = page.split("id=\"arguments\"").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(
        seen(arguments)
            .contains("cancel_order write order_id no call W1, W9 new: result of get_user, nothing that was recorded"),
        "{}",
        seen(arguments)
    );
}

#[test]
fn a_refused_call_names_its_rule_and_a_failed_one_is_marked() {
    let refused = |decision: Value| {
        let [mut call, mut result] = step("c", "send_money", &json!({"amount": 500}), &json!({}));
        call["action_id"] = json!("a");
        result["status"] = json!("error");
        result["payload_summary"] = decision;
        answer_of(
            &json!({"events": [call, result], "proposed_actions": [action("a", "send_money", &json!({"amount": 500}), &[])]}),
        )
    };
    let by_rule = refused(json!({"decision": {"rule_id": "limit", "summary": "too much"}}));
    let page = page_of(&Pair::with_answers(&refused(json!({"error": "no"})), &by_rule));
    let (old, new) = (column(&page, "baseline"), column(&page, "new"));
    assert!(new.contains("refused by the rule limit (too much)") && !new.contains("✗ failed"), "{new}");
    assert!(old.contains("✗ failed") && !old.contains("class=\"chip guard\""), "{old}");
    assert!(seen(new).contains("changed nothing"), "{new}");
}

#[test]
fn the_turns_of_a_conversation_are_kept_apart() {
    let call = |turn: u64, id: &str| {
        let [mut call, mut result] = step(id, "get_order", &json!({"id": id}), &json!({"total": 50}));
        (call["turn"], result["turn"]) = (json!(turn), json!(turn));
        [call, result]
    };
    let text = |text: &str| json!({"content_type": "text", "content": text});
    let talk = |last: &str| {
        let events = [call(1, "a"), call(2, "b")].concat();
        answer_of(&json!({
            "events": events,
            "final_output": text(last),
            "turns": [{"turn": 1, "final_output": text("It is paid.")}, {"turn": 2, "final_output": text(last)}],
        }))
    };
    let case = json!({"title": "Paid?", "turns": [{"user": "Is A-1 paid?"}, {"user": "Refund it"}]});
    let page = page_of(&Pair::with_answers(&talk("Refunded 50."), &talk("Refunded 500.")).of_case(&case));
    let turns: Vec<_> = page.split("<p class=\"turn\">").skip(1).map(seen).collect();
    assert_eq!(turns.len(), 2, "{page}");
    assert!(turns[0].contains("Is A-1 paid?") && turns[0].contains("It is paid."), "{turns:?}");
    assert!(!turns[0].contains("Refund it") && turns[1].contains("Refund it"), "{turns:?}");
    assert!(turns[1].contains("Refunded 500.") && turns[1].contains("get_order b"), "{turns:?}");
}

#[test]
fn without_a_cases_file_the_page_says_that_the_request_is_not_known() {
    let page = page_of(&Pair::with_answers(&answer_of(&json!({})), &cancelling(&["W1"], &[])));
    assert_eq!(page.matches("The request was not recorded.").count(), 2, "{page}");
}

#[test]
fn each_run_that_differs_from_the_shown_one_has_a_page_one_link_away() {
    let saying = |words: &str| answer_of(&json!({"final_output": {"content_type": "text", "content": words}}));
    let pairs = [
        Pair::with_answers(&saying("Hello."), &saying("Hello.")),
        Pair::with_answers(&saying("Hello."), &saying("Good day to you.")),
        Pair::with_answers(&saying("Hello."), &saying("Hello.")),
    ];
    let runs = |side| SideRuns::new(pairs.iter().map(|pair| pair.finished(side)).collect()).unwrap();
    let request = Request::new(runs(Side::Baseline), runs(Side::New));
    let out = pairs[0].path().join("report");
    let report = ReportWriter::create(&out, &request).unwrap();
    let evaluation = counterproof_evaluator::compare(&request, |case| report.write_case(case)).unwrap();
    report.finish(&evaluation).unwrap();
    assert_whole(&out);
    let shown = evaluation.cases[0].repeats.as_ref().unwrap().shown.new;
    let pages = pages(&out);
    let case = &pages[Utf8Path::new(&format!("cases/{CASE}.html"))];
    let others: Vec<_> = pages.keys().filter(|name| name.as_str().contains(".run-")).collect();
    // The shown run either is the one that differs from two others, or one of the two that it differs from.
    assert_eq!(others.len(), if shown == 1 { 2 } else { 1 }, "{others:?}");
    for name in others {
        let link = format!("<a href=\"{}\">", name.file_name().unwrap());
        assert!(case.contains(&link), "{link}: {case}");
        let page = &pages[name];
        assert!(page.contains("This page shows run") && page.contains(&format!("<a href=\"{CASE}.html\">")), "{page}");
        assert!(!page.contains("runs of baseline:</span>\n<a"), "the runs of baseline are all the same: {page}");
    }
}
