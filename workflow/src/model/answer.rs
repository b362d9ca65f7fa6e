//! A whole answer of a model, and the message that a client sends back for it.

use counterproof_sessions::event::{LlmResponse, RequestedCall, Usage};
use serde_json::{Map, Value, json};

/// A whole answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The assistant message for the history. The ids of its calls are different from each other.
    pub message: Value,
    /// The tool calls of the message, with its ids.
    pub calls: Vec<RequestedCall>,
    pub text: Option<String>,
    pub usage: Option<Usage>,
    pub finish_reason: Option<String>,
}

impl Answer {
    /// Returns the answer of a response; `None` if it has no choice with a message. `messages` is the length of the history.
    pub(super) fn from_response(response: &LlmResponse, messages: usize) -> Option<Self> {
        response.body["choices"][0]["message"].as_object()?;
        let calls = with_ids(&response.tool_calls, messages);
        let text = response.content.clone();
        // Only these fields: servers refuse further ones of their own answers, such as `reasoning_content`.
        let mut message = Map::new();
        message.insert("role".into(), "assistant".into());
        message.insert("content".into(), text.clone().map_or(Value::Null, Value::String));
        if !calls.is_empty() {
            let calls = calls.iter().map(|call| {
                let function = json!({"name": call.function.name, "arguments": call.function.arguments});
                json!({"id": call.id, "type": "function", "function": function})
            });
            message.insert("tool_calls".into(), calls.collect());
        } else if text.is_none() {
            // A message of the assistant has a text or calls.
            message.insert("content".into(), "".into());
        }
        let (usage, finish_reason) = (response.usage, response.finish_reason.clone());
        Some(Self { message: Value::Object(message), calls, text, usage, finish_reason })
    }
}

/// Gives an id to each call without one, and to each whose id another call of the message has.
fn with_ids(calls: &[RequestedCall], messages: usize) -> Vec<RequestedCall> {
    let mut numbered: Vec<RequestedCall> = Vec::with_capacity(calls.len());
    for (index, call) in calls.iter().enumerate() {
        let mut call = call.clone();
        let is_taken = |id: &str| numbered.iter().any(|other| other.id.as_deref() == Some(id));
        if call.id.as_deref().is_none_or(|id| id.is_empty() || is_taken(id)) {
            // Not random: the next request must be the same in a run that was resumed.
            call.id = Some(format!("call_{messages}_{index}"));
        }
        numbered.push(call);
    }
    numbered
}

#[cfg(test)]
mod tests {
    use counterproof_sessions::event::Api;
    use counterproof_sessions::protocol::response_from_body;

    use super::*;

    fn answer(message: &Value) -> Option<Answer> {
        let body = json!({"choices": [{"message": message, "finish_reason": "stop"}]});
        Answer::from_response(&response_from_body(Api::OpenaiChat, body), 7)
    }

    #[test]
    fn a_message_goes_back_with_its_text_and_calls_only() {
        let call = json!({"id": "a", "type": "function", "function": {"name": "read", "arguments": "{\"path\": "}});
        let sent = json!({"role": "assistant", "content": null, "refusal": null, "reasoning_content": "hm",
            "tool_calls": [call]});
        let found = answer(&sent).unwrap();
        assert_eq!(found.message, json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        assert_eq!((found.text, found.calls.len()), (None, 1));
        let found = answer(&json!({"role": "assistant", "content": "Done."})).unwrap();
        assert_eq!(found.message, json!({"role": "assistant", "content": "Done."}));
        assert_eq!(answer(&json!({})).unwrap().message, json!({"role": "assistant", "content": ""}));
        assert_eq!(answer(&json!("text")), None);
    }

    #[test]
    fn calls_without_an_id_of_their_own_get_one() {
        let call = |id: Value| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let calls = [call(json!("a")), call(json!("a")), call(Value::Null), call(json!(""))];
        let found = answer(&json!({"tool_calls": calls})).unwrap();
        let ids: Vec<_> = found.calls.iter().map(|call| call.id.clone().unwrap()).collect();
        assert_eq!(ids, ["a", "call_7_1", "call_7_2", "call_7_3"]);
        assert_eq!(found.message["tool_calls"][3]["id"], "call_7_3");
    }
}
