//! The canonical text of a JSON value, for hashes: RFC 8785 (JSON Canonicalization Scheme).
//!
//! RFC 8785 requires numbers that a double holds exactly. Integers beyond 2^53 are outside of it: as doubles, two different ids
//! would have the same hash. Integers within 64 bits are therefore written with all their digits.

use std::fmt::Write as _;

use serde_json::{Number, Value};

use crate::Sha256Digest;

/// Returns the canonical text of a value.
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

/// Computes SHA-256 over the canonical text of a value.
pub fn canonical_hash(value: &Value) -> Sha256Digest {
    Sha256Digest::from_bytes(canonical_json(value).as_bytes())
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            // By UTF-16 code units, as RFC 8785 requires. UTF-8 sorts differently beyond U+FFFF.
            sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (index, (key, value)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(key, out);
                out.push(':');
                write_value(value, out);
            }
            out.push('}');
        }
    }
}

fn write_number(number: &Number, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = match (number.as_u64(), number.as_i64()) {
        (Some(number), _) => write!(out, "{number}"),
        (None, Some(number)) => write!(out, "{number}"),
        // The shortest digits, as in ECMAScript. A JSON number is finite, so this cannot fail.
        (None, None) => write!(out, "{}", serde_json_canonicalizer::to_string(number).unwrap_or_default()),
    };
}

/// Escapes as RFC 8785 does, which is how `serde_json` escapes.
fn write_string(text: &str, out: &mut String) {
    // Serialising a string cannot fail.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_published_hashes_are_computed() {
        for (value, hash) in [
            (json!({"b": 2, "a": 1}), "43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777"),
            (
                json!({"command": "git push", "force": false, "branch": "main"}),
                "e13c608f6d08e999ce8c39b52fa274a731ccab0e6b3b3e62cd23511b93d7527e",
            ),
        ] {
            assert_eq!(canonical_hash(&value).to_string(), hash);
        }
    }

    #[test]
    fn the_example_of_the_rfc_is_canonical() {
        let input = r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],
            "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#;
        let expected = "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\
            \"string\":\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}";
        assert_eq!(canonical_json(&serde_json::from_str(input).unwrap()), expected);
    }

    #[test]
    fn keys_are_sorted_by_utf_16_code_units() {
        let value = json!({"\u{20ac}": 1, "\r": 2, "\u{fb33}": 3, "1": 4, "\u{1f600}": 5, "\u{80}": 6, "\u{f6}": 7});
        let sorted: Vec<u32> = canonical_json(&value).chars().filter_map(|it| it.to_digit(10)).collect::<Vec<_>>();
        // The key "1" is a digit as well.
        assert_eq!(sorted, [2, 1, 4, 6, 7, 1, 5, 3]);
    }

    #[test]
    fn different_integers_have_different_texts_and_equal_numbers_the_same() {
        let text = |json: &str| canonical_json(&serde_json::from_str(json).unwrap());
        assert_ne!(text("9007199254740993"), text("9007199254740992"));
        assert_eq!(text("-9223372036854775808"), "-9223372036854775808");
        assert_eq!(text("18446744073709551615"), "18446744073709551615");
        for (a, b) in [("1.0", "1"), ("1e0", "1"), ("-0.0", "0"), ("100000000000000000000", "1e20")] {
            assert_eq!(text(a), text(b), "{a} {b}");
        }
    }

    proptest! {
        #[test]
        fn the_text_agrees_with_the_library_where_doubles_are_exact(number: f64, integer in -(1_i64 << 53)..1 << 53, key: String) {
            let value = json!({key: [number, integer]});
            prop_assert_eq!(canonical_json(&value), serde_json_canonicalizer::to_string(&value).unwrap());
        }
    }
}
