//! The documentation: its examples are policies without warnings, and decide as it says.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_guard::policy::{LintCode, PolicyFile, lint, test};
use counterproof_ledger::event::Action;
use serde_json::json;

use crate::kit::{Run, identity, policy, read_request};

const DOCS: &str = include_str!("../../../docs/policy.md");

/// Returns the blocks of code in YAML or JSON that contain a text.
fn blocks(text: &str) -> Vec<&'static str> {
    let blocks = DOCS.split("```yaml\n").flat_map(|part| part.split("```json\n")).skip(1);
    blocks
        .filter_map(|block| block.split_once("```"))
        .map(|(block, _)| block)
        .filter(|block| block.contains(text))
        .collect()
}

#[test]
fn every_policy_in_the_docs_has_no_warnings() {
    let policies = blocks("policy_id");
    assert_eq!(policies.len(), 4);
    for text in policies {
        let linted = lint(&PolicyFile { path: Utf8PathBuf::from("docs"), bytes: text.as_bytes().to_vec() });
        assert_eq!(linted.errors, []);
        let codes: Vec<LintCode> = linted.warnings.iter().map(|warning| warning.code).collect();
        let expected = if text.contains("mode: observe") { vec![LintCode::OnlyObserves] } else { vec![] };
        assert_eq!(codes, expected, "{:?}", linted.warnings);
    }
}

#[test]
fn the_tests_in_the_docs_pass() {
    let (first, tests) = (blocks("shop-agent")[0], blocks("tests:")[0]);
    let report = test(&Arc::new(policy(first)), Utf8Path::new("docs"), tests.as_bytes(), &read_request);
    assert_eq!((report.findings.as_slice(), report.tests.len()), (&[][..], 2));
}

#[test]
fn the_examples_decide_as_they_say() {
    let mut review = Run::with_identity(policy(blocks("review-agent")[0]), &identity());
    let mut decide = |server: &str, tool: &str| review.call(server, tool, &json!({})).record;
    assert_eq!(decide("github", "get_file").action, Action::Allow);
    assert_eq!(decide("github", "add_review_comment").rule_id.as_deref(), Some("allow-comments"));
    assert_eq!(decide("other", "add_review_comment").action, Action::RejectWithHint);
    assert_eq!(review.large_call("github", "get_file").record.action, Action::Allow);

    let mut shop = Run::new(policy(blocks("shop-assistant")[0]));
    let mut refund =
        |amount: f64, order: u64| shop.call("shop", "refund_order", &json!({"amount": amount, "order": order})).record;
    assert_eq!(refund(100.0, 1).action, Action::Allow);
    assert_eq!(refund(100.5, 2).rule_id.as_deref(), Some("large-refunds"));
    assert_eq!(refund(100.0, 1).rule_id.as_deref(), Some("refund-once"));
    assert_eq!([refund(1.0, 3).action, refund(1.0, 4).action], [Action::Allow; 2]);
    let decision = refund(1.0, 5);
    assert_eq!((decision.action, decision.rule_id.as_deref()), (Action::RejectWithHint, Some("refund-budget")));

    let mut platform = Run::new(policy(blocks("policy_id: platform")[0]));
    let observed = platform.call("git", "create_file", &json!({"branch": "main"})).record.observed.unwrap();
    assert_eq!((observed.action, observed.reason_code.as_str()), (Action::Block, "PROTECTED_BRANCH"));
}
