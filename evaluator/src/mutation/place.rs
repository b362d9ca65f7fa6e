//! Places of an answer that a fault changes: the steps that call tools, and the values of arguments.

use counterproof_artifact::{Answer, Event, EventBody, ProposedAction, RiskLevel};
use counterproof_cases::draft::{field, quoted};
use serde_json::{Map, Value};

/// A tool call and its result, as positions among the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) call: usize,
    pub(super) result: Option<usize>,
}

/// The tool calls of an answer, in order.
pub(super) fn steps(answer: &Answer) -> Vec<Step> {
    let calls = answer.events.iter().enumerate().filter_map(|(at, event)| Some((at, event.tool_call()?)));
    calls
        .map(|(call, of)| {
            let answers = |event: &Event| matches!(&event.body, EventBody::ToolResult(it) if it.call_id == of.call_id);
            Step { call, result: answer.events.iter().position(answers) }
        })
        .collect()
}

/// The tool that a step calls.
pub(super) fn tool(answer: &Answer, step: Step) -> &str {
    answer.events[step.call].tool_call().map_or("", |call| &call.tool)
}

/// The step that carries out an action: the one that names it, or else one with the same tool and arguments.
pub(super) fn step_of(answer: &Answer, action: &ProposedAction) -> Option<Step> {
    let steps = steps(answer);
    let call = |step: &Step| answer.events[step.call].tool_call();
    let named =
        steps.iter().find(|step| call(step).is_some_and(|call| call.action_id.as_ref() == Some(&action.action_id)));
    let same =
        |step: &&Step| call(step).is_some_and(|call| call.tool == action.tool_name && call.args == action.params);
    named.or_else(|| steps.iter().find(same)).copied()
}

/// The actions, those of the highest risk first: a fault there does the most harm.
pub(super) fn by_risk(answer: &Answer) -> Vec<usize> {
    let weight = |action: &ProposedAction| match action.risk_level {
        RiskLevel::High => 0,
        RiskLevel::Medium => 1,
        RiskLevel::Unknown => 2,
        RiskLevel::Low => 3,
    };
    let mut order: Vec<usize> = (0..answer.proposed_actions.len()).collect();
    order.sort_by_key(|at| weight(&answer.proposed_actions[*at]));
    order
}

/// The step whose fault does the most harm: that of the action with the highest risk, or else the last one.
pub(super) fn main_step(answer: &Answer) -> Option<Step> {
    let of_action = by_risk(answer).into_iter().find_map(|at| step_of(answer, &answer.proposed_actions[at]));
    of_action.or_else(|| steps(answer).last().copied())
}

/// A value without parts in an object.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    /// Its JSON Pointer.
    pub(super) pointer: String,
    /// The same place in an expression, after the object: `.items[0].id`.
    pub(super) path: String,
    /// The words of all names on the way to it, in lower case.
    pub(super) words: Vec<String>,
    pub(super) value: Value,
}

/// The values without parts in an object, in the order of their names.
pub(super) fn leaves(object: &Map<String, Value>) -> Vec<Leaf> {
    let mut found = Vec::new();
    add(
        &Value::Object(object.clone()),
        &Leaf { pointer: String::new(), path: String::new(), words: Vec::new(), value: Value::Null },
        &mut found,
    );
    found
}

fn add(value: &Value, at: &Leaf, found: &mut Vec<Leaf>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let mut words = at.words.clone();
                words.extend(words_of(key));
                let pointer = format!("{}/{}", at.pointer, key.replace('~', "~0").replace('/', "~1"));
                add(value, &Leaf { pointer, path: at.path.clone() + &field(key), words, value: Value::Null }, found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                let pointer = format!("{}/{index}", at.pointer);
                let path = format!("{}[{index}]", at.path);
                add(value, &Leaf { pointer, path, words: at.words.clone(), value: Value::Null }, found);
            }
        }
        value => found.push(Leaf { value: value.clone(), ..at.clone() }),
    }
}

/// The words of a name: `orderId` and `order_id` have two.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for char in name.chars() {
        if !char.is_alphanumeric() || (was_lower && char.is_uppercase()) {
            words.push(String::new());
        }
        if char.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(char.to_lowercase());
        }
        was_lower = char.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Replaces the value at a pointer of an object.
pub(super) fn replace(object: &mut Map<String, Value>, pointer: &str, value: Value) {
    let mut root = Value::Object(std::mem::take(object));
    if let Some(place) = root.pointer_mut(pointer) {
        *place = value;
    }
    if let Value::Object(fields) = root {
        *object = fields;
    }
}

/// Returns a value without parts as a literal of an expression.
pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn leaves_have_the_words_of_their_names_and_two_addresses() {
        let object = json!({"orderId": "A-1", "items": [{"unit-price": 5}]});
        let leaves = leaves(object.as_object().unwrap());
        let shown: Vec<_> =
            leaves.iter().map(|it| (it.pointer.as_str(), it.path.as_str(), it.words.join(" "))).collect();
        assert_eq!(
            shown,
            [
                ("/orderId", ".orderId", "order id".to_owned()),
                ("/items/0/unit-price", ".items[0]['unit-price']", "items unit price".to_owned())
            ]
        );
    }
}
