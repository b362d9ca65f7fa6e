//! Spans, duplicate keys and positions, in chosen and in generated texts.

use proptest::prelude::*;
use serde_json::Value;

use super::duplicate_keys::MAX_DUPLICATES;
use super::*;
use counterproof_artifact::pointer;

fn texts<'a>(text: &'a str, pointers: &[&str]) -> Vec<Option<&'a str>> {
    spans(text, pointers).into_iter().map(|span| span.map(|span| &text[span])).collect()
}

#[test]
fn pointers_lead_to_their_values() {
    let text = r#" {"a": [1, {"b/c": "x\"y"}, [ ]], "d~e": {"\u0066": -1.5e3}, "a2": null} "#;
    let pointers = ["", "/a", "/a/0", "/a/1/b~1c", "/a/2", "/d~0e/f", "/a2", "/a/3", "/none", "/a2/x"];
    let expected = [
        Some(text.trim()),
        Some(r#"[1, {"b/c": "x\"y"}, [ ]]"#),
        Some("1"),
        Some(r#""x\"y""#),
        Some("[ ]"),
        Some("-1.5e3"),
        Some("null"),
        None,
        None,
        None,
    ];
    assert_eq!(texts(text, &pointers), expected);
}

#[test]
fn a_pointer_to_a_duplicate_key_locates_the_last_value() {
    assert_eq!(texts(r#"{"a": 1, "a": 2}"#, &["/a"]), [Some("2")]);
}

#[test]
fn duplicate_keys_are_found_at_any_depth_and_with_any_escapes() {
    let text = r#"{"a": 1, "b": [{"x": {}, "y": 0, "x": 2}, {"x": 1}], "\u0061": {"a": 3}}"#;
    let found: Vec<_> = duplicate_keys(text).listed.into_iter().map(|key| (key.pointer, &text[key.span])).collect();
    assert_eq!(found, [("/b/0/x".to_owned(), "\"x\""), ("/a".to_owned(), "\"\\u0061\"")]);
}

#[test]
fn pointers_of_many_duplicates_below_a_long_key_are_cut() {
    let text = format!("{{\"{}\": {{{}\"a\": 0}}}}", "k".repeat(100_000), "\"a\": 0, ".repeat(20_000));
    let found = duplicate_keys(&text);
    assert_eq!((found.listed.len(), found.omitted), (MAX_DUPLICATES, 20_000 - MAX_DUPLICATES));
    assert!(found.listed.iter().all(|key| key.pointer.is_empty() && &text[key.span.clone()] == "\"a\""));
}

#[test]
fn columns_count_characters_and_positions_keep_the_order_of_the_offsets() {
    let text = "aé\n退款x\n";
    let end = text.len();
    let position = |line, column| Position { line, column };
    assert_eq!(
        positions(text.as_bytes(), &[end, 0, 3, text.find('x').unwrap(), 1]),
        [position(3, 1), position(1, 1), position(1, 3), position(2, 3), position(1, 2)]
    );
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let depth = 1_000_000;
    let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(spans(&text, &["/0/0"]), [Some(2..2 * depth - 2)]);
}

/// Returns every pointer of a document with its value.
fn pointers(value: &Value) -> Vec<(String, &Value)> {
    let mut all = vec![(String::new(), value)];
    let mut next = 0;
    while let Some((path, value)) = all.get(next).cloned() {
        match value {
            Value::Array(items) => all.extend(items.iter().enumerate().map(|(i, v)| (format!("{path}/{i}"), v))),
            Value::Object(map) => all.extend(map.iter().map(|(k, v)| (pointer::child(&path, k), v))),
            _ => {}
        }
        next += 1;
    }
    all
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(Value::Null), any::<i64>().prop_map(Value::from), ".{0,6}".prop_map(Value::from)];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((".{0,4}", inner), 0..5).prop_map(|pairs| pairs.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn every_span_contains_its_value(value in any_json(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        let all = pointers(&value);
        let names: Vec<&str> = all.iter().map(|(pointer, _)| pointer.as_str()).collect();
        for (span, (pointer, value)) in spans(&text, &names).into_iter().zip(&all) {
            let span = span.unwrap_or_else(|| panic!("{pointer} in {text}"));
            prop_assert_eq!(&serde_json::from_str::<Value>(&text[span]).unwrap(), *value);
        }
        prop_assert_eq!(duplicate_keys(&text), DuplicateKeys::default());
    }

    #[test]
    fn invalid_texts_do_not_panic(text in ".{0,60}", json in "[\\[\\]{}\",:\\\\a1 é]{0,60}") {
        for text in [&text, &json] {
            let _ = spans(text, &["", "/0", "/a"]);
            let _ = duplicate_keys(text);
        }
    }
}
