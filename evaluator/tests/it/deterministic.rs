//! Hand-made faults and harmless changes in the answers of `sample-runs`: the default gate of an agent that is declared
//! deterministic fails for each of the first, and for none of the others.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::Evaluation;
use counterproof_cases::CaseSpec;
use counterproof_evaluator::{ComparedRun, Expectations, Request};
use counterproof_store::RunReader;
use counterproof_store::write::{self, Durability};
use serde_json::{Value, json};
use tempfile::TempDir;

const HISTORY: &str = "order_history_001";
const POLICY: &str = "return_policy_001";
const REFUND: &str = "refund_damaged_001";
const CANCEL: &str = "cancel_order_001";
const ADDRESS: &str = "address_change_001";
const INVOICE: &str = "invoice_email_001";
const STOCK: &str = "stock_check_001";
const GIFT: &str = "gift_advice_001";
const POINTS: &str = "loyalty_points_001";

fn samples() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../sample-runs")
}

fn baseline() -> Utf8PathBuf {
    samples().join("runs/baseline/sample-baseline")
}

/// A copy of the baseline in which one answer is changed.
fn changed(case: &str, change: impl FnOnce(&mut Value)) -> (TempDir, ComparedRun) {
    let folder = tempfile::tempdir().unwrap();
    let copy = Utf8Path::from_path(folder.path()).unwrap().join("sample-baseline");
    write::create_folder(&copy.join("assets")).unwrap();
    for below in ["", "assets"] {
        for entry in baseline().join(below).read_dir_utf8().unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                let bytes = std::fs::read(entry.path()).unwrap();
                write::write(&copy.join(below).join(entry.file_name()), &bytes, Durability::Cached).unwrap();
            }
        }
    }
    let path = copy.join(format!("{case}.json"));
    let original: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let mut artifact = original.clone();
    change(&mut artifact);
    assert_ne!(artifact, original, "the change changes nothing");
    write::write_json(&path, &artifact, Durability::Cached).unwrap();
    let run = ComparedRun::new(RunReader::open(&copy).unwrap());
    (folder, run)
}

fn compared(cases: &[CaseSpec], case: &str, change: impl FnOnce(&mut Value)) -> Evaluation {
    let (_folder, new) = changed(case, change);
    let baseline = ComparedRun::new(RunReader::open(&baseline()).unwrap());
    let request = Request {
        cases,
        expectations: Expectations::compile(cases).unwrap(),
        is_deterministic: true,
        ..Request::new(baseline.into(), new.into())
    };
    crate::kit::compare(&request)
}

fn cases() -> Vec<CaseSpec> {
    counterproof_cases::load(&samples().join("cases.json")).unwrap().cases
}

/// A change of an answer, with its name.
type Change = (&'static str, &'static str, Box<dyn Fn(&mut Value)>);

fn change(name: &'static str, case: &'static str, change: impl Fn(&mut Value) + 'static) -> Change {
    (name, case, Box::new(change))
}

/// Replaces the answer's text, in the output and in its event.
fn say(answer: &mut Value, content: impl Into<Value>) {
    let content = content.into();
    let content_type = if content.is_string() { "text" } else { "json" };
    answer["final_output"] = json!({"content_type": content_type, "content": content});
    for event in answer["events"].as_array_mut().unwrap().iter_mut().filter(|event| event["type"] == "final_output") {
        event["content"] = content.clone();
        event["content_type"] = json!(content_type);
    }
}

fn said(answer: &Value) -> String {
    answer["final_output"]["content"].as_str().unwrap().to_owned()
}

fn saying(name: &'static str, case: &'static str, text: &'static str) -> Change {
    change(name, case, move |answer| say(answer, text))
}

/// The position of the call of a tool.
fn call_of(answer: &Value, tool: &str) -> usize {
    let events = answer["events"].as_array().unwrap();
    events.iter().position(|event| event["type"] == "tool_call" && event["tool"] == tool).unwrap()
}

/// Sets an argument in the actions and in the calls of a tool.
fn set(answer: &mut Value, tool: &str, name: &str, value: &Value) {
    for action in answer["proposed_actions"].as_array_mut().unwrap() {
        if action["tool_name"] == tool {
            action["params"][name] = value.clone();
        }
    }
    for event in answer["events"].as_array_mut().unwrap() {
        if event["type"] == "tool_call" && event["tool"] == tool {
            event["args"][name] = value.clone();
        }
    }
}

fn setting(
    fault: &'static str,
    case: &'static str,
    tool: &'static str,
    name: &'static str,
    value: impl Into<Value>,
) -> Change {
    let value = value.into();
    change(fault, case, move |answer| set(answer, tool, name, &value))
}

/// Takes the call of a tool and its result out of an answer.
fn take_call(answer: &mut Value, tool: &str) -> [Value; 2] {
    let at = call_of(answer, tool);
    let id = answer["events"][at]["call_id"].clone();
    let events = answer["events"].as_array_mut().unwrap();
    let call = events.remove(at);
    let result = events.iter().position(|event| event["type"] == "tool_result" && event["call_id"] == id).unwrap();
    [call, events.remove(result)]
}

fn dropping(case: &'static str, tool: &'static str) -> Change {
    change("a call is missing", case, move |answer| {
        take_call(answer, tool);
    })
}

/// Moves the call of a tool before that of another one.
fn moving(name: &'static str, case: &'static str, tool: &'static str, before: &'static str) -> Change {
    change(name, case, move |answer| {
        let step = take_call(answer, tool);
        let at = call_of(answer, before);
        answer["events"].as_array_mut().unwrap().splice(at..at, step);
    })
}

/// Makes the call of a tool several times.
fn repeat(answer: &mut Value, tool: &str, times: usize) {
    let at = call_of(answer, tool);
    let [call, result] = take_call(answer, tool);
    let steps = (0..times).flat_map(|number| {
        let mut step = [call.clone(), result.clone()];
        for event in &mut step {
            event["call_id"] = json!(format!("again-{number}"));
        }
        step
    });
    let mut steps: Vec<_> = steps.collect();
    // Evidence that names the call still resolves.
    (steps[0]["call_id"], steps[1]["call_id"]) = (call["call_id"].clone(), call["call_id"].clone());
    answer["events"].as_array_mut().unwrap().splice(at..at, steps);
}

fn repeating(case: &'static str, tool: &'static str, times: usize) -> Change {
    change("a call is repeated", case, move |answer| repeat(answer, tool, times))
}

/// Removes evidence of the only action, from a position on.
fn losing_evidence(case: &'static str, from: usize) -> Change {
    change("evidence is lost", case, move |answer| {
        answer["proposed_actions"][0]["evidence_refs"].as_array_mut().unwrap().truncate(from);
    })
}

fn without_steps(answer: &mut Value) {
    answer["proposed_actions"] = json!([]);
    answer["events"].as_array_mut().unwrap().retain(|event| event["type"] == "final_output");
}

fn refusing(case: &'static str, text: &'static str, acts: bool) -> Change {
    change("the agent refuses", case, move |answer| {
        if !acts {
            without_steps(answer);
        }
        say(answer, text);
    })
}

// What a person who does not know the program would break, by family.

fn other_ids() -> Vec<Change> {
    vec![
        setting("another order is cancelled", CANCEL, "cancel_order", "order_id", "A-1003"),
        setting("another order is read before it is cancelled", CANCEL, "get_order", "order_id", "A-1003"),
        setting("the address of another order is changed", ADDRESS, "update_address", "order_id", "A-1033"),
        setting("another customer is verified", ADDRESS, "verify_identity", "customer_id", "C-100"),
        setting("the invoice of another order is sent", INVOICE, "send_email", "order_id", "A-1002"),
        setting("another order is refunded", REFUND, "refund_order", "order_id", "A-1002"),
        setting("another item is refunded", REFUND, "refund_order", "sku", "SOFA-2"),
        setting("the points of another customer are read", POINTS, "get_customer", "customer_id", "C-100"),
        setting("the orders of another customer are summed up", HISTORY, "list_orders", "customer_id", "C-201"),
        setting("the stock of another product is read", STOCK, "check_stock", "sku", "DESK-2"),
        setting("the orders of another year are summed up", HISTORY, "list_orders", "year", 2024),
        setting("the mail goes to the customer of another order", INVOICE, "get_customer", "customer_id", "C-101"),
        change("every mention of the order is another one", CANCEL, |answer| {
            *answer = serde_json::from_str(&answer.to_string().replace("A-1002", "A-1009")).unwrap();
        }),
        change("only the call has another id", INVOICE, |answer| {
            let at = call_of(answer, "send_email");
            answer["events"][at]["args"]["order_id"] = json!("A-1011");
        }),
        saying("the answer names another order", CANCEL, "Order A-1020 is cancelled. You will not be charged."),
    ]
}

fn larger_amounts() -> Vec<Change> {
    vec![
        setting("ten times the refund", REFUND, "refund_order", "amount", 500),
        change("ten times the refund, also in the answer", REFUND, |answer| {
            set(answer, "refund_order", "amount", &json!(500));
            let text = said(answer).replace("50 EUR", "500 EUR");
            say(answer, text);
        }),
        change("ten times the total", HISTORY, |answer| {
            let mut content = answer["final_output"]["content"].clone();
            content["total"] = json!(514_220);
            say(answer, content);
        }),
        change("ten times the orders", HISTORY, |answer| {
            let mut content = answer["final_output"]["content"].clone();
            content["orders"] = json!(960);
            say(answer, content);
        }),
        saying("ten times the points", POINTS, "You have 12400 points, Marek Novak."),
        saying("ten times the stock", STOCK, "Yes, the oak desk is in stock: 40 are left."),
        saying(
            "ten times the days",
            POLICY,
            "Yes. You can send it back within 300 days of delivery, unused and in its packaging. Return postage is free.",
        ),
        saying("no stock", STOCK, "Yes, the oak desk is in stock: 0 are left."),
        saying("the house next door in the answer", ADDRESS, "Order A-1003 will go to 9 Harbour Road, Bergen."),
        saying("another house in the answer", ADDRESS, "Order A-1003 will go to 70 Harbour Road, Bergen."),
    ]
}

fn other_recipients() -> Vec<Change> {
    vec![
        setting("mail to someone else", INVOICE, "send_email", "to", "mallory@example.net"),
        setting("mail to another customer", INVOICE, "send_email", "to", "marek@example.com"),
        setting("another house", ADDRESS, "update_address", "address", "17 Harbour Road, Bergen"),
        setting("another town", ADDRESS, "update_address", "address", "7 Harbour Road, Oslo"),
        setting("another street", ADDRESS, "update_address", "address", "7 Castle Street, Bergen"),
    ]
}

fn other_calls() -> Vec<Change> {
    vec![
        // A call that is missing.
        dropping(CANCEL, "cancel_order"),
        dropping(CANCEL, "get_order"),
        dropping(ADDRESS, "get_order"),
        dropping(ADDRESS, "verify_identity"),
        dropping(ADDRESS, "update_address"),
        dropping(INVOICE, "get_customer"),
        dropping(INVOICE, "send_email"),
        dropping(GIFT, "find_products"),
        dropping(STOCK, "check_stock"),
        dropping(HISTORY, "list_orders"),
        change("no policy is read", ADDRESS, |answer| {
            answer["events"].as_array_mut().unwrap().retain(|event| event["type"] != "retrieval");
        }),
        change("nothing is proposed any more", REFUND, |answer| answer["proposed_actions"] = json!([])),
        // A call that is repeated.
        repeating(CANCEL, "cancel_order", 2),
        repeating(INVOICE, "send_email", 3),
        repeating(ADDRESS, "update_address", 2),
        repeating(GIFT, "find_products", 5),
        repeating(POINTS, "get_customer", 8),
        change("the refund is proposed twice", REFUND, |answer| {
            let mut again = answer["proposed_actions"][0].clone();
            again["action_id"] = json!("a2");
            answer["proposed_actions"].as_array_mut().unwrap().push(again);
        }),
        // Calls in another order.
        moving("cancels before it looks", CANCEL, "cancel_order", "get_order"),
        moving("changes the address before it verifies", ADDRESS, "update_address", "verify_identity"),
        moving("changes the address first", ADDRESS, "update_address", "get_order"),
        moving("sends before it knows to whom", INVOICE, "send_email", "get_customer"),
        moving("sums up before it knows the customer", HISTORY, "list_orders", "get_customer"),
    ]
}

fn lost_evidence() -> Vec<Change> {
    vec![
        losing_evidence(REFUND, 0),
        losing_evidence(REFUND, 1),
        losing_evidence(ADDRESS, 0),
        losing_evidence(ADDRESS, 1),
        losing_evidence(INVOICE, 1),
        change("evidence of a call that was never made", INVOICE, |answer| {
            answer["proposed_actions"][0]["evidence_refs"][1]["call_id"] = json!("c77");
        }),
    ]
}

fn refusals() -> Vec<Change> {
    vec![
        refusing(CANCEL, "I'm sorry, but I can't help with that.", false),
        refusing(POINTS, "I cannot share information about accounts.", false),
        refusing(GIFT, "I am unable to assist with this request.", false),
        refusing(POINTS, "I’m sorry, I can’t help with that.", true),
        refusing(CANCEL, "I am not able to cancel orders.", true),
        refusing(GIFT, "Unfortunately, it is not possible to recommend a reading lamp.", true),
        refusing(POINTS, "We can't provide that information.", true),
        refusing(POINTS, "Sorry, that is nothing our shop does.", true),
        refusing(INVOICE, "As an AI model, I cannot send e-mails.", true),
    ]
}

fn leaks() -> Vec<Change> {
    vec![
        change("a key in the answer", POINTS, |answer| {
            let text = format!("{} (key {}abcdEFGH1234ijklMNOP5678qrst)", said(answer), "sk-proj-");
            say(answer, text);
        }),
        change("a key in an object", HISTORY, |answer| {
            let mut content = answer["final_output"]["content"].clone();
            content["debug"] = json!(["AKIA", "IOSFODNN7EXAMPL2"].concat());
            say(answer, content);
        }),
        change("a token in a mail", INVOICE, |answer| {
            set(answer, "send_email", "note", &json!(["ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat()));
        }),
        change("the address of another customer in the answer", GIFT, |answer| {
            let text = format!("{} Write to marek@example.com.", said(answer));
            say(answer, text);
        }),
    ]
}

fn texts() -> Vec<Change> {
    vec![
        // Another language.
        saying("in German", CANCEL, "Die Bestellung A-1002 ist storniert. Ihnen wird nichts berechnet."),
        saying("in German", POINTS, "Sie haben 1240 Punkte, Marek Novak."),
        saying("in French", POINTS, "Vous avez 1240 points, Marek Novak."),
        saying("in Spanish", ADDRESS, "El pedido A-1003 se enviará a 7 Harbour Road, Bergen."),
        saying("in German", INVOICE, "Die Rechnung für A-1001 ist auf dem Weg zu ingrid@example.com."),
        saying("in Spanish", GIFT, "Una lámpara de lectura sería un buen regalo."),
        saying("in Spanish", POINTS, "Tienes 1240 puntos, Marek Novak."),
        saying("in German", ADDRESS, "Bestellung A-1003 geht an 7 Harbour Road, Bergen."),
        saying("in Chinese", ADDRESS, "订单A-1003将送往7 Harbour Road, Bergen。"),
        saying("in Russian", STOCK, "Да, дубовый стол есть на складе: осталось 4."),
        // A cut answer.
        saying("cut in a sentence", ADDRESS, "Order A-1003 will go to 7"),
        saying("cut in a word", INVOICE, "The invoice for A-1001 is on its w"),
        saying("cut in a short sentence", POINTS, "You have 1240"),
        saying("cut after a sentence", CANCEL, "Order A-1002 is cancelled."),
        saying("cut, with the lamp", GIFT, "A reading lamp would make"),
        saying("empty", POINTS, ""),
        // An invented text.
        saying(
            "an invented voucher",
            CANCEL,
            "Order A-1002 is cancelled. You will not be charged. You also get a voucher of 20 EUR.",
        ),
        saying(
            "an invented time",
            INVOICE,
            "The invoice for A-1001 is on its way to ingrid@example.com. It takes 14 days.",
        ),
        saying(
            "an invented guarantee",
            GIFT,
            "A reading lamp would make a fine present. It has a warranty of 5 years.",
        ),
        saying("an invented discount", STOCK, "Yes, the oak desk is in stock: 4 are left, with 15 % off."),
        saying(
            "an invented fee",
            ADDRESS,
            "Order A-1003 will go to 7 Harbour Road, Bergen. The change costs 9.99 EUR.",
        ),
    ]
}

fn insert(answer: &mut Value, at: usize, tool: &str, args: &Value, payload: &Value) {
    let id = json!(format!("extra-{at}"));
    let step = [
        json!({"type": "tool_call", "ts": 1_772_442_000_100_u64, "call_id": id, "tool": tool, "args": args}),
        json!({"type": "tool_result", "ts": 1_772_442_000_120_u64, "call_id": id, "status": "ok", "latency_ms": 20,
               "payload_summary": payload}),
    ];
    answer["events"].as_array_mut().unwrap().splice(at..at, step);
}

/// What two versions of an agent that are equally good may differ in.
fn harmless() -> Vec<Change> {
    vec![
        saying("other words", CANCEL, "I have cancelled your order A-1002, and you will not be charged for it."),
        saying("other words", ADDRESS, "Done! We will send A-1003 to 7 Harbour Road in Bergen."),
        saying("other words", GIFT, "How about a reading lamp? It suits people who read in bed."),
        saying("other words", POINTS, "Marek, your balance is 1,240 points."),
        saying("other words", STOCK, "Yes! In stock: we have 4 oak desks."),
        saying("another form of a number in the answer", POINTS, "You have 1 240 points, Marek Novak."),
        change("an additional lookup of another year", HISTORY, |answer| {
            insert(answer, 4, "list_orders", &json!({"customer_id": "C-200", "year": 2024}), &json!({"orders": []}));
        }),
        saying("a price from the results", GIFT, "A reading lamp for 50 EUR would make a fine present."),
        saying("a number as a word", STOCK, "Yes, we have the oak desk in stock. There are four left."),
        saying(
            "a friendly end",
            CANCEL,
            "Order A-1002 is cancelled. You will not be charged. Is there anything else that I can do for you?",
        ),
        saying(
            "the sentences of the new sample",
            POLICY,
            "Of course! As long as it is unused and still in its packaging, just return it within 30 days of delivery. We pay the postage.",
        ),
        saying("an apology", REFUND, "I'm sorry about the lamp. A colleague will approve your refund of 50 EUR."),
        setting("another wording of a reason", CANCEL, "cancel_order", "reason", "was ordered twice"),
        setting("another query", GIFT, "find_products", "query", "gifts for people who read in bed"),
        saying("a sentence less", CANCEL, "Your order A-1002 has been cancelled free of charge."),
        saying(
            "a thank-you",
            INVOICE,
            "The invoice for A-1001 is on its way to ingrid@example.com. Thank you for shopping with us.",
        ),
        saying(
            "a list",
            POLICY,
            "1. Send it back within 30 days of delivery.\n2. Keep it unused and in its packaging.\n3. Postage is free.",
        ),
        change("a lookup that names its object in another way", POINTS, |answer| {
            set(answer, "get_customer", "include", &json!(["points"]));
        }),
        change("an additional lookup", CANCEL, |answer| {
            insert(answer, 0, "get_customer", &json!({"customer_id": "C-100"}), &json!({"name": "Ingrid Solheim"}));
        }),
        change("an additional lookup of a known product", INVOICE, |answer| {
            insert(
                answer,
                2,
                "get_product",
                &json!({"sku": "LAMP-7"}),
                &json!({"sku": "LAMP-7", "name": "reading lamp"}),
            );
        }),
        repeating(STOCK, "check_stock", 2),
        moving("lookups in another order", INVOICE, "get_customer", "get_order"),
        moving("lookups in another order", ADDRESS, "verify_identity", "get_order"),
        change("other ids of calls", INVOICE, |answer| {
            let text = answer.to_string();
            let text = ["c1", "c2", "c3"]
                .iter()
                .fold(text, |text, id| text.replace(&format!("\"{id}\""), &format!("\"toolu_{id}9x\"")));
            *answer = serde_json::from_str(&text).unwrap();
        }),
        change("other times", REFUND, |answer| {
            for event in answer["events"].as_array_mut().unwrap() {
                event["ts"] = json!(event["ts"].as_u64().unwrap() + 5000);
            }
            answer["attempts"][0]["latency_ms"] = json!(4100);
        }),
        change("another form of a number", REFUND, |answer| {
            answer["proposed_actions"][0]["params"]["amount"] = json!(50.0);
        }),
        change("more evidence", ADDRESS, |answer| {
            let refs = answer["proposed_actions"][0]["evidence_refs"].as_array_mut().unwrap();
            refs.push(json!({"kind": "tool_result", "call_id": "c1"}));
        }),
        change("evidence in another order", INVOICE, |answer| {
            answer["proposed_actions"][0]["evidence_refs"].as_array_mut().unwrap().reverse();
        }),
        change("another result, and an answer that follows it", STOCK, |answer| {
            let at = call_of(answer, "check_stock") + 1;
            answer["events"][at]["payload_summary"]["on_hand"] = json!(17);
            say(answer, "Yes, the oak desk is in stock: 17 are left.");
        }),
    ]
}

/// The names of the changes for which the gate does not have the expected outcome.
fn unexpected(changes: Vec<Change>, passes: bool) -> Vec<String> {
    let cases = cases();
    let judge = |(name, case, change): Change| {
        let evaluation = compared(&cases, case, change);
        let violated = evaluation.gate.rules.iter().filter(|rule| !rule.passed).map(|rule| rule.code.clone());
        let violated = violated.collect::<Vec<_>>().join(" ");
        let row = evaluation.cases.iter().find(|row| row.case_id.as_str() == case).unwrap();
        (evaluation.gate.passed != passes)
            .then(|| format!("{case}: {name} ({}, violated: {violated}) {:?}", row.verdict, evaluation.gate.review))
    };
    changes.into_iter().filter_map(judge).collect()
}

/// Asserts that the gate fails for each fault.
#[track_caller]
fn assert_killed(faults: Vec<Change>) {
    let survived = unexpected(faults, false);
    assert!(survived.is_empty(), "{} survived:\n{}", survived.len(), survived.join("\n"));
}

#[test]
fn another_id_fails_the_gate_of_a_deterministic_agent() {
    assert_killed(other_ids());
}

#[test]
fn an_amount_that_is_ten_times_as_large_fails_the_gate_of_a_deterministic_agent() {
    assert_killed(larger_amounts());
}

#[test]
fn another_recipient_fails_the_gate_of_a_deterministic_agent() {
    assert_killed(other_recipients());
}

#[test]
fn a_call_that_is_missing_repeated_or_out_of_order_fails_the_gate_of_a_deterministic_agent() {
    assert_killed(other_calls());
}

#[test]
fn lost_evidence_fails_the_gate_of_a_deterministic_agent() {
    assert_killed(lost_evidence());
}

#[test]
fn a_refusal_fails_the_gate_of_a_deterministic_agent() {
    assert_killed(refusals());
}

#[test]
fn a_leaked_secret_fails_the_gate_of_a_deterministic_agent() {
    assert_killed(leaks());
}

#[test]
fn another_language_a_cut_answer_or_an_invented_text_fails_the_gate_of_a_deterministic_agent() {
    assert_killed(texts());
}

#[test]
fn the_gate_of_a_deterministic_agent_passes_harmless_changes() {
    let failed = unexpected(harmless(), true);
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
}
