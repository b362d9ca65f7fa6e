//! Random evaluations.

use counterproof_artifact::evaluation::{Evaluation, Verdict};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use crate::wire_types::{case_id, count, extra, risk_level, run_id, side, text};

pub(crate) fn compared_run() -> impl Strategy<Value = Value> {
    (run_id(), count(), extra()).prop_map(|(run_id, count, extra)| {
        let mut run = json!({
            "run_id": run_id, "generated_at": "2026-01-31T12:00:00Z", "runner_version": "x 1", "repo_commit": "abc",
            "dirty": true, "cases_selected": count
        });
        run.as_object_mut().unwrap().extend(extra);
        run
    })
}

fn gate_rule() -> impl Strategy<Value = Value> {
    let scope = prop_oneof![
        select(&["high", "medium", "low", "unknown"][..]).prop_map(|risk| json!({"kind": "risk", "name": risk})),
        (select(&["tag", "suite"][..]), text()).prop_map(|(kind, name)| json!({"kind": kind, "name": name})),
    ];
    let added = (option::of(scope), option::of(0..=1_000_000_u32), option::of(count()), any::<bool>());
    (text(), select(&["at_most", "at_least"][..]), option::of(count()), count(), any::<bool>(), added).prop_map(
        |(code, bound, limit, actual, passed, (scope, millionths, of, is_tested))| {
            let mut rule = json!({"code": code, "bound": bound, "actual": actual, "passed": passed});
            let share = millionths.map(|share| json!(f64::from(share) / 1e6));
            let added = [
                ("limit", limit.map(|limit| json!(limit))),
                ("scope", scope),
                ("share", share),
                ("of", of.map(|of| json!(of))),
                ("test", is_tested.then(|| json!({"p": 0.25, "level": 0.05, "fell": 3, "rose": 1}))),
            ];
            for (field, value) in added {
                if let Some(value) = value {
                    rule[field] = value;
                }
            }
            rule
        },
    )
}

fn case_evaluation() -> impl Strategy<Value = Value> {
    let pointers = vec((side(), text()).prop_map(|(side, pointer)| json!({"side": side, "pointer": pointer})), 0..2);
    let kinds = [
        "tool_sequence",
        "tool_args",
        "tool_result",
        "retrieval",
        "final_output",
        "proposed_action",
        "other_event",
        "runner_error",
    ];
    (case_id(), select(&Verdict::ALL[..]), pointers, select(kinds.to_vec()), risk_level(), any::<bool>()).prop_map(
        |(case_id, verdict, pointers, kind, risk_level, passed)| {
            json!({
                "case_id": case_id, "title": "a title", "verdict": verdict, "risk_level": risk_level,
                "reasons": [{"code": "some-code", "message": "moved", "pointers": pointers}],
                "first_divergence": {"kind": kind, "pointers": pointers, "message": "here"},
                "lasting_divergence": {"kind": kind, "pointers": pointers, "message": "there"},
                "alignment": {
                    "cost": 1.25, "bounded": passed, "recovery": pointers,
                    "operations": {"same": 3, "changed": 1, "moved": 0, "added": 2, "removed": 0}
                },
                "cause": {
                    "code": "tool-error", "place": "get_order", "message": "it failed", "pointers": pointers,
                    "path": pointers, "cluster": "0f",
                },
                "unconfirmed": passed,
                "findings": [{"code": "a-finding", "message": "made up", "pointers": pointers, "in_baseline": passed}],
                "severity": {"score": 0.25, "parts": [{"code": "steps", "share": 0.25}]},
                "expectations": [{"code": "tool_required", "expected": "x", "name": "a name", "must": true, "new": {"passed": passed, "found": "y"}}]
            })
        },
    )
}

/// Generates evaluations from JSON with every field. Struct literals would change with every new field.
pub(crate) fn evaluation() -> impl Strategy<Value = Evaluation> {
    let outcome = select(&["passed", "failed", "not_enough_data", "not_judged"][..]);
    (compared_run(), compared_run(), vec((select(&Verdict::ALL[..]), count()), 0..4), outcome, vec(gate_rule(), 0..3), vec(case_evaluation(), 0..3), extra())
        .prop_map(|(baseline, new, counts, outcome, rules, cases, extra)| {
            let counts: Map<String, Value> = counts.into_iter().map(|(verdict, n)| (verdict.to_string(), json!(n))).collect();
            let mut document = json!({
                "schema_version": "evaluation.v1", "evaluator_version": "x 1", "baseline": baseline, "new": new,
                "counts": counts, "gate": {"passed": outcome == "passed", "outcome": outcome, "rules": rules}, "cases": cases,
                "rules": [{"rule": "tool get_*, /args/at: ignore", "matched": 3}],
                "notices": [{"code": "answer-outage", "message": "one text", "case_ids": ["a"]}],
                "suite": [{
                    "code": "solved", "baseline": {"passed": 2, "runs": 2}, "new": {"passed": 1, "runs": 2}, "p": 0.5,
                    "fell": false, "cases_fell": 1, "cases_rose": 0
                }]
            });
            if outcome != "passed" {
                let place = json!({"side": "new", "pointer": "/proposed_actions/0"});
                document["gate"]["review"] = json!([{"case_id": "a", "code": "x", "message": "y", "pointers": [place]}]);
            }
            let ids: Vec<_> = document["cases"].as_array().unwrap().iter().map(|case| case["case_id"].clone()).collect();
            if !ids.is_empty() {
                let cluster = json!({"id": "0f", "code": "tool-error", "place": "get_order", "message": "it failed", "case_ids": ids});
                document["clusters"] = json!([cluster]);
            }
            document.as_object_mut().unwrap().extend(extra);
            serde_json::from_value(document).unwrap()
        })
}
