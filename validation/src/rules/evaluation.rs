//! Rules for `evaluation.json`: its counts match its cases.

use std::collections::HashMap;

use serde_json::Value;

use crate::Code;
use crate::finding::Findings;
use crate::json_value::{count, items};
use crate::rules::names;
use crate::rules::schema;
use counterproof_artifact::evaluation::Verdict;
use counterproof_artifact::schema::Kind;

/// Checks the document. Returns false where it is another kind of document.
pub(crate) fn check(evaluation: &Value, findings: &mut Findings) -> bool {
    if !schema::check(Kind::Evaluation, evaluation, findings) {
        return false;
    }
    for side in ["baseline", "new"] {
        names::run_id(&evaluation[side]["run_id"], &format!("/{side}/run_id"), findings);
        names::time(&evaluation[side]["generated_at"], &format!("/{side}/generated_at"), findings);
    }
    let mut actual: HashMap<&str, u64> = HashMap::new();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (index, case) in items(evaluation, "cases") {
        names::case_id(&case["case_id"], &format!("/cases/{index}/case_id"), findings);
        if let Some(verdict) = case["verdict"].as_str() {
            *actual.entry(verdict).or_default() += 1;
        }
        if let Some(id) = case["case_id"].as_str()
            && let Some(earlier) = seen.insert(id, index)
        {
            let message = format!("the case is already listed at `/cases/{earlier}`");
            findings.add(Code::DuplicateCaseId, format!("/cases/{index}/case_id"), message, "each case at most once");
        }
    }
    for verdict in Verdict::ALL {
        let word = verdict.as_str();
        let actual = actual.get(word).copied().unwrap_or_default();
        let said = &evaluation["counts"][word];
        if said.is_null() && actual == 0 {
            continue;
        }
        if count(said).is_none_or(|said| said != actual) {
            let pointer = if said.is_null() { "/counts".to_owned() } else { format!("/counts/{word}") };
            let message = format!("{actual} cases are `{word}`, but the count is {said}");
            findings.add(Code::CountsDiffer, pointer, message, format!("`{actual}`"));
        }
    }
    true
}
