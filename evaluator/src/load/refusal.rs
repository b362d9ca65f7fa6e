//! Calls that a policy refused. The ledger exports the decision in the result of the call, or in a call without a result.

use counterproof_artifact::{EventBody, ToolCall, ToolStatus};
use serde_json::{Map, Value};

use super::LoadedAnswer;
use super::payload::Payload;
use crate::values::text;

/// The field with the decision about a refused call.
const DECISION: &str = "decision";

/// The annotation of a call with what the rules would have decided in observe mode, and the action that does not refuse.
const OBSERVED: &str = "observed";
const ALLOW: &str = "ALLOW";

/// Maximum number of characters of a rule and of a reason in a message.
const RULE_CHARS: usize = 80;
const SUMMARY_CHARS: usize = 120;

/// Describes who refused a call and why, if an event states that: `refused by the rule limit (too many)`.
pub(crate) fn refusal(loaded: &LoadedAnswer, index: usize) -> Option<String> {
    let decision = match &loaded.answer.events[index].body {
        EventBody::ToolResult(result) if result.status == ToolStatus::Error => match loaded.payload(index)? {
            Payload::Object(fields) => fields.get(DECISION)?.as_object()?,
            Payload::Text(_) | Payload::Other(_) => return None,
        },
        EventBody::ToolCall(call) => call.extra.get(DECISION)?.as_object()?,
        _ => return None,
    };
    // A result of a tool can have a field of this name, too. A decision of a policy states at least one of these.
    let is_of_policy = ["rule_id", "reason_code"].iter().any(|name| decision.get(*name).is_some_and(Value::is_string));
    is_of_policy.then(|| describe(decision))
}

/// Returns the calls that were allowed only because the policy observes, each by its position and its description.
pub(crate) fn observed_refusals(loaded: &LoadedAnswer) -> impl Iterator<Item = (usize, String)> {
    loaded.answer.events.iter().enumerate().filter_map(|(index, event)| match &event.body {
        EventBody::ToolCall(call) => Some((index, observed_refusal(call)?)),
        _ => None,
    })
}

fn observed_refusal(call: &ToolCall) -> Option<String> {
    let observed = call.annotations.as_ref()?.get(OBSERVED)?.as_object()?;
    let field = |name: &str| observed.get(name)?.as_str().filter(|value| !value.is_empty());
    field("action").filter(|action| *action != ALLOW)?;
    let tool = text::one_line(&call.tool, RULE_CHARS);
    Some(match field("rule_id").or_else(|| field("reason_code")) {
        Some(rule) => format!("{tool} ({})", text::one_line(rule, RULE_CHARS)),
        None => tool,
    })
}

fn describe(decision: &Map<String, Value>) -> String {
    let field = |name: &str, chars| {
        let value = decision.get(name)?.as_str().filter(|value| !value.is_empty())?;
        Some(text::one_line(value, chars))
    };
    // The guard also refuses calls without a rule, such as those that it cannot read.
    let rule = field("rule_id", RULE_CHARS).map(|rule| format!("refused by the rule {rule}"));
    let refused = rule.unwrap_or_else(|| "refused".to_owned());
    match field("summary", SUMMARY_CHARS).or_else(|| field("reason_code", RULE_CHARS)) {
        Some(reason) => format!("{refused} ({reason})"),
        None => refused,
    }
}
