//! Faults in the texts of the agent: they are shown to a person and count in the severity, and do not fail the gate.

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{Evaluation, GateOutcome};
use serde_json::{Value, json};

use crate::kit::{Pair, answer_of};

const USUAL: &str = "Your order W12 has been cancelled and the refund of $50 is on its way to your card.";

fn message(role: &str, text: &str) -> Value {
    json!({"type": "message", "ts": 1000, "role": role, "content": text})
}

/// An answer: the agent reads the order, says something, hears yes, cancels the order, and says how it went.
fn cancelling(asks: &str, output: &str) -> Value {
    let call = |id: &str, tool: &str, risk: &str, payload: &Value| {
        [
            json!({"type": "tool_call", "ts": 1000, "call_id": id, "tool": tool, "args": {"order": "W12"}, "risk_level": risk}),
            json!({"type": "tool_result", "ts": 1000, "call_id": id, "status": "ok", "latency_ms": 1, "payload_summary": payload}),
        ]
    };
    let mut events = vec![message("user", "Please cancel my order W12, I paid $20 of it in cash.")];
    events.extend(call("c1", "get_order", "low", &json!({"total": 50, "fee": "4.99", "items": 3})));
    events.push(message("assistant", asks));
    events.push(message("user", "Yes, go on."));
    events.extend(call("c2", "cancel_order", "high", &json!({"status": "cancelled"})));
    answer_of(&json!({"events": events, "final_output": {"content_type": "text", "content": output}}))
}

fn night(answers: &[Value]) -> Evaluation {
    let usual = cancelling("Shall I cancel order W12?", USUAL);
    let pair = |pair: Pair, (number, answer): (usize, &Value)| {
        let id = format!("c{number}");
        pair.with(Side::Baseline, &id, &usual).with(Side::New, &id, answer)
    };
    answers.iter().enumerate().fold(Pair::empty(), pair).evaluation()
}

/// The codes of the review items about texts, with their cases.
fn found(evaluation: &Evaluation) -> Vec<&str> {
    let codes = ["answer-language", "unsupported-amount", "answer-cut", "confirmation-skipped"];
    let items = evaluation.gate.review.iter().map(|item| item.code.as_str());
    items.filter(|code| codes.contains(code)).collect()
}

#[test]
fn twenty_planted_faults_in_the_text_are_shown_and_do_not_fail_the_gate() {
    let saying = |text: &str| cancelling("Shall I cancel order W12?", text);
    let languages = [
        "Ihre Bestellung W12 wurde storniert, und die Erstattung von $50 ist auf dem Weg zu Ihrer Karte.",
        "Votre commande W12 a été annulée et le remboursement de $50 est en route vers votre carte.",
        "Su pedido W12 ha sido cancelado y el reembolso de $50 está en camino a su tarjeta.",
        "Ваш заказ W12 отменён, и возврат $50 уже в пути.",
        "ご注文W12はキャンセルされ、$50の返金が処理されました。",
    ];
    let amounts = ["$500", "$51", "12.34 EUR", "1,250.00", "7 dollars"];
    let cuts = [
        "Your order W12 has been canc",
        "Your order W12 has been cancelled and",
        "Your order W12 has been cancelled,",
        "Your order W12 has been cancelled. The refund will be",
        "Thank you for the order. These are the next steps:",
    ];
    let questions =
        ["I will cancel order W12 now.", "One moment, please.", "Your order has 3 items.", "Thank you!", "All right."];
    let faults: [(&str, Vec<Value>); 4] = [
        ("answer-language", languages.iter().map(|text| saying(text)).collect()),
        ("unsupported-amount", amounts.iter().map(|it| saying(&USUAL.replace("$50", it))).collect()),
        ("answer-cut", cuts.iter().map(|text| saying(text)).collect()),
        ("confirmation-skipped", questions.iter().map(|asks| cancelling(asks, USUAL)).collect()),
    ];
    for (code, answers) in &faults {
        let evaluation = night(answers);
        assert_eq!(found(&evaluation), vec![*code; 5], "{:#?}", evaluation.gate.review);
        assert_eq!(evaluation.gate.outcome, GateOutcome::NotJudged, "no text fails the gate");
        let is_counted = |part: &counterproof_artifact::evaluation::SeverityShare| part.code == "answer-text";
        assert!(evaluation.cases.iter().all(|case| case.severity.as_ref().unwrap().parts.iter().any(is_counted)));
    }
}

#[test]
fn other_words_for_the_same_have_no_fault() {
    let texts = [
        "I have cancelled order W12. You will get $50.00 back on your card!",
        "Done: order W12 is cancelled, and USD 50 will be on your card in 5 business days. Anything else?",
        "You get $30 on your card, since you paid $20 in cash.",
        "Your refund is $45.01 after the fee of $4.99.",
        "Done.",
        "W12",
        "`cancel_order` returned `{\"status\": \"cancelled\"}`.",
        "Your order was cancelled.\n\nKind regards,\nYour shop team",
    ];
    let answers: Vec<_> = texts.iter().map(|text| cancelling("May I cancel order W12 for you?", text)).collect();
    assert_eq!(found(&night(&answers)), Vec::<&str>::new());
}

#[test]
fn a_baseline_that_ends_without_a_full_stop_anywhere_excuses_a_cut_answer() {
    let cut = cancelling("Shall I?", "Your order W12 has been cancelled and");
    let usual = cancelling("Shall I?", USUAL);
    let pair = Pair::empty().with(Side::Baseline, "a", &usual).with(Side::New, "a", &cut);
    let styled = pair.with(Side::Baseline, "b", &cancelling("Shall I?", "Your order W12 is cancelled now"));
    assert_eq!(found(&styled.with(Side::New, "b", &usual).evaluation()), Vec::<&str>::new());
}
