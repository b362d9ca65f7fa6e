//! The tokens and the cost that an answer reports, in the form of the contract.

use counterproof_artifact::Count;
use serde_json::{Map, Value};

/// The field of the artifact for usage in the form of the contract.
const USAGE: &str = "usage";

/// The field of the artifact for reported usage that does not have the form of the contract, unchanged.
const REPORTED_USAGE: &str = "reported_usage";

/// The token counts of the contract, and where the OpenAI protocols report them. The first location with a count is used.
const OPENAI_COUNTS: [(&str, &[&str]); 3] = [
    ("input_tokens", &["/input_tokens", "/prompt_tokens"]),
    ("output_tokens", &["/output_tokens", "/completion_tokens"]),
    (
        "cached_tokens",
        &["/cached_tokens", "/input_tokens_details/cached_tokens", "/prompt_tokens_details/cached_tokens"],
    ),
];

/// Converts the `usage` of an OpenAI answer to the form of the contract, followed by the other fields of the server. Reported
/// usage with a field that has the name but not the type of the contract is stored a second time, unchanged.
pub(super) fn from_openai(fields: &Map<String, Value>) -> Map<String, Value> {
    let mut converted = Map::new();
    let Some(reported) = fields.get(USAGE).filter(|usage| !usage.is_null()) else { return converted };
    let mut usage = Map::new();
    for (name, pointers) in OPENAI_COUNTS {
        let counts = pointers.iter().filter_map(|pointer| reported.pointer(pointer));
        usage.extend(counts.filter(|value| fits(name, value)).take(1).map(|count| (name.to_owned(), count.clone())));
    }
    for (name, value) in reported.as_object().into_iter().flatten() {
        if fits(name, value) && !usage.contains_key(name) {
            usage.insert(name.clone(), value.clone());
        }
    }
    if !usage.is_empty() {
        converted.insert(USAGE.to_owned(), usage.into());
    }
    if !is_valid(reported) {
        converted.insert(REPORTED_USAGE.to_owned(), reported.clone());
    }
    converted
}

/// True for usage in the form of the contract.
pub(super) fn is_valid(usage: &Value) -> bool {
    usage.as_object().is_some_and(|fields| fields.iter().all(|(name, value)| fits(name, value)))
}

/// True for a field with the type that the contract requires for its name. Fields with other names can have any type.
fn fits(name: &str, value: &Value) -> bool {
    match name {
        "input_tokens" | "output_tokens" | "cached_tokens" => serde_json::from_value::<Count>(value.clone()).is_ok(),
        "cost" => value.as_f64().is_some_and(|cost| cost >= 0.0),
        "currency" => value.is_string(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn convert(usage: Value) -> Value {
        from_openai(&Map::from_iter([(USAGE.to_owned(), usage)])).into()
    }

    #[test]
    fn chat_and_responses_report_the_same_counts_under_different_names() {
        let details = json!({"cached_tokens": 64});
        let chat = json!({"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107, "prompt_tokens_details": details});
        let responses = json!({"input_tokens": 100, "output_tokens": 7, "input_tokens_details": details});
        for reported in [chat, responses] {
            let usage = &convert(reported.clone())[USAGE];
            assert_eq!(
                (&usage["input_tokens"], &usage["output_tokens"], &usage["cached_tokens"]),
                (&json!(100), &json!(7), &json!(64)),
                "{reported}"
            );
            let kept = reported.as_object().unwrap().iter().all(|(name, value)| &usage[name] == value);
            assert!(kept, "the fields of the server are kept: {usage}");
        }
    }

    #[test]
    fn a_cost_is_taken_from_the_server() {
        assert_eq!(convert(json!({"cost": 0.25})), json!({"usage": {"cost": 0.25}}));
        assert_eq!(
            convert(json!({"prompt_tokens": 1, "cost": "free"})),
            json!({"usage": {"input_tokens": 1, "prompt_tokens": 1}, "reported_usage": {"prompt_tokens": 1, "cost": "free"}})
        );
    }

    #[test]
    fn usage_in_another_form_is_stored_unchanged() {
        for reported in [json!("12 tokens"), json!({"input_tokens": -1}), json!({"cost": -0.5})] {
            assert_eq!(convert(reported.clone()), json!({"reported_usage": reported}));
        }
        assert_eq!(convert(Value::Null), json!({}));
        assert_eq!(
            convert(json!({"prompt_tokens": null, "completion_tokens": 2})),
            json!({"usage": {"output_tokens": 2, "prompt_tokens": null, "completion_tokens": 2}})
        );
    }
}
