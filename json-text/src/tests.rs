//! The tokenizer, positions and the strict parser, in chosen and in generated texts; most are compared with `serde_json`.

use std::ops::Range;

use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::locate::MAX_DUPLICATES;
use crate::*;

type Tokens = (Vec<(Token, Vec<u8>)>, Result<(), SyntaxError>);

/// The tokens of bytes that arrive in pieces, adjacent parts of one token joined.
fn tokens(bytes: &[u8], piece: usize) -> Tokens {
    let mut tokenizer = Tokenizer::default();
    let mut tokens: Vec<(Token, Vec<u8>)> = Vec::new();
    for mut rest in bytes.chunks(piece) {
        while let Some((token, length)) = tokenizer.read(rest) {
            match tokens.last_mut() {
                Some((last, part)) if *last == token && matches!(token, Token::Content | Token::Gap) => {
                    part.extend_from_slice(&rest[..length]);
                }
                _ => tokens.push((token, rest[..length].to_vec())),
            }
            rest = &rest[length..];
        }
    }
    (tokens, tokenizer.finish())
}

#[test]
fn tokens_are_events_with_their_bytes() {
    let (tokens, end) = tokens(br#"{"a\"b": [-1.5e+3 ,null]}"#, 100);
    assert_eq!(end, Ok(()));
    let found: Vec<String> =
        tokens.iter().map(|(token, bytes)| format!("{token:?} {}", String::from_utf8_lossy(bytes))).collect();
    assert_eq!(
        found,
        [
            "Begin(Object) {",
            "Begin(Key) \"",
            "Content a\\\"b",
            "End(Key) \"",
            "Gap : ",
            "Begin(Array) [",
            "Begin(Scalar) ",
            "Content -1.5e+3",
            "End(Scalar) ",
            "Gap  ,",
            "Begin(Scalar) ",
            "Content null",
            "End(Scalar) ",
            "End(Array) ]",
            "End(Object) }",
        ]
    );
}

#[test]
fn errors_have_their_offset() {
    for (text, error) in [
        (&b"{} {}"[..], SyntaxError::SecondValue { offset: 3 }),
        (b"{\"a\":01}", SyntaxError::Unexpected { offset: 6 }),
        (b"[tru]", SyntaxError::Unexpected { offset: 4 }),
        (b"[1.]", SyntaxError::Unexpected { offset: 3 }),
        (b"[\"\\x\", 1", SyntaxError::Unexpected { offset: 3 }),
        (b"[\"\\u00g0\"]", SyntaxError::Unexpected { offset: 6 }),
        (b"[\"a\nb\"]", SyntaxError::Unexpected { offset: 3 }),
        (b"[\"a\xe9\"]", SyntaxError::NotUtf8 { offset: 4 }),
        (b"[\"\xc3\"]", SyntaxError::NotUtf8 { offset: 3 }),
        (b"\xef\xbb\xbf{}", SyntaxError::Unexpected { offset: 0 }),
        (b"[1,]", SyntaxError::Unexpected { offset: 3 }),
        (b"{\"a\" 1}", SyntaxError::Unexpected { offset: 5 }),
        (b"[}", SyntaxError::Unexpected { offset: 1 }),
        (b"\"a", SyntaxError::Unfinished),
        (b"-", SyntaxError::Unfinished),
        (b" ", SyntaxError::Unfinished),
    ] {
        assert_eq!(check(text), Err(error), "{}", String::from_utf8_lossy(text));
        assert!(tokens(text, 1).1.is_err(), "{}", String::from_utf8_lossy(text));
    }
    assert_eq!(check(&b"[".repeat(200)), Err(SyntaxError::TooDeep { offset: MAX_DEPTH as u64 }));
}

#[test]
fn faults_within_a_string_do_not_hide_what_follows() {
    let (tokens, end) = tokens(b"[\"\\q\xff\", 7]", 1);
    assert_eq!(tokens.last().map(|(token, _)| *token), Some(Token::End(Kind::Array)));
    assert_eq!(end, Err(SyntaxError::Unexpected { offset: 3 }));
}

#[test]
fn what_serde_json_cannot_represent_is_json_nevertheless() {
    for text in ["1.5e3111", "[1e999]", r#""\ud83d""#] {
        assert_eq!(check(text.as_bytes()), Ok(()), "{text}");
        assert!(
            parse(text).is_err() && matches!(parse_strict(text.as_bytes()), Err(StrictError::Invalid(_))),
            "{text}"
        );
    }
    assert_eq!(parse("1e-999").unwrap().value, json!(0.0));
    let twice = br#"{"a": 1e999, "a": 1}"#;
    assert!(matches!(parse_strict(twice), Err(StrictError::DuplicateKey(key)) if key == "a"));
}

#[test]
fn a_key_that_occurs_twice_at_any_depth_is_an_error() {
    for text in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"\u0061":2}}]"#] {
        assert!(matches!(parse_strict(text.as_bytes()), Err(StrictError::DuplicateKey(key)) if key == "a"), "{text}");
    }
    assert_eq!(parse_strict(br#"{"a":{"a":1},"b":[{"a":1}]}"#).unwrap(), json!({"a": {"a": 1}, "b": [{"a": 1}]}));
    assert_eq!(parse(r#"{"a":1,"a":2}"#).unwrap(), Parsed { value: json!({"a": 2}), has_duplicate_keys: true });
}

#[test]
fn a_place_within_an_escape_moves_to_its_bounds() {
    let text = br#"a\n\\"b\u00e9\ud83d\ude00c\"#;
    let around = |place| {
        let mut cursor = EscapeCursor::new(text, 0);
        (cursor.start(place), cursor.end(place))
    };
    let expected = [
        (0, (0, 0)),
        (1, (1, 1)),
        (2, (1, 3)),
        (4, (3, 5)),
        (5, (5, 5)),
        (8, (7, 13)),
        (13, (13, 13)),
        (19, (13, 25)),
        (25, (25, 25)),
        (27, (26, 27)),
    ];
    for (place, bounds) in expected {
        assert_eq!(around(place), bounds, "{place}");
    }
}

fn located(quoted: &str, part: Range<usize>) -> Option<&str> {
    within(quoted, &part).map(|span| &quoted[span])
}

#[test]
fn a_part_is_found_after_escapes() {
    assert_eq!(located(r#""a \"b\" == c""#, 3..4), Some("b"));
    assert_eq!(located(r#""\u00e9\ud83d\ude00x""#, 6..7), Some("x"));
    assert_eq!(located(r#""\u00e9x""#, 0..2), Some("\\u00e9"));
    assert_eq!(located(r#""abc""#, 3..3), Some(""));
    assert_eq!(located(r#""abc""#, 2..4), None);
    assert_eq!(located("12", 0..1), None);
}

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
            Value::Object(map) => {
                all.extend(map.iter().map(|(k, v)| (format!("{path}/{}", k.replace('~', "~0").replace('/', "~1")), v)));
            }
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

    #[test]
    fn each_character_is_found_as_it_is_written(text in "[a\"\\\\\n\u{1}é😀]{0,12}", escape_all: bool) {
        let escaped = |c: char| {
            let units: Vec<u16> = c.encode_utf16(&mut [0; 2]).to_vec();
            units.iter().map(|unit| format!("\\u{unit:04x}")).collect::<Vec<_>>().concat()
        };
        let encode = |c: char| match serde_json::to_string(&c).unwrap() {
            _ if escape_all => escaped(c),
            plain => plain[1..plain.len() - 1].to_owned(),
        };
        let parts: Vec<String> = text.chars().map(encode).collect();
        let quoted = format!("\"{}\"", parts.concat());
        for ((at, c), part) in text.char_indices().zip(&parts) {
            prop_assert_eq!(located(&quoted, at..at + c.len_utf8()), Some(part.as_str()));
        }
    }

    #[test]
    fn the_syntax_is_that_of_json(
        words in prop::collection::vec(
            prop::sample::select(vec!["{", "}", "[", "]", ",", ":", "\"a\"", "\"\\u00e9\"", "\"é\"", "1", "-0.5e+3", "true", "null", " "]),
            0..12,
        ),
        bytes in prop::collection::vec(prop::sample::select(br#"{}[]",:\ a1u0tre-.+E"id""#.to_vec()), 0..60),
        any: Vec<u8>,
    ) {
        for bytes in [words.concat().as_bytes(), &bytes, &any] {
            let expected = std::str::from_utf8(bytes).is_ok() && serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
            prop_assert_eq!(check(bytes).is_ok(), expected, "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn numbers_are_those_of_serde_json(text in "-?[0-9]{0,3}[.]?[0-9]{0,2}[eE]?[+-]?[0-9]{0,4}x?") {
        prop_assert_eq!(check(text.as_bytes()).is_ok(), serde_json::from_str::<IgnoredAny>(&text).is_ok());
        if let Err(error) = parse(&text) && check(text.as_bytes()).is_ok() {
            prop_assert!(error.to_string().starts_with("number out of range"), "{}", error);
        }
    }

    #[test]
    fn pieces_of_any_size_have_the_same_tokens(value in any_json(), piece in 1_usize..9, noise in "[\\[\\]{}\",:\\\\a1 é]{0,60}") {
        for text in [value.to_string(), noise] {
            prop_assert_eq!(tokens(text.as_bytes(), piece), tokens(text.as_bytes(), usize::MAX));
        }
        let (tokens, end) = tokens(value.to_string().as_bytes(), piece);
        prop_assert_eq!(end, Ok(()));
        let joined: Vec<u8> = tokens.into_iter().flat_map(|(_, bytes)| bytes).collect();
        prop_assert_eq!(String::from_utf8(joined).unwrap(), value.to_string());
    }

    #[test]
    fn values_are_those_of_serde_json(bytes: Vec<u8>, value in any_json(), noise in r#"[\[\]{}:,"a0-9eE.\\u -]{0,40}"#) {
        for bytes in [&bytes[..], noise.as_bytes(), value.to_string().as_bytes()] {
            let expected = serde_json::from_slice::<Value>(bytes).ok();
            let parsed = std::str::from_utf8(bytes).ok().and_then(|text| parse(text).ok());
            prop_assert_eq!(parsed.as_ref().map(|parsed| &parsed.value), expected.as_ref());
            match (parse_strict(bytes), parsed) {
                (Ok(value), Some(parsed)) => prop_assert!(!parsed.has_duplicate_keys && value == parsed.value),
                (Err(StrictError::DuplicateKey(_)), parsed) => prop_assert!(parsed.is_none_or(|it| it.has_duplicate_keys)),
                (Err(_), None) => {}
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
