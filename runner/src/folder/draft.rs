//! Drafts of expectations: what all runs of a baseline share in a case, as expressions for a person to read.
//!
//! A draft states a fact about the baseline, not whether it matters. Three kinds of facts are drafted: the high-risk actions with
//! their params, the numbers in the text of the answer, and the tools with a stated risk that other cases use and this one never does.

use std::collections::{BTreeMap, BTreeSet};

use counterproof_artifact::{Answer, CaseId, Content, EventBody, Outcome, RiskLevel};
use counterproof_cases::draft::{CaseDraft, DraftExpect, DraftExpected, field, numbers, quoted, states_number};
use counterproof_store::{ReadError, RunReader};
use serde_json::{Map, Value};

/// Maximum number of drafted actions, of params of an action, and of numbers, for a case. More would not be read.
const MAX_PER_CASE: usize = 10;

/// Maximum length of a drafted text value, in bytes. A longer text is prose, which differs between correct answers.
const MAX_TEXT_BYTES: usize = 80;

/// Drafts expectations from the runs of a baseline. Cases without an answer in every run have none.
pub fn draft_expectations(runs: &[RunReader]) -> Result<Vec<CaseDraft>, ReadError> {
    let Some(first) = runs.first() else { return Ok(Vec::new()) };
    let mut answers: Vec<(CaseId, Vec<Answer>)> = Vec::new();
    for case_id in &first.run().selected_case_ids {
        if let Some(found) = answers_of(runs, case_id)? {
            answers.push((case_id.clone(), found));
        }
    }
    // Over all cases: each is compared with the tools of the others.
    let risky: BTreeSet<&str> = answers.iter().flat_map(|(_, answers)| answers).flat_map(risky_tools).collect();
    let draft = |(id, answers): &(CaseId, Vec<Answer>)| {
        let mut expect = actions(answers);
        expect.extend(shared_numbers(answers));
        expect.extend(unused_tools(answers, &risky));
        (!expect.is_empty()).then(|| CaseDraft { id: id.clone(), expected: DraftExpected { expect } })
    };
    Ok(answers.iter().filter_map(draft).collect())
}

/// Returns the runs of the latest baseline: it and its repeats, the oldest first.
pub fn runs_of_baseline(mut latest: counterproof_store::Latest) -> Vec<RunReader> {
    latest.repeats.push(latest.run);
    latest.repeats
}

/// Returns the answers of a case in all runs; `None` if a run has none.
fn answers_of(runs: &[RunReader], case_id: &CaseId) -> Result<Option<Vec<Answer>>, ReadError> {
    let mut answers = Vec::new();
    for run in runs {
        match run.read_case(case_id) {
            Ok(case) => match case.outcome {
                Outcome::Ok(answer) => answers.push(answer),
                // A case that failed in one run has nothing that all runs share.
                Outcome::RunnerError(_) => return Ok(None),
            },
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(answers))
}

/// Drafts the high-risk actions that every run has, each with the params that have one value in all of them.
fn actions(answers: &[Answer]) -> Vec<DraftExpect> {
    let high = |answer: &Answer| -> Vec<(String, BTreeMap<String, String>)> {
        let actions = answer.proposed_actions.iter().filter(|action| action.risk_level == RiskLevel::High);
        actions.map(|action| (action.tool_name.clone(), literals(&action.params))).collect()
    };
    let Some((first, others)) = answers.split_first() else { return Vec::new() };
    let mut others: Vec<_> = others.iter().map(high).collect();
    let mut drafts = Vec::new();
    for (tool, mut params) in high(first).into_iter().take(MAX_PER_CASE) {
        // Actions of one tool are paired in order. Each is used once, so that two refunds are not drafted from one.
        let paired: Option<Vec<_>> = others.iter_mut().map(|actions| take_action(actions, &tool)).collect();
        let Some(paired) = paired else { continue };
        params.retain(|path, value| paired.iter().all(|other| other.get(path) == Some(value)));
        let tool_is = format!("a.tool_name == {}", quoted(&tool));
        let params: Vec<_> = params.iter().take(MAX_PER_CASE).collect();
        let conditions = params.iter().map(|(path, value)| format!("a.params{path} == {value}"));
        let condition: Vec<_> = std::iter::once(tool_is).chain(conditions).collect();
        let shown: Vec<_> =
            params.iter().map(|(path, value)| format!("{} {value}", path.trim_start_matches('.'))).collect();
        drafts.push(DraftExpect {
            name: if shown.is_empty() {
                format!("proposes {tool}")
            } else {
                format!("proposes {tool} with {}", shown.join(", "))
            },
            expr: format!("proposed_actions.exists(a, {})", condition.join(" && ")),
            must: false,
            draft: true,
        });
    }
    drafts
}

fn take_action(actions: &mut Vec<(String, BTreeMap<String, String>)>, tool: &str) -> Option<BTreeMap<String, String>> {
    let index = actions.iter().position(|(name, _)| name == tool)?;
    Some(actions.remove(index).1)
}

/// Returns the scalar values of an object as literals of an expression, by their path such as `.address.city`.
fn literals(params: &Map<String, Value>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open: Vec<(String, &Map<String, Value>)> = vec![(String::new(), params)];
    while let Some((path, object)) = open.pop() {
        for (key, value) in object {
            let path = format!("{path}{}", field(key));
            match value {
                Value::Object(object) => open.push((path, object)),
                Value::String(text) if text.len() <= MAX_TEXT_BYTES => {
                    found.insert(path, quoted(text));
                }
                Value::Number(_) | Value::Bool(_) => {
                    found.insert(path, value.to_string());
                }
                Value::String(_) | Value::Array(_) | Value::Null => {}
            }
        }
    }
    found
}

/// Drafts the numbers that the text of every answer has.
fn shared_numbers(answers: &[Answer]) -> Vec<DraftExpect> {
    let of = |answer: &Answer| match &answer.final_output.content {
        Content::Text(text) => numbers(text).into_iter().map(|range| text[range].to_owned()).collect(),
        Content::Json(_) => BTreeSet::new(),
    };
    let shared = answers.iter().map(of).reduce(|shared, next| shared.intersection(&next).cloned().collect());
    let draft = |number: String| DraftExpect {
        name: format!("the answer states {number}"),
        expr: states_number(&number),
        must: false,
        draft: true,
    };
    shared.unwrap_or_default().into_iter().take(MAX_PER_CASE).map(draft).collect()
}

/// Drafts that a case uses none of the tools with a stated risk that only other cases use.
fn unused_tools(answers: &[Answer], risky: &BTreeSet<&str>) -> Option<DraftExpect> {
    let used: BTreeSet<&str> = answers.iter().flat_map(tools).collect();
    let unused: Vec<_> = risky.difference(&used).copied().collect();
    if unused.is_empty() {
        return None;
    }
    let list = unused.iter().map(|tool| quoted(tool)).collect::<Vec<_>>().join(", ");
    Some(DraftExpect {
        name: format!("never uses {}", unused.join(", ")),
        expr: format!(
            "!proposed_actions.exists(a, a.tool_name in [{list}]) && \
             !events.exists(e, e.type == 'tool_call' && e.tool in [{list}])"
        ),
        must: false,
        draft: true,
    })
}

/// Returns the tools that an answer proposes or calls.
fn tools(answer: &Answer) -> impl Iterator<Item = &str> {
    let called = answer.events.iter().filter_map(|event| match &event.body {
        EventBody::ToolCall(call) => Some(call.tool.as_str()),
        _ => None,
    });
    answer.proposed_actions.iter().map(|action| action.tool_name.as_str()).chain(called)
}

/// Returns the tools that an answer proposes or calls at a stated risk above low.
fn risky_tools(answer: &Answer) -> impl Iterator<Item = &str> {
    let is_risky = |risk: RiskLevel| matches!(risk, RiskLevel::High | RiskLevel::Medium);
    let called = answer.events.iter().filter_map(move |event| match &event.body {
        EventBody::ToolCall(call) => call.risk_level.is_some_and(is_risky).then_some(call.tool.as_str()),
        _ => None,
    });
    let proposed = answer.proposed_actions.iter().filter(move |action| is_risky(action.risk_level));
    proposed.map(|action| action.tool_name.as_str()).chain(called)
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterproof_artifact::Case;
    use serde_json::json;

    fn answer(tool: &str, amount: u64, text: &str) -> Answer {
        let case: Case = serde_json::from_value(json!({
            "schema_version": "case.v1", "case_id": "c", "version": "new", "status": "ok",
            "proposed_actions": [{
                "action_id": "a", "action_type": "refund", "tool_name": tool, "risk_level": "high", "risk_tags": [],
                "params": {"order_id": "A-1", "amount": amount, "to": {"iban": "DE0"}, "note": amount.to_string()},
                "evidence_refs": []
            }],
            "events": [],
            "final_output": {"content_type": "text", "content": text}
        }))
        .unwrap();
        let Outcome::Ok(answer) = case.outcome else { panic!("an answer") };
        answer
    }

    #[test]
    fn only_what_all_runs_share_is_drafted() {
        let one = answer("refund", 50, "A-1001: 50 EUR in 14 days.");
        let same: Vec<_> = actions(&[one.clone(), one.clone()]).into_iter().map(|draft| draft.expr).collect();
        assert_eq!(
            same,
            [
                "proposed_actions.exists(a, a.tool_name == 'refund' && a.params.amount == 50 && a.params.note == '50' && \
              a.params.order_id == 'A-1' && a.params.to.iban == 'DE0')"
            ]
        );
        let other = answer("refund", 60, "60 EUR, 14 days");
        let shared: Vec<_> = actions(&[one.clone(), other.clone()]).into_iter().map(|draft| draft.name).collect();
        assert_eq!(shared, ["proposes refund with order_id 'A-1', to.iban 'DE0'"]);
        assert_eq!(actions(&[one.clone(), answer("other", 50, "")]), []);
        let numbers: Vec<_> = shared_numbers(&[one, other]).into_iter().map(|draft| draft.name).collect();
        assert_eq!(numbers, ["the answer states 14"]);
    }
}
