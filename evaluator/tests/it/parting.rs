//! Where two answers go separate ways to the end, next to the first difference.

use counterproof_artifact::Side;
use serde_json::{Value, json};

use crate::kit::{Pair, answer_of, step};

/// An answer that consists of messages of the agent.
fn told(messages: &[&str]) -> Value {
    let message = |text: &&str| json!({"type": "message", "ts": 1, "role": "assistant", "content": text});
    answer_of(&json!({"events": messages.iter().map(message).collect::<Vec<_>>()}))
}

/// An answer that reads these records one after the other, with a message before each.
fn read(records: &[&str], message: &str) -> Value {
    let reads = records.iter().enumerate().flat_map(|(number, record)| {
        let turn = json!({"type": "message", "ts": 1, "role": "assistant", "content": format!("{message} {record}")});
        let step = step(&format!("c{number}"), "read", &json!({"id": record}), &json!({"of": record}));
        [turn].into_iter().chain(step)
    });
    answer_of(&json!({"events": reads.collect::<Vec<_>>()}))
}

/// The pointers to the lasting divergence, by side.
fn parting(baseline: &Value, new: &Value) -> Option<Vec<(Side, String)>> {
    let lasting = Pair::with_answers(baseline, new).row().lasting_divergence?;
    Some(lasting.pointers.into_iter().map(|at| (at.side, at.pointer)).collect())
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with an optional place")]
fn at(baseline: usize, new: usize) -> Option<Vec<(Side, String)>> {
    Some(vec![(Side::Baseline, format!("/events/{baseline}")), (Side::New, format!("/events/{new}"))])
}

const SHARED: [&str; 3] = [
    "The plan is to look the order up, check the policy for damaged goods, and refund what was paid.",
    "The order has two items, a lamp and a chair, and the customer reports that the lamp arrived broken.",
    "The policy allows a refund within thirty days when goods arrive broken, with a photo as proof.",
];

#[test]
fn answers_part_after_the_last_step_that_they_share_whatever_its_wording() {
    let old =
        told(&[SHARED[0], SHARED[1], SHARED[2], "I refund forty dollars to the card that paid.", "Anything else?"]);
    let reworded = SHARED[1].replace("reports that the lamp", "says the lamp");
    let other = ["The photo shows another product, so a colleague must take over.", "Please hold the line."];
    let new = told(&[SHARED[0], &reworded, SHARED[2], other[0], other[1]]);
    assert_eq!(parting(&old, &new), at(3, 3));
    let retried = told(&[SHARED[0], SHARED[0], &reworded, SHARED[2], other[0], other[1]]);
    assert_eq!(parting(&old, &retried), at(3, 4), "a step that is done twice parts nothing");
}

#[test]
fn answers_that_come_together_again_have_no_lasting_divergence() {
    let old = told(&[SHARED[0], SHARED[1], SHARED[2]]);
    let new = told(&[SHARED[0], "One moment please.", SHARED[1], SHARED[2]]);
    assert_eq!(parting(&old, &new), None);
}

#[test]
fn a_single_similar_step_after_a_long_separation_is_no_reunion() {
    let old = read(&["A1", "A2", "B1", "B2", "B3", "Z9"], "Reading");
    let new = read(&["A1", "A7", "A2", "C1", "C2", "C3", "Z9"], "Reading");
    let first = Pair::with_answers(&old, &new).row().first_divergence.unwrap();
    assert_eq!(first.pointers[0].pointer, "/events/4", "the call that only new makes");
    assert_eq!(parting(&old, &new), at(7, 10));
}

#[test]
fn wording_parts_no_answers_that_take_the_same_steps() {
    let records = ["A1", "A2", "A3", "A4"];
    let (old, new) = (read(&records, "Let me look at"), read(&records, "Checking the record"));
    assert_eq!(parting(&old, &new), None);
    let row = Pair::with_answers(&old, &new).row();
    assert_eq!(row.first_divergence.unwrap().pointers[0].pointer, "/events/0", "wording is the first difference");
}

#[test]
fn the_first_difference_is_not_repeated_as_the_lasting_one() {
    let old = read(&["A1", "A2", "A3"], "Reading");
    assert_eq!(parting(&old, &read(&["A1", "B2", "B3"], "Reading")), None);
}
