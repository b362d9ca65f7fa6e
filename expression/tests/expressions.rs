//! What expressions say, what is told where they are wrong, and that nothing in them takes the program down.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use counterproof_expression::{Expression, LONGEST, Outcome};
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
        Outcome::Failed(message) => message,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn what_holds_holds() {
    for text in [
        "true",
        "o.content.contains('refund') && !o.content.contains('sorry')",
        "o.content.startsWith('Your') && o.content.endsWith('.')",
        "o.content.matches('[0-9]+ EUR') && o.content.matches(r'\\b50\\b')",
        "o.content.matches('^' + 'Your') && 'ä.b@c.de'.matches(r'^[\\w.]+@\\w+\\.\\w+$')",
        "o.content.lowerAscii().contains('your refund') && 'a'.upperAscii() == 'A'",
        "size(o.items) == 2 && o.tags.size() == 2 && size('äö') == 2 && size(o.deep) == 1",
        // Numbers are numbers, however JSON has them.
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
        // One operand, or one element, that decides is enough.
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
fn what_can_be_neither_is_said_in_words() {
    for (text, said) in [
        ("o.missing", "there is no field `missing`"),
        ("o.content.total == 1", "there is no field `total` in a text"),
        ("o.total", "it gives a number, and not true or false"),
        ("o.items[2].name == ''", "there is no element 2 in a list of 2"),
        ("o.items['a'] == 1", "a text cannot be looked up in a list"),
        ("o.content + 1 == ''", "`+` does not take a text and a number"),
        ("o.content > 1", "`>` does not take a text and a number"),
        ("o.total.contains('5')", "`contains` takes texts, and not a number"),
        ("!o.total", "`!` takes true or false, and not a number"),
        ("1 / 0 == 1", "`/` by zero"),
        ("9223372036854775807 + 1 > 0", "`+` gives a number that is too large"),
        ("int('x') == 1", "“x” is not a whole number"),
        ("o.total.all(x, true)", "there is nothing to go over in a number"),
        ("list.all(x, x)", "`all` takes true or false, and not a number"),
        ("size(o.total) == 1", "a number has no size"),
        ("'a'.matches('(' + 'b')", "is no regular expression that can be used"),
        ("o.none.x", "there is no field `x` in null"),
        ("{'a': 1, 'a': 2}.a == 1", "the key `a` is there twice"),
        ("o.missing && o.ok", "there is no field `missing`"),
    ] {
        let message = failed(text);
        assert!(message.contains(said), "{text}: {message}");
    }
}

#[test]
fn what_is_no_expression_is_refused_with_its_place() {
    for (text, place, said) in [
        ("o.total > limit", "limit", "there is no variable `limit`"),
        ("  output.contains('x')", "output", "there is no variable `output`"),
        ("o.tags.all(t, u == 1)", "u", "there is no variable `u`"),
        ("o.tags.exists(t, true) && t == 1", "t", "there is no variable `t`"),
        ("o.ü == 1", "ü", "it cannot be parsed"),
        ("'äö' = 1", "=", "it cannot be parsed"),
        ("'äöü' == x", "x", "there is no variable `x`"),
        ("o.total >", "", "it cannot be parsed"),
        ("o.total = 1", "=", "it cannot be parsed"),
        ("o.tags.len() > 0", "len", "there is no function `len`"),
        ("", "", "the expression is empty"),
    ] {
        let error = Expression::compile(text, &["o"]).unwrap_err();
        assert!(error.message.contains(said) && !error.remedy.is_empty(), "{text}: {error:?}");
        assert_eq!(&text[error.span.clone()], place, "{text}: {error:?}");
    }
    for (text, said, remedy) in [
        ("o.tags.len() == 1", "there is no function `len`", "write `size(x)`"),
        ("size(o, o) == 1", "`size` is not written like this", "known here"),
        ("contains(o, 'x')", "`contains` is not written like this", "known here"),
        ("o.tags.all(t)", "`all` takes a name", "write it such as"),
        ("o.tags.all(o.x, true)", "a name for the elements is expected", "write a name"),
        ("has(o)", "`has` takes a field", "write it such as"),
        ("o.content.matches('(')", "no regular expression", "correct it"),
        ("b'x' == o", "JSON has no bytes", "without the `b`"),
        ("a.B{x: 1} == o", "a message cannot be made", "write a map"),
        ("duration('1s') == o", "there is no function `duration`", "known here"),
    ] {
        let error = Expression::compile(text, &["o"]).unwrap_err();
        assert!(error.message.contains(said) && error.remedy.contains(remedy), "{text}: {error:?}");
    }
}

#[test]
fn nothing_takes_longer_than_its_steps() {
    let hundred = json!((0..100).collect::<Vec<_>>());
    let long = Value::from("x".repeat(2_000_000));
    let evaluate = |text: &str| Expression::compile(text, &["l", "s"]).unwrap().evaluate(&[&hundred, &long]);
    let nested = (0..10).fold("true".to_owned(), |inner, depth| format!("l.all(v{depth}, {inner})"));
    assert_eq!(evaluate(&nested), Outcome::TooLong);
    // Each link doubles the text.
    let doubled = format!("[s]{}.size() == 1", ".map(x, x + x)".repeat(50));
    assert_eq!(evaluate(&doubled), Outcome::TooLong);
    assert_eq!(evaluate("l.all(x, l.all(y, !s.contains('y')))"), Outcome::TooLong);
    assert_eq!(evaluate("l.all(x, !s.matches('(a+)+$'))"), Outcome::TooLong);
    assert_eq!(evaluate("l.map(x, l.map(y, l.map(z, [x, y, z]))).size() == 1"), Outcome::TooLong);
    assert_eq!(evaluate("l.all(x, s != s + 'y')"), Outcome::TooLong);
    // The bound is not in the way of what people write.
    assert_eq!(evaluate("!s.contains('y') && l.all(x, l.exists(y, x == y))"), Outcome::True);
    assert_eq!(evaluate(&nested), evaluate(&nested));
}

#[test]
fn hostile_texts_are_refused_or_read_and_nothing_else() {
    for part in [
        "(", "[", "{", "!", "-", "a.", "a[", "a(", "a?", "1+", "a&&", "a ? b : ", "'", "\"", "{'a':", "has(", "\\",
        "\u{0}", "🙈",
    ] {
        let text = part.repeat(LONGEST / part.len());
        assert!(Expression::compile(&text, &["a"]).is_err(), "{part}");
        let _ = Expression::compile(&format!("{text}a"), &["a"]);
    }
    for text in [
        "1".to_owned() + &"+1".repeat(2000),
        "a".to_owned() + &".b".repeat(2000),
        format!("{}a{}", "(".repeat(2000), ")".repeat(2000)),
    ] {
        assert!(Expression::compile(&text, &["a"]).is_err(), "{}…", &text[..20]);
    }
    let long = "a || ".repeat(1000) + "a";
    let error = Expression::compile(&long, &["a"]).unwrap_err();
    assert!(error.message.contains("up to 4096"), "{error:?}");
    let wide = "a || ".repeat(800) + "a";
    assert_eq!(Expression::compile(&wide, &["a"]).unwrap().evaluate(&[&json!(true)]), Outcome::True);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_an_expression_or_an_error(text in "[a-c0-2.()\\[\\]{}'\"!&|?:<>=+*/% ,-]{0,24}|\\PC{0,16}") {
        match Expression::compile(&text, &["a", "b"]) {
            Ok(expression) => {
                let _ = expression.evaluate(&[&json!({"b": [1, "x"]}), &json!([true])]);
            }
            Err(error) => prop_assert!(text.get(error.span.clone()).is_some(), "{error:?}"),
        }
    }
}

#[test]
fn a_large_regular_expression_over_a_long_text_is_not_waited_for() {
    let text = json!("0".repeat(4_000_000));
    let evaluate = |text_of: &str| Expression::compile(text_of, &["text"]).map(|found| found.evaluate(&[&text]));
    assert_eq!(evaluate("text.matches('[01]*1[01]{300}$')"), Ok(Outcome::TooLong));
    assert!(evaluate("text.matches('[01]*1[01]{120000}$')").is_err());
}
