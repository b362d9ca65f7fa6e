//! Tests of redaction within JSON: the text stays JSON of the same shape, and has no secret.

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::encoders::{ENCODERS, json};
use crate::{Applied, JsonRedactingStream, JsonUse, MASK, Redactor, redact_json};

fn masked(redactor: &Redactor, line: &str, size: usize, usage: JsonUse) -> String {
    let mut stream = JsonRedactingStream::new(redactor.clone(), usage);
    let mut out: Vec<u8> = line.as_bytes().chunks(size).flat_map(|part| stream.push(part)).collect();
    out.extend(stream.finish().0);
    String::from_utf8(out).unwrap()
}

fn whole(redactor: &Redactor, line: &str, usage: JsonUse) -> String {
    String::from_utf8(redact_json(redactor, line.as_bytes(), usage, &mut Applied::default()).into_owned()).unwrap()
}

#[track_caller]
fn check(secret: &str, line: &str, expected: &str) {
    check_use(secret, line, expected, JsonUse::Message);
}

#[track_caller]
fn check_use(secret: &str, line: &str, expected: &str, usage: JsonUse) {
    let redactor = Redactor::of_values([secret]).unwrap();
    for size in [1, 3, line.len()] {
        assert_eq!(masked(&redactor, line, size, usage), expected, "{size}");
    }
    assert_eq!(whole(&redactor, line, usage), expected);
}

#[test]
fn ids_numbers_literals_and_keys_of_the_protocol_stay() {
    let line =
        "{\"jsonrpc\":\"2.0\", \"id\": 1234, \"result\":{\"n\":[1234,-1234.5e3,true,null],\"text\":\"a 1234\"}}\n";
    check("1234", line, &line.replace("a 1234", "a [redacted]"));
    let line = r#"{"jsonrpc":"2.0","id":"text","method":"text","result":{"type":"x","text":"a text","id":"text"}}"#;
    let expected = r#"{"jsonrpc":"2.0","id":"text","method":"text","result":{"type":"x","text":"a [redacted]","id":"[redacted]"}}"#;
    check("text", line, expected);
    check("result", r#"[{"id":"result","result":"result"}]"#, r#"[{"id":"result","result":"[redacted]"}]"#);
    check("true", r#"{"a":true,"b":"true"}"#, r#"{"a":true,"b":"[redacted]"}"#);
}

#[test]
fn only_the_string_after_a_key_of_the_envelope_stays() {
    for (line, expected) in [
        (r#"{"id":["hunter2-x"]}"#, r#"{"id":["[redacted]"]}"#),
        (r#"{"id":{"id":"hunter2-x"}}"#, r#"{"id":{"id":"[redacted]"}}"#),
        (r#"{"id":1,"x":"hunter2-x"}"#, r#"{"id":1,"x":"[redacted]"}"#),
        (r#"{"id":1 "hunter2-x"}"#, r#"{"id":1 "[redacted]"}"#),
        (r#"{"id":"1" "hunter2-x"}"#, r#"{"id":"1" "[redacted]"}"#),
        (r#"{"id":1}{"id":"hunter2-x"}"#, r#"{"id":1}{"id":"[redacted]"}"#),
        (r#"}{"id":"hunter2-x"}"#, r#"}{"id":"[redacted]"}"#),
        (r#"{"id":"hunter2-x"#, r#"{"id":"[redacted]"#),
    ] {
        check("hunter2-x", line, expected);
    }
}

#[test]
fn keys_with_other_characters_than_those_of_protocols_are_masked() {
    check(
        "tok-1234",
        r#"{"result":{"a tok-1234":"x","tok-1234":2}}"#,
        r#"{"result":{"a [redacted]":"x","[redacted]":2}}"#,
    );
    check("to\"k\\1", r#"{"r":{"to\"k\\1":"to\"k\\1 \\"}}"#, r#"{"r":{"[redacted]":"[redacted] \\"}}"#);
}

#[test]
fn a_stored_value_has_no_secret_in_keys_ids_and_numbers() {
    let line = r#"{"id":"1234","x":[1234,-51234.5e3,true,{"a1234":12,"n":[]}]} "#;
    let expected = r#"{"id":"[redacted]","x":["[redacted]","[redacted]",true,{"a[redacted]":12,"n":[]}]} "#;
    check_use("1234", line, expected, JsonUse::Storage);
    check_use("1234", "1234", "\"[redacted]\"", JsonUse::Storage);
    check_use("token", r#"{"token":true}"#, r#"{"[redacted]":true}"#, JsonUse::Storage);
    check_use("true", r#"[true,"true"]"#, r#"[true,"[redacted]"]"#, JsonUse::Storage);
    check_use("],\"b", r#"["[],b",["a"],"b"]"#, r#"["[],b",["a"],"b"]"#, JsonUse::Storage);
}

#[test]
fn lines_that_are_not_json_are_redacted_as_text() {
    for line in [
        "hunter2-x",
        "{hunter2-x}",
        "{\"a\": nul hunter2-x",
        "{\"a\": hunter2-x}",
        "truehunter2-x",
        "{\"a\": \"hunter2-x",
    ] {
        check("hunter2-x", line, &line.replace("hunter2-x", "[redacted]"));
    }
    check("12-hunter2", "[12:30:05] 12-hunter2", "[12:30:05] [redacted]");
    check("2026-01-31", "[2026-01-31] ready", "[[redacted]] ready");
    check("12\"34x", "[12\"34x]", "[[redacted]]");
    check("7,1,true", "7,1,true 7,1,truex", "[redacted] [redacted]x");
    check("hunter2-x", "nul", "nul");
    check("hunter2-x", "7 true", "7 true");
    let redactor = Redactor::of_values(["hunter2-x"]).unwrap();
    let deep = format!("{}hunter2-x", "[".repeat(5000));
    assert!(masked(&redactor, &deep, 7, JsonUse::Message).ends_with("[[redacted]"));
}

#[test]
fn a_whole_line_that_is_not_json_has_no_secret_across_quotes() {
    let redactor = Redactor::of_values(["ha\"ha"]).unwrap();
    assert_eq!(whole(&redactor, r#"["a", "ha"ha"]"#, JsonUse::Message), r#"["a", "[redacted]"]"#);
}

#[test]
fn an_escape_is_never_cut() {
    check("nabcd", r#"{"a":"x\nabcd","b":"nabcd \nabcd"}"#, r#"{"a":"x[redacted]","b":"[redacted] [redacted]"}"#);
    check("abc\\", r#"["abc\"d","abc\\d","abc\\\"d"]"#, r#"["[redacted]d","[redacted]d","[redacted]d"]"#);
    check("de00abcd", r#"["\ud83d\ude00abcd"]"#, r#"["[redacted]"]"#);
}

/// Escapes the characters at some places.
fn with_escapes(text: &str, is_escaped: impl Fn(usize) -> bool) -> String {
    let escaped =
        |(at, it): (usize, char)| if is_escaped(at) { format!("\\u{:04x}", u32::from(it)) } else { it.to_string() };
    text.chars().enumerate().map(escaped).collect()
}

#[test]
fn a_value_is_found_in_digits_of_which_some_are_escaped() {
    let digits = ENCODERS.iter().filter(|it| it.name.contains("base64") || it.name.eq_ignore_ascii_case("hex"));
    let outer: Vec<_> = digits.collect();
    for value in ["hunter2-Tok3n", "p4ss/w'rd+\"x\"\\&"] {
        let redactor = Redactor::of_values([value]).unwrap();
        for inner in ["nothing", "json", "percent", "base64"] {
            let inner = ENCODERS.iter().find(|it| it.name == inner).unwrap();
            for outer in outer.iter().filter(|it| it.name != "base64 in lines") {
                let digits = (outer.encode)(&(inner.encode)(value));
                for places in [1, 2, 3, 5, digits.len() - 1] {
                    let text = with_escapes(&digits, |at| at == places || at == places + 4).replace('/', "\\/");
                    let line = format!(r#"{{"id":1,"result":{{"text":"a \"{text}\" b"}}}}"#);
                    for masked in
                        [masked(&redactor, &line, 7, JsonUse::Message), whole(&redactor, &line, JsonUse::Message)]
                    {
                        let value: Value = serde_json::from_str(&masked).unwrap();
                        let found = value["result"]["text"].as_str().unwrap();
                        let rest = found.replacen(MASK, "", 1).len() - "a \"\" b".len();
                        assert!(found.contains(MASK) && rest <= 24, "{} > {}: {masked}", inner.name, outer.name);
                    }
                }
            }
        }
    }
}

#[test]
fn escaped_digits_are_found_in_a_long_string_as_it_arrives() {
    // base64 of the value, with an escaped digit.
    let line = format!(r#"["{}"]"#, r"aHVudGVyMi1U\u0062\u0032szbg== padding \u00e9 ".repeat(5000));
    let redactor = Redactor::of_values(["hunter2-Tok3n"]).unwrap();
    for size in [1000, 100_000, line.len()] {
        let masked = masked(&redactor, &line, size, JsonUse::Message);
        assert_eq!(masked.matches("[redacted]").count(), 5000);
        assert!(!masked.contains("aHVu") && masked.contains(r"== padding \u00e9"), "{}", &masked[..100]);
    }
}

#[test]
fn an_escaped_backslash_starts_no_escape() {
    check("hunter2-x", r#"["\\u0068unter2-y hunter2\\u002dz"]"#, r#"["\\u0068unter2-y hunter2\\u002dz"]"#);
    check("hunter2-x", r#"["\u0068unter2-x\u0068unter2-x"]"#, r#"["[redacted][redacted]"]"#);
}

#[test]
fn a_long_line_without_strings_is_forwarded_before_its_end() {
    let line = format!("[{}]", vec!["10"; 300_000].join(","));
    let redactor = Redactor::new(["hunter2-hunter2"]).unwrap();
    let early = JsonRedactingStream::new(redactor, JsonUse::Message).push(line.as_bytes());
    assert!(early.len() > line.len() - 10_000, "{} of {}", early.len(), line.len());
}

#[test]
fn a_long_string_is_redacted_as_it_arrives() {
    for (text, expected) in
        [("hunter2-x", "[redacted]"), (r"\hunter2-x", "[redacted]"), (r"\\hunter2-x", r"\\[redacted]")]
    {
        let text = format!("{}{text}", "x".repeat(1000)).repeat(300);
        let line = format!("{{\"id\":1,\"result\":\"{text}\"}}");
        let redactor = Redactor::of_values(["hunter2-x"]).unwrap();
        for size in [1000, 100_000, line.len()] {
            let masked = masked(&redactor, &line, size, JsonUse::Message);
            assert_eq!(masked.matches("[redacted]").count(), 300);
            assert!(masked.contains(&format!("xx{expected}xx")));
        }
    }
}

#[test]
fn an_endless_key_of_a_known_format_is_dropped_up_to_the_next_escape() {
    let redactor = Redactor::new([]).unwrap();
    for between in [r"\n", r"\u000a", ""] {
        let key = format!("{}{between}", "MIIEvQ").repeat(40_000);
        let line = format!("[\"-----BEGIN PRIVATE KEY-----{key}\\\" after\"]");
        for size in [1000, 4097, line.len()] {
            let masked = masked(&redactor, &line, size, JsonUse::Storage);
            let value: Value = serde_json::from_str(&masked).unwrap_or_else(|error| panic!("{error}: {masked}"));
            assert!(!masked.contains("MIIE") && value[0].as_str().unwrap().starts_with(MASK), "{masked}");
        }
    }
}

/// A secret that is no part of a mask, of a number or of a key of a protocol.
fn secrets() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9\"\\\\/é🔑 \n]{1,6}7[a-z]"
}

/// Texts with the secret in different forms between other characters.
fn texts(secret: &str) -> impl Strategy<Value = String> + use<> {
    let mut forms: Vec<String> = ENCODERS.iter().map(|encoder| (encoder.encode)(secret)).collect();
    forms.extend([secret.to_owned(), secret.to_owned(), String::new(), json(secret)]);
    let other = "[a-z0-9\"\\\\/\n\té🔑 ]{0,6}";
    (other, prop::sample::select(forms), other).prop_map(|(before, form, after)| format!("{before}{form}{after}"))
}

fn values(secret: &str) -> impl Strategy<Value = Value> + use<> {
    let key =
        prop_oneof!["[a-z]{1,3}", prop::sample::select(vec!["id".to_owned(), "method".to_owned()]), texts(secret)];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        texts(secret).prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 20, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..4).prop_map(|fields| Value::from(Map::from_iter(fields))),
        ]
    })
}

/// Writes a value with one of several ways to escape strings.
fn written(value: &Value, style: u8) -> String {
    let string = |text: &str| match style {
        0 => Value::from(text).to_string(),
        1 => Value::from(text).to_string().replace('/', "\\/"),
        _ => {
            let units = text.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
            format!("\"{}\"", units.collect::<String>())
        }
    };
    match value {
        Value::String(text) => string(text),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| written(item, style)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|(key, value)| format!("{}: {}", string(key), written(value, style))).collect();
            format!("{{{}}}", fields.join(" ,"))
        }
        other => other.to_string(),
    }
}

/// Checks that a masked value has the shape of another one, and that its strings have no secret.
fn check_value(before: &Value, after: &Value, secret: &str, depth: usize) {
    match (before, after) {
        (Value::String(_), Value::String(after)) => assert!(!after.contains(secret), "{after}"),
        (Value::Array(before), Value::Array(after)) => {
            assert_eq!(before.len(), after.len());
            before.iter().zip(after).for_each(|(before, after)| check_value(before, after, secret, depth + 1));
        }
        (Value::Object(before), Value::Object(after)) => {
            // Keys that are masked can become equal.
            assert!(after.len() <= before.len());
            for (key, after) in after {
                assert!(!key.contains(secret), "{key}");
                if depth > 1 || !["id", "method"].contains(&key.as_str()) {
                    before.get(key).into_iter().for_each(|before| check_value(before, after, secret, depth + 1));
                }
            }
        }
        (before, after) => assert_eq!(before, after),
    }
}

proptest! {
    #[test]
    fn a_line_without_the_secret_stays_as_it_is(line in r#"[\[\]{}:,"a-e0-9tfn\\ .u-]{0,60}"#, size in 1_usize..9) {
        let redactor = Redactor::of_values(["hunter2-x"]).unwrap();
        prop_assert_eq!(masked(&redactor, &line, size, JsonUse::Message), line.clone());
        prop_assert_eq!(masked(&redactor, &line, size, JsonUse::Storage), line);
    }

    #[test]
    fn json_stays_json_of_the_same_shape_without_the_secret(
        (secret, value) in secrets().prop_flat_map(|secret| { let values = values(&secret); (Just(secret), values) }),
        style in 0_u8..3,
        size in 1_usize..40,
        is_message: bool,
    ) {
        let usage = if is_message { JsonUse::Message } else { JsonUse::Storage };
        let redactor = Redactor::of_values([secret.as_str()]).unwrap();
        let line = written(&value, style);
        let out = masked(&redactor, &line, size, usage);
        prop_assert_eq!(&out, &whole(&redactor, &line, usage));
        let after: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
        check_value(&value, &after, &secret, 0);
        if !is_message {
            prop_assert!(!out.contains(&secret), "{}", out);
        }
    }
}

proptest! {
    // Each case masks hundreds of KiB.
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn long_strings_stay_json_without_the_secret(
        (secret, texts) in secrets().prop_flat_map(|secret| {
            let texts = prop::collection::vec(texts(&secret), 1..8);
            (Just(secret), texts)
        }),
        style in 0_u8..3,
        size in prop::sample::select(vec![997_usize, 8192, 70_000, 1 << 20]),
    ) {
        let redactor = Redactor::of_values([secret.as_str()]).unwrap();
        let text = texts.concat();
        let value = Value::from(vec![text.repeat(200_000 / text.len().max(1))]);
        let line = written(&value, style);
        let out = masked(&redactor, &line, size, JsonUse::Message);
        let after: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}"));
        prop_assert!(!after[0].as_str().unwrap().contains(&secret) && !out.contains(&secret));
    }
}
