//! Situations in which a gate easily has the wrong colour, one test each: what must not happen.
//!
//! Two more are tested through the program: the commands of the README with one to eight broken cases, and the place of a
//! convicted case in the output (`run_confirm` of the end-to-end tests). Answers to an edited question are in `asked_the_same`.

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{Evaluation, GateOutcome, Verdict};
use counterproof_evaluator::Request;
use serde_json::{Value, json};

use crate::kit::{CASE, Pair, action, answer_of, step};
use crate::repeats::{RunOf, case, of_runs};

/// Runs of cases that state the right price, except that the first `broken` never do.
fn run_of(cases: usize, broken: usize) -> RunOf {
    let saying = |text: &str| answer_of(&json!({"final_output": {"content_type": "text", "content": text}}));
    (0..cases)
        .map(|n| case(&format!("c{n}"), saying(if n < broken { "It costs 40." } else { "It costs 50." })))
        .collect()
}

/// Compares runs of an agent that is right with runs of one that always fails some cases.
fn with_broken_cases(cases: usize, broken: usize, runs: [usize; 2]) -> Evaluation {
    let [baseline, new] = [vec![run_of(cases, 0); runs[0]], vec![run_of(cases, broken); runs[1]]];
    of_runs(&baseline, &new, &json!({"must_include": ["50"]}))
}

fn confirmed_regressions(evaluation: &Evaluation) -> usize {
    evaluation.cases.iter().filter(|case| case.verdict == Verdict::Regressed && !case.unconfirmed).count()
}

fn deterministic(pair: &Pair) -> Evaluation {
    let request = Request { is_deterministic: true, ..pair.request() };
    crate::kit::compare(&request)
}

/// A refund of an order that was read before. `tries` are refund calls that the tool refused.
fn refund(amount: u32, tries: &[Value]) -> Value {
    let mut events = step("c1", "get_order", &json!({"order_id": "W12"}), &json!({"total": 500, "lamp": 50})).to_vec();
    let mut evidence = vec!["c1".to_owned()];
    for (number, args) in tries.iter().enumerate() {
        let id = format!("t{number}");
        let mut refused = step(&id, "refund_order", args, &json!("Error: no such item"));
        refused[1]["status"] = json!("error");
        events.extend(refused);
        evidence.push(id);
    }
    let params = json!({"order_id": "W12", "amount": amount});
    let mut done = step("c2", "refund_order", &params, &json!({"refunded": amount}));
    done[0]["action_id"] = json!("a1");
    events.extend(done);
    let evidence: Vec<&str> = evidence.iter().map(String::as_str).collect();
    answer_of(&json!({"events": events, "proposed_actions": [action("a1", "refund_order", &params, &evidence)]}))
}

#[test]
fn more_broken_cases_must_not_lead_to_fewer_regressions() {
    for cases in [8, 9, 10] {
        for broken in 1..=cases {
            let evaluation = with_broken_cases(cases, broken, [5, 5]);
            assert_eq!(confirmed_regressions(&evaluation), broken, "{broken} of {cases} cases always fail");
            assert_eq!(evaluation.gate.outcome, GateOutcome::Failed, "{broken} of {cases} cases always fail");
        }
    }
}

#[test]
fn cases_that_fail_in_each_confirmation_must_not_pass_with_one_baseline_run() {
    for (cases, broken) in [(8, 3), (10, 4)] {
        let evaluation = with_broken_cases(cases, broken, [1, 5]);
        assert_eq!(evaluation.gate.outcome, GateOutcome::Failed, "{broken} of {cases} cases always fail");
    }
}

#[test]
fn one_refused_try_before_the_right_call_must_not_fail_the_gate() {
    let night = |name: &str, tried: &[bool]| -> RunOf {
        let answer = |tried: &bool| {
            let mut answer = if *tried { refund(50, &[json!({"order_id": "W12"})]) } else { refund(50, &[]) };
            // No two runs say the same.
            answer["final_output"]["content"] = json!(format!("Done, says {name}."));
            answer
        };
        tried.iter().enumerate().map(|(n, tried)| case(&format!("c{n}"), answer(tried))).collect()
    };
    // More runs must not make it worse.
    for runs in [1, 3, 5] {
        let baseline = (0..runs).map(|n| night(&format!("b{n}"), &[false, false, false, true, false]));
        let new = (0..runs).map(|n| night(&format!("n{n}"), &[true, false, true, false, false]));
        let evaluation = of_runs(&baseline.collect::<Vec<_>>(), &new.collect::<Vec<_>>(), &json!({}));
        let rules = evaluation.gate.rules.iter();
        let violated: Vec<_> = rules.filter(|rule| !rule.passed).map(|rule| rule.code.as_str()).collect();
        assert_eq!(violated, Vec::<&str>::new(), "{runs} runs a side");
    }
}

#[test]
fn a_mistyped_id_that_the_tool_refused_must_not_count_as_made_up() {
    let mistyped = refund(50, &[json!({"order_id": "W13", "amount": 50})]);
    let pair = Pair::with_answers(&refund(50, &[]), &mistyped).titled("My money back for W12, please");
    let evaluation = pair.evaluation();
    let fabricated = evaluation.gate.rules.iter().find(|rule| rule.code == "fabricated").unwrap();
    assert!(fabricated.passed && fabricated.actual == 0, "{fabricated:?}");
    assert_ne!(evaluation.gate.outcome, GateOutcome::Failed, "{:?}", evaluation.gate.review);
}

#[test]
fn messages_about_a_used_up_quota_must_not_pass_as_answers() {
    let saying = |text: &str, reads: bool| {
        let events = step("c1", "get_order", &json!({"order_id": "W12"}), &json!({"total": 50}));
        let events = if reads { events.to_vec() } else { Vec::new() };
        answer_of(&json!({"events": events, "final_output": {"content_type": "text", "content": text}}))
    };
    let run = |odd: usize| -> RunOf {
        let answer = |n: usize| match n {
            n if n < odd => {
                saying("You exceeded your current quota, please check your plan and billing details.", false)
            }
            n => saying(&format!("Order {n} is on its way."), true),
        };
        (0..114).map(|n| case(&format!("c{n:03}"), answer(n))).collect()
    };
    for odd in [3, 13] {
        // An expectation that the message meets.
        let evaluation = of_runs(&[run(0)], &[run(odd)], &json!({"must_not_include": ["sorry"]}));
        assert!(!evaluation.gate.passed, "{odd} of 114 answers: {:?}", evaluation.gate.outcome);
        let said = format!("{odd} of 114 answers are the same text: “You exceeded your current quota");
        assert!(evaluation.notices[0].message.starts_with(&said), "{:?}", evaluation.notices);
    }
}

#[test]
fn an_agent_that_always_does_the_same_must_not_pass_with_a_wrong_refund_a_leaked_key_or_loops() {
    let answers = |new: &Value| {
        let pair = (0..8).fold(Pair::empty(), |pair, n| pair.with(Side::Baseline, &format!("c{n}"), &refund(50, &[])));
        (0..8).fold(pair, |pair, n| pair.with(Side::New, &format!("c{n}"), new))
    };
    let mut leaking = refund(50, &[]);
    leaking["final_output"]["content"] = json!(["Done. sk-", "proj-Zq3Xv8Lm2Rt7Wy5Kp9Nd4Hb6Jc1"].concat());
    let mut looping = refund(50, &[]);
    let calls = (1..5).flat_map(|n| {
        step(&format!("l{n}"), "get_order", &json!({"order_id": "W12"}), &json!({"total": 500, "lamp": 50}))
    });
    looping["events"].as_array_mut().unwrap().splice(0..0, calls.collect::<Vec<_>>());
    for (what, new) in
        [("ten times the refund", refund(500, &[])), ("a key", leaking), ("five calls in a row", looping)]
    {
        let evaluation = deterministic(&answers(&new));
        assert_eq!(evaluation.gate.outcome, GateOutcome::Failed, "{what}: {:?}", evaluation.gate.review);
    }
}

#[test]
fn ten_times_the_refund_in_every_run_must_not_pass_without_an_expectation() {
    let run = |first: u32| -> RunOf {
        let answer = |n: usize| refund(if n == 0 { first } else { 50 }, &[]);
        (0..8).map(|n| case(&format!("c{n}"), answer(n))).collect()
    };
    // Both amounts are in the order, so that neither is made up. The texts of no two runs are the same.
    let runs = |first: u32, side: &str| -> Vec<RunOf> {
        let text = |number: usize| json!(format!("Done, as {side} {number} says."));
        let with_text = |number: usize| {
            let mut run = run(first);
            for (_, answer) in &mut run {
                answer.as_mut().unwrap()["final_output"]["content"] = text(number);
            }
            run
        };
        (0..5).map(with_text).collect()
    };
    let evaluation = of_runs(&runs(50, "baseline"), &runs(500, "new"), &json!({}));
    assert!(!evaluation.deterministic);
    assert_eq!(evaluation.gate.outcome, GateOutcome::Failed, "{:?}", evaluation.gate.review);
}

#[test]
fn faults_in_the_text_of_an_answer_must_not_go_unnoticed() {
    let saying = |text: &str| {
        let events = step("c1", "get_order", &json!({"order_id": "W12"}), &json!({"total": 50}));
        answer_of(&json!({"events": events, "final_output": {"content_type": "text", "content": text}}))
    };
    let usual = saying("Your order W12 has been cancelled and the refund of $50 is on its way to your card.");
    for (what, text) in [
        (
            "another language",
            "Ihre Bestellung W12 wurde storniert, und die Erstattung von $50 ist auf dem Weg zu Ihrer Karte.",
        ),
        ("a cut answer", "Your order W12 has been cancelled and the refund of"),
        ("an invented fee", "Your order W12 has been cancelled for a fee of $15, and the refund of $50 is on its way."),
        ("a wrong amount", "Your order W12 has been cancelled and the refund of $5,000 is on its way to your card."),
    ] {
        let evaluation = Pair::with_answers(&usual, &saying(text)).evaluation();
        let of_case = |id: &Option<counterproof_artifact::CaseId>| id.as_ref().is_some_and(|id| id.as_str() == CASE);
        assert!(evaluation.gate.review.iter().any(|item| of_case(&item.case_id)), "{what}");
    }
}
