//! Rules about `evaluation.json`: its counts add up with its cases.

use std::collections::HashMap;

use serde_json::Value;

use super::finding::Findings;
use super::value::{count, items};
use super::{Code, names, shape};
use counterproof_artifact::evaluation::Verdict;
use counterproof_artifact::schema::Kind;

/// The document by itself. False where it is another document.
pub(super) fn check(evaluation: &Value, findings: &mut Findings) -> bool {
    if !shape::check(Kind::Evaluation, evaluation, findings) {
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
            let message = format!("the case stands at `/cases/{earlier}` already");
            findings.add(Code::DuplicateCaseId, format!("/cases/{index}/case_id"), message, "each case once");
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
            let message = format!("{actual} cases are `{word}`, and the count says {said}");
            findings.add(Code::CountsDiffer, pointer, message, format!("`{actual}`"));
        }
    }
    true
}
