//! Results that a case gives for tool calls, by the name of the tool and by arguments.

use serde_json::{Map, Value};

/// What a tool returned.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolOutput {
    /// For an error, its message or the whole output.
    pub(crate) value: Value,
    pub(crate) is_error: bool,
}

impl ToolOutput {
    pub(crate) fn ok(value: Value) -> Self {
        Self { value, is_error: false }
    }

    pub(crate) fn error(value: Value) -> Self {
        Self { value, is_error: true }
    }

    /// Returns the output as the model receives it.
    pub(crate) fn text(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

/// Returns the result for a call, from the value that a case gives for its tool. `None` if no entry has these arguments.
pub(super) fn canned(given: &Value, arguments: &Map<String, Value>) -> Option<ToolOutput> {
    let Some(entries) = entries(given) else { return Some(output(given)) };
    let with_arguments = entries.iter().filter_map(|entry| Some((entry.get("arguments")?.as_object()?, *entry)));
    let matching = with_arguments.into_iter().find(|(wanted, _)| fits(wanted, arguments)).map(|(_, entry)| entry);
    // Wherever the entry without arguments is, it is for the calls that no other entry has.
    let rest = || entries.iter().find(|entry| entry.get("arguments").is_none()).copied();
    matching.or_else(rest).map(|entry| output(&entry["result"]))
}

/// Returns the entries of a list by arguments. `None` for a value that is itself the result.
fn entries(given: &Value) -> Option<Vec<&Map<String, Value>>> {
    let items = given.as_array().filter(|items| !items.is_empty())?;
    let entry = |item: &'_ Value| -> bool {
        let fields = item.as_object();
        fields
            .is_some_and(|fields| fields.contains_key("result") && fields.get("arguments").is_none_or(Value::is_object))
    };
    items.iter().all(entry).then(|| items.iter().filter_map(Value::as_object).collect())
}

fn output(result: &Value) -> ToolOutput {
    match result.as_object() {
        Some(fields) if fields.len() == 1 && fields.get("error").is_some_and(Value::is_string) => {
            ToolOutput::error(fields["error"].clone())
        }
        _ => ToolOutput::ok(result.clone()),
    }
}

/// True if a call has all wanted arguments. It may have others too.
fn fits(wanted: &Map<String, Value>, arguments: &Map<String, Value>) -> bool {
    wanted.iter().all(|(name, value)| arguments.get(name).is_some_and(|found| same(value, found)))
}

/// True for equal values. `50` and `50.0` are one number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => a.len() == b.len() && fits(a, b),
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn of(given: &Value, arguments: &Value) -> Option<ToolOutput> {
        canned(given, arguments.as_object().unwrap())
    }

    #[test]
    fn any_value_but_a_list_of_entries_is_the_result() {
        for given in [json!({"status": "paid"}), json!("paid"), json!([]), json!([{"result": 1}, 2]), json!(null)] {
            assert_eq!(of(&given, &json!({})), Some(ToolOutput::ok(given.clone())));
        }
    }

    #[test]
    fn an_object_with_an_error_alone_is_an_error() {
        assert_eq!(of(&json!({"error": "gone"}), &json!({})), Some(ToolOutput::error(json!("gone"))));
        let with_more = json!({"error": "gone", "code": 4});
        assert_eq!(of(&with_more, &json!({})), Some(ToolOutput::ok(with_more.clone())));
        let entry = json!([{"result": {"error": "gone"}}]);
        assert_eq!(of(&entry, &json!({})), Some(ToolOutput::error(json!("gone"))));
    }

    #[test]
    fn the_entry_without_arguments_is_the_rest_wherever_it_is() {
        let given = json!([{"result": "rest"}, {"arguments": {"id": 7}, "result": "seven"}]);
        assert_eq!(of(&given, &json!({"id": 7.0, "more": 1})).unwrap().value, "seven");
        assert_eq!(of(&given, &json!({"id": 8})).unwrap().value, "rest");
        let without_rest = json!([{"arguments": {"id": 7}, "result": "seven"}]);
        assert_eq!(of(&without_rest, &json!({"id": "7"})), None);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf =
            prop_oneof![Just(json!(null)), any::<bool>().prop_map(Value::from), (0..3_i64).prop_map(Value::from)];
        leaf.prop_recursive(2, 8, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[ab]", inner, 0..3).prop_map(|fields| json!(fields)),
            ]
        })
    }

    fn arguments() -> impl Strategy<Value = Map<String, Value>> {
        prop::collection::btree_map("[abc]", value(), 0..4).prop_map(|fields| fields.into_iter().collect())
    }

    proptest! {
        #[test]
        fn the_first_entry_whose_arguments_the_call_has_is_chosen(
            wanted in prop::collection::vec(arguments(), 1..5),
            call in arguments(),
        ) {
            let entries: Vec<_> =
                wanted.iter().enumerate().map(|(n, wanted)| json!({"arguments": wanted, "result": n})).collect();
            let expected = wanted.iter().position(|wanted| wanted.iter().all(|(name, value)| call.get(name) == Some(value)));
            let found = canned(&entries.into(), &call).map(|output| output.value);
            prop_assert_eq!(found, expected.map(Value::from));
        }
    }
}
