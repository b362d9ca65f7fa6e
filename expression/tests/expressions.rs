//! Results of expressions, and messages of invalid ones.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use counterproof_expression::{Expression, Outcome};
use proptest::prelude::*;
use serde_json::{Value, json};

fn data() -> Value {
    json!({
        "content": "Your refund of 50 EUR is on its way.",
        "total": 50, "rate": 1.5, "debt": -3, "big": 18_446_744_073_709_551_615_u64, "none": null, "ok": true,
        "items": [{"name": "lamp", "price": 20}, {"name": "shade", "price": 30.0}],
        "tags": ["money", "refund"],
        "deep": {"a": {"b": 1}}
    })
}

fn outcome(text: &str) -> Outcome {
    Expression::compile(text, &["o", "list"]).unwrap().evaluate(&[&data(), &json!([1, 2, 3])])
}

#[track_caller]
fn failed(text: &str) -> String {
    match outcome(text) {
        Outcome::Failed(error) => error.message,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn true_expressions_are_true() {
    for text in [
        "true",
        "o.content.contains('refund') && !o.content.contains('sorry')",
        "o.content.startsWith('Your') && o.content.endsWith('.')",
        "o.content.matches('[0-9]+ EUR') && o.content.matches(r'\\b50\\b')",
        "o.content.matches('^' + 'Your') && 'ä.b@c.de'.matches(r'^[\\w.]+@\\w+\\.\\w+$')",
        "o.content.lowerAscii().contains('your refund') && 'a'.upperAscii() == 'A'",
        "size(o.items) == 2 && o.tags.size() == 2 && size('äö') == 2 && size(o.deep) == 1",
        // Integers and doubles mix freely.
        "o.total + 1 == 51 && o.total * 1.1 > 54 && o.debt < 0 && o.total == 50.0 && o.total - o.debt == 53",
        "o.total >= 50 && o.total / 7 == 7 && o.total % 7 == 1 && -o.debt == 3 && 7u == 7",
        "o.big > 9223372036854775807 && o.rate * 2 == 3",
        "int('12') + int(1.9) == 13 && double('1.5') == o.rate && string(o.total) == '50' && string(true) == 'true'",
        "o.items[1].price == 30 && o['total'] == 50 && o.deep['a'].b == 1",
        "o.items.all(i, i.price > 10) && o.items.exists(i, i.name == 'lamp')",
        "o.items.exists_one(i, i.price >= 30) && o.items.filter(i, i.price < 30).size() == 1",
        "o.items.map(i, i.name) == ['lamp', 'shade'] && o.items.map(i, i.price > 20, i.name) == ['shade']",
        "o.items.exists(i, o.tags.exists(t, i.name != t && t == 'money'))",
        "o.deep.exists(k, k == 'a') && 'total' in o && 'money' in o.tags && !(1 in o.tags)",
        "has(o.none) && !has(o.missing) && !has(o.content.length) && o.none == null",
        "list + [4] == [1, 2, 3, 4] && {'a': [1]} == {'a': [1.0]} && {'a': 1}.a == 1",
        "[] == [] && o.deep == {'a': {'b': 1}} && o.deep != {'a': {'b': 2}} && 'a' < 'b' && false < true",
        "o.ok ? o.total == 50 : o.missing",
        // One deciding operand or element is enough.
        "o.missing == 1 || true",
        "!(o.missing == 1 && false)",
        "!list.all(x, x < 3 && [1][x] == 0)",
        "list.exists(x, x == 3 || [1][x] == 0)",
        "size([1, 2].map(x, [3, 4].map(y, x * y))) == 2",
    ] {
        assert_eq!(outcome(text), Outcome::True, "{text}");
    }
    for text in ["false", "o.total > 50", "o.tags.all(t, t == 'money')", "1 == '1'", "[1] == {'a': 1}"] {
        assert_eq!(outcome(text), Outcome::False, "{text}");
    }
}

#[test]
fn a_failed_evaluation_has_a_message() {
    for (text, expected) in [
        ("o.missing", "missing field `missing`"),
        ("o.content.total == 1", "cannot read field `total` of a string"),
        ("o.total", "the result is a number; expected a boolean"),
        ("o.items[2].name == ''", "index 2 is out of range for a list of 2"),
        ("o.items['a'] == 1", "a string cannot be an index of a list"),
        ("o.content + 1 == ''", "`+` does not take a string and a number"),
        ("o.content > 1", "`>` does not take a string and a number"),
        ("o.total.contains('5')", "`contains` does not take a number and a string"),
        ("!o.total", "`!` takes a boolean, not a number"),
        ("1 / 0 == 1", "division by zero in `/`"),
        ("9223372036854775807 + 1 > 0", "integer overflow in `+`"),
        ("int('x') == 1", "“x” is not an integer"),
        ("o.total.all(x, true)", "cannot iterate over a number"),
        ("list.all(x, x)", "a macro takes a boolean condition, not a number"),
        ("size(o.total) == 1", "`size` does not take a number"),
        ("'a'.matches('(' + 'b')", "is not a valid regular expression"),
        ("o.none.x", "cannot read field `x` of null"),
        ("{'a': 1, 'a': 2}.a == 1", "duplicate key `a`"),
        ("o.missing && o.ok", "missing field `missing`"),
    ] {
        let message = failed(text);
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn an_invalid_expression_is_refused_with_its_position() {
    for (text, token, expected) in [
        ("o.total > limit", "limit", "unknown variable `limit`"),
        ("  output.contains('x')", "output", "unknown variable `output`"),
        ("o.tags.all(t, u == 1)", "u", "unknown variable `u`"),
        ("o.tags.exists(t, true) && t == 1", "t", "unknown variable `t`"),
        ("o.ü == 1", "ü", "syntax error"),
        ("'äö' = 1", "=", "syntax error"),
        ("'äöü' == x", "x", "unknown variable `x`"),
        ("o.total >", "", "syntax error"),
        ("o.total = 1", "=", "syntax error"),
        ("o.tags.length() > 0", "length", "unknown function `length`"),
        ("", "", "the expression is empty"),
    ] {
        let error = Expression::compile(text, &["o"]).unwrap_err();
        assert!(error.message.contains(expected) && !error.remedy.is_empty(), "{text}: {error:?}");
        assert_eq!(&text[error.span.clone()], token, "{text}: {error:?}");
    }
    for (text, expected, remedy) in [
        ("o.tags.count() == 1", "unknown function `count`", "write `size(x)`"),
        ("o.tags.index('x') == 1", "unknown function `index`", "did you mean `indexOf`?"),
        ("size(o, o) == 1", "`size` does not take these arguments", "documentation"),
        ("contains(o, 'x')", "`contains` does not take these arguments", "documentation"),
        ("o.tags.all(t)", "`all` takes a variable name", "for example"),
        ("o.tags.all(o.x, true)", "expected a variable name", "write a name"),
        ("has(o)", "`has` takes a field", "for example"),
        ("o.content.matches('(')", "not a valid regular expression", "correct it"),
        ("a.B{x: 1} == o", "message types are not supported", "write a map"),
        ("xyz(o)", "unknown function `xyz`", "documentation"),
    ] {
        let error = Expression::compile(text, &["o"]).unwrap_err();
        assert!(error.message.contains(expected) && error.remedy.contains(remedy), "{text}: {error:?}");
    }
}

proptest! {
    /// Fails without the feature `float_roundtrip` of `serde_json`, whose faster parser is one unit off for every sixth decimal.
    #[test]
    fn a_decimal_in_json_is_the_same_number_as_in_an_expression(whole in 0..100_000_u32, digits in "[0-9]{1,17}") {
        let decimal = format!("{whole}.{digits}");
        let json: Value = serde_json::from_str(&decimal).unwrap();
        let expression = Expression::compile(&format!("o == {decimal}"), &["o"]).unwrap();
        prop_assert_eq!(expression.evaluate(&[&json]), Outcome::True, "{}", decimal);
        prop_assert_eq!(json.as_f64(), decimal.parse().ok());
    }
}

#[track_caller]
fn reads(text: &str) -> String {
    let expression = Expression::compile(text, &["o", "list"]).unwrap();
    let list = json!([1, 2, 3]);
    let readings = expression.readings(&[&data(), &list], 3);
    let shown: Vec<_> = readings.iter().map(|it| format!("{} is {}", &text[it.span.clone()], it.value)).collect();
    shown.join(", ")
}

#[test]
fn the_values_that_an_expression_compares_and_tests_explain_its_result() {
    assert_eq!(reads("o.total == 51"), "o.total is 50");
    assert_eq!(reads("51 <= o.total"), "o.total is 50");
    assert_eq!(reads("o.total == 50 && !(o.ok) && o.none != null"), "o.total is 50, o.ok is true, o.none is null");
    assert_eq!(reads("o.content.contains('sorry')"), r#"o.content is "Your refund of 50 EUR is on its way.""#);
    assert_eq!(reads("size(o.items) > 2"), "size(o.items) is 2");
    assert_eq!(reads("o.total + o.debt > 100"), "o.total + o.debt is 47");
    assert_eq!(reads("o.tags[0] == 'x' || o['rate'] > 2.0"), r#"o.tags[0] is "money", o['rate'] is 1.5"#);
    assert_eq!(reads("o.deep == {'a': 1}"), r#"o.deep is {"a": {"b": 1}}"#);
    assert_eq!(reads("has(o.deep.c)"), r#"o.deep is {"a": {"b": 1}}"#);
    assert_eq!(reads("list.all(x, x < o.debt)"), "list is [1, 2, 3], o.debt is -3");
    assert_eq!(reads("o.total > 50 ? true : o.rate > 9.0"), "o.total is 50, o.rate is 1.5");
    // A value that is read twice, an expression without a value, and one that reads nothing.
    assert_eq!(reads("o.total > 50 || o.total < 50"), "o.total is 50");
    assert_eq!(reads("o.missing == 1 || o.total == 1"), "o.total is 50");
    assert_eq!(reads("1 == 2"), "");
    assert_eq!(
        reads("o.total == 1 && o.debt == 1 && o.rate == 1.0 && o.ok"),
        "o.total is 50, o.debt is -3, o.rate is 1.5"
    );
}

#[test]
fn long_values_are_cut_or_left_out() {
    let long = json!({"text": "ä".repeat(10_000), "list": vec![1; 10_000]});
    let expression = Expression::compile("o.text == o.list || size(o.list) == 0", &["o"]).unwrap();
    let readings = expression.readings(&[&long], 3);
    let values: Vec<_> = readings.into_iter().map(|it| it.value).collect();
    assert_eq!(values, [format!("\"{}…\"", "ä".repeat(120)), "10000".to_owned()]);
}
