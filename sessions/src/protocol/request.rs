//! Requests: which of them ask a model, and what they contain.

use serde_json::Value;

use crate::event::{Api, LlmRequest};

/// Returns the protocol of a request that asks a model for an answer. Other requests, such as `GET …/models` and
/// `POST …/messages/count_tokens`, have none.
pub fn api_of_request(method: &str, path: &str) -> Option<Api> {
    if method != "POST" {
        return None;
    }
    let path = path.trim_end_matches('/');
    if path.ends_with("/chat/completions") {
        Some(Api::OpenaiChat)
    } else if path.ends_with("/responses") {
        Some(Api::OpenaiResponses)
    } else if path.ends_with("/messages") && !path.contains("/threads/") {
        // A message of a thread (OpenAI Assistants) is stored, and asks for no answer.
        Some(Api::AnthropicMessages)
    } else {
        None
    }
}

/// The field of a body that has the history.
pub(super) const fn history_field(api: Api) -> &'static str {
    match api {
        Api::OpenaiChat | Api::AnthropicMessages => "messages",
        Api::OpenaiResponses => "input",
    }
}

/// Returns the request that a body makes. Fields that the body lacks are null.
pub fn request_from_body(api: Api, body: Value) -> LlmRequest {
    let field = |name: &str| body.get(name).cloned().unwrap_or_default();
    LlmRequest {
        api: Some(api),
        model: body.get("model").and_then(Value::as_str).map(str::to_owned),
        messages: field(history_field(api)),
        tools: field("tools"),
        temperature: field("temperature"),
        max_tokens: field("max_tokens"),
        body,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_posts_that_ask_for_an_answer_have_a_protocol() {
        for (method, path, expected) in [
            ("POST", "/v1/chat/completions", Some(Api::OpenaiChat)),
            ("POST", "/openai/deployments/x/chat/completions", Some(Api::OpenaiChat)),
            ("POST", "/v1/responses", Some(Api::OpenaiResponses)),
            ("POST", "/responses/", Some(Api::OpenaiResponses)),
            ("POST", "/v1/messages", Some(Api::AnthropicMessages)),
            ("GET", "/v1/responses", None),
            ("GET", "/v1/models", None),
            ("POST", "/v1/messages/count_tokens", None),
            ("POST", "/v1/messages/batches", None),
            ("POST", "/v1/responses/resp_1/cancel", None),
            ("POST", "/v1/threads/thread_1/messages", None),
            ("POST", "/v1/embeddings", None),
            ("DELETE", "/v1/chat/completions", None),
            ("POST", "", None),
        ] {
            assert_eq!(api_of_request(method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn a_request_has_the_fields_as_they_were_sent() {
        let body = json!({"model": "m", "messages": [{"role": "user"}], "temperature": 0.1, "stream": true});
        let request = request_from_body(Api::OpenaiChat, body.clone());
        assert_eq!(request.model.as_deref(), Some("m"));
        assert_eq!((&request.messages, &request.temperature), (&body["messages"], &body["temperature"]));
        assert_eq!((&request.tools, &request.max_tokens), (&Value::Null, &Value::Null));
        assert_eq!(request.body, body);
        let request = request_from_body(Api::OpenaiResponses, json!({"input": "hi", "max_output_tokens": 7}));
        assert_eq!((request.messages, request.max_tokens), (json!("hi"), Value::Null));
        assert_eq!(request_from_body(Api::OpenaiChat, json!([1])).messages, Value::Null);
    }

    #[test]
    fn the_body_of_a_request_loses_only_what_other_fields_have() {
        for (api, history) in [(Api::OpenaiChat, "messages"), (Api::OpenaiResponses, "input")] {
            let body = json!({history: [{"role": "user"}], "tools": [{"name": "t"}], "seed": 1, "system": "s"});
            let mut request = request_from_body(api, body);
            request.remove_copies();
            assert_eq!(request.body, json!({"seed": 1, "system": "s"}));
            assert_eq!((request.messages, request.tools), (json!([{"role": "user"}]), json!([{"name": "t"}])));
        }
        let mut other = LlmRequest { body: json!({"messages": [1], "input": []}), ..LlmRequest::default() };
        other.remove_copies();
        assert_eq!(other.body, json!({"messages": [1], "input": []}));
    }
}
