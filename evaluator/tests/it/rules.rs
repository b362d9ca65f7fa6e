//! What holds for any rules of comparison and any values: they reach no further than they say, from either side.

use counterproof_artifact::evaluation::Verdict;
use counterproof_evaluator::Rules;
use counterproof_evaluator::test_support::{Notes, Renaming, Subject, diff_under, same, view};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::kit::{Pair, rules};
use crate::properties::{any_answer, arguments, is_mirrored, reordered};

/// Rules of every kind, for `path` and below it.
fn any_rules(path: &'static str) -> impl Strategy<Value = Rules> {
    let effect = prop_oneof![
        Just("ignore = true"),
        Just("normalise = \"timestamp\""),
        Just("normalise = \"uuid\""),
        Just("normalise = \"id\""),
        Just("tolerance = 3"),
        Just("tolerance = { relative = 0.1 }"),
        Just("unordered = true"),
        Just("key = \"a\""),
        Just("default = false"),
    ];
    let end = prop_oneof![Just(""), Just("/*"), Just("/**"), Just("/**/b")];
    prop::collection::vec((effect, end), 0..4).prop_map(move |written| {
        let rule = |(effect, end): (&str, &str)| format!("[[rule]]\npath = \"{path}{end}\"\n{effect}\n");
        rules(&written.into_iter().map(rule).collect::<String>())
    })
}

fn without(value: &Value, key: &str) -> Value {
    let mut value = value.clone();
    value.as_object_mut().map(|fields| fields.remove(key));
    value
}

fn ruled(rules: &Rules, old: &Value, new: &Value) -> Vec<String> {
    let scope = rules.scope(Subject::default());
    let changes = diff_under(old, new, &scope, &mut Renaming::default());
    changes.iter().map(|change| change.pointer().to_owned()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_rule_has_no_effect_outside_its_selection(rules in any_rules("/a"), old in arguments(), new in arguments()) {
        let beside = |key: &String| !key.starts_with("/a/") && key != "/a";
        let all: Vec<_> = ruled(&Rules::default(), &old, &new).into_iter().filter(beside).collect();
        let left: Vec<_> = ruled(&rules, &old, &new).into_iter().filter(beside).collect();
        let sorted = |mut places: Vec<String>| { places.sort(); places };
        prop_assert_eq!(sorted(left), sorted(all));
        let scope = rules.scope(Subject::default());
        let seen = |value: &Value| view(value, &scope, &mut Notes::default()).unwrap();
        let unruled_differ = !same(&without(&old, "a"), &without(&new, "a"));
        prop_assert!(!unruled_differ || !same(&seen(&old), &seen(&new)));
    }

    #[test]
    fn answers_that_are_equal_under_the_rules_differ_only_in_ids(
        rules in any_rules("/*"), old in arguments(), new in arguments(),
    ) {
        let scope = rules.scope(Subject::default());
        let seen = |value: &Value| view(value, &scope, &mut Notes::default());
        let changes = diff_under(&old, &new, &scope, &mut Renaming::any());
        prop_assert!(seen(&old) != seen(&new) || changes.is_empty(), "{changes:?}");
        let back = diff_under(&new, &old, &scope, &mut Renaming::any());
        prop_assert_eq!(changes.is_empty(), back.is_empty());
        prop_assert!(diff_under(&old, &reordered(&old), &scope, &mut Renaming::any()).is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn with_rules_an_answer_is_unchanged_against_itself(rules in any_rules("/*"), made in any_answer()) {
        Pair::with_answers(&made, &reordered(&made)).under(rules).is(Verdict::Unchanged, &[]);
    }

    #[test]
    fn with_rules_swapping_the_sides_mirrors_every_operation(
        rules in any_rules("/*"), old in any_answer(), new in any_answer(),
    ) {
        let there = Pair::with_answers(&old, &new).under(rules.clone()).differences();
        let back = Pair::with_answers(&new, &old).under(rules).differences();
        is_mirrored(&there, &back);
        prop_assert_eq!(there.rules_matched, back.rules_matched);
    }
}

#[test]
fn a_rule_without_matches_is_reported() {
    let answer = |at: &str| {
        json!({
            "schema_version": "case.v1", "status": "ok", "proposed_actions": [], "final_output": {"content_type": "text", "content": "."},
            "events": [{"type": "tool_call", "ts": 1, "call_id": "c1", "tool": "log", "args": {"at": at}}],
        })
    };
    let written = "[[rule]]\ntool = \"log\"\npath = \"/args/at\"\nignore = true\n\
                   [[rule]]\ntool = \"lug\"\npath = \"/args/at\"\nnormalise = \"timestamp\"";
    let told = |written| {
        let evaluation = Pair::with_answers(&answer("a"), &answer("b")).under(rules(written)).evaluation();
        evaluation.rules.into_iter().map(|rule| (rule.rule, rule.matched)).collect::<Vec<_>>()
    };
    let expected =
        |rules: &[(&str, u64)]| rules.iter().map(|(rule, matched)| ((*rule).to_owned(), *matched)).collect::<Vec<_>>();
    let found = [("tool log, /args/at: ignore", 2), ("tool lug, /args/at: normalise timestamp", 0)];
    assert_eq!(told(written), expected(&found));
    let whole = "[[rule]]\ntool = \"log\"\nignore = true\n[[rule]]\nevent = \"retrieval\"\nignore = true";
    let found = [("tool log, arguments and results: ignore", 2), ("event retrieval, /*: ignore", 0)];
    assert_eq!(told(whole), expected(&found));
}
