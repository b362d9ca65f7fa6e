//! The bounds on hostile expressions: steps, memory, and texts that are no expressions.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use counterproof_expression::{Expression, MAX_BYTES, MAX_DEPTH, NoValue, Outcome};
use proptest::prelude::*;
use serde_json::Value;
use serde_json::json;

#[test]
fn an_evaluation_stops_at_its_step_limit() {
    let hundred = json!((0..100).collect::<Vec<_>>());
    let long = Value::from("x".repeat(2_000_000));
    let evaluate = |text: &str| Expression::compile(text, &["l", "s"]).unwrap().evaluate(&[&hundred, &long]);
    let nested = (0..10).fold("true".to_owned(), |inner, depth| format!("l.all(v{depth}, {inner})"));
    assert_eq!(evaluate(&nested), Outcome::TooLong);
    // Each call doubles the string.
    let doubled = format!("[s]{}.size() == 1", ".map(x, x + x)".repeat(50));
    assert_eq!(evaluate(&doubled), Outcome::TooLong);
    assert_eq!(evaluate("l.all(x, l.all(y, !s.contains('y')))"), Outcome::TooLong);
    assert_eq!(evaluate("l.all(x, !s.matches('(a+)+$'))"), Outcome::TooLong);
    assert_eq!(evaluate("l.map(x, l.map(y, l.map(z, [x, y, z]))).size() == 1"), Outcome::TooLong);
    assert_eq!(evaluate("l.all(x, s != s + 'y')"), Outcome::TooLong);
    // Ordinary expressions stay far below the limit.
    assert_eq!(evaluate("!s.contains('y') && l.all(x, l.exists(y, x == y))"), Outcome::True);
    assert_eq!(evaluate(&nested), evaluate(&nested));
}

#[test]
fn hostile_texts_never_panic() {
    for part in [
        "(", "[", "{", "!", "-", "a.", "a[", "a(", "a?", "1+", "a&&", "a ? b : ", "'", "\"", "{'a':", "has(", "\\",
        "\u{0}", "🙈",
    ] {
        let text = part.repeat(MAX_BYTES / part.len());
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
    assert!(error.message.contains("at most 4096"), "{error:?}");
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
fn a_large_regular_expression_over_a_long_text_stops_early() {
    let text = json!("0".repeat(4_000_000));
    let evaluate = |text_of: &str| Expression::compile(text_of, &["text"]).map(|found| found.evaluate(&[&text]));
    assert_eq!(evaluate("text.matches('[01]*1[01]{300}$')"), Ok(Outcome::TooLong));
    assert!(evaluate("text.matches('[01]*1[01]{120000}$')").is_err());
}

#[test]
fn the_deepest_expressions_are_evaluated_on_a_small_stack() {
    let nested = |start: &str, inner: &str, end: &str| {
        (1..MAX_DEPTH).rev().find_map(|depth| {
            let text = format!("{}{inner}{}", start.repeat(depth), end.repeat(depth));
            Expression::compile(&text, &[]).ok()
        })
    };
    let deepest = [
        nested("[0].all(x, ", "true", ")"),
        nested("[0].exists_one(x, ", "true", ")"),
        nested("[0].transformMap(i, v, ", "true", ") == {}"),
        nested("cel.bind(x, 1, ", "true", ")"),
        nested("(true ? ", "true", " : false)"),
        nested("!(", "1 / 0 == 1", ")"),
        nested("[", "1", "] == []"),
        nested("'%s'.format([", "1", "])"),
    ];
    let worker = std::thread::Builder::new().stack_size(1024 * 1024);
    let evaluated = worker.spawn(move || deepest.map(|found| found.unwrap().compute(&[]).is_ok()));
    assert_eq!(evaluated.unwrap().join().unwrap(), [true, true, true, true, true, false, true, true]);
}

/// Every form makes a value about twice as large, and the chain of them far larger than the memory.
#[test]
fn values_that_double_stop_at_the_step_limit() {
    let data = json!({"s": "x".repeat(100), "l": [1, 2, 3]});
    let evaluate = |text: &str| Expression::compile(text, &["o"]).unwrap().evaluate(&[&data]);
    for (start, step, end) in [
        ("[o.s]", ".map(x, [x, x].join())", "[0] == ''"),
        ("[o.s]", ".map(x, x.replace('', 'xx'))", "[0] == ''"),
        ("[o.s]", ".map(x, x.replace('x', 'xx'))", "[0] == ''"),
        ("[o.s]", ".map(x, '%s%s'.format([x, x]))", "[0] == ''"),
        ("[o.s]", ".map(x, x + x.reverse())", "[0] == ''"),
        ("[bytes(o.s)]", ".map(x, x + x)", "[0] == b''"),
        ("[bytes(o.s)]", ".map(x, bytes(base64.encode(x + x)))", "[0] == b''"),
        ("[o.l]", ".map(x, x + x)", "[0] == []"),
        ("[o.l]", ".map(x, [x, x].flatten())", "[0] == []"),
        ("[o.l]", ".map(x, (x + x).sort())", "[0] == []"),
        ("[o.l]", ".map(x, x.map(y, [y, y]).flatten())", "[0] == []"),
        ("[o.s]", ".map(x, (x + x).split('').join())", "[0] == ''"),
        ("[o.s]", ".map(x, (x + x).upperAscii().lowerAscii().trim())", "[0] == ''"),
    ] {
        let text = format!("{start}{}{end}", step.repeat(45));
        assert_eq!(evaluate(&text), Outcome::TooLong, "{step}");
    }
    for text in [
        "lists.range(1000000000000) == []",
        "lists.range(300000).map(x, [x]) == []",
        "lists.range(60000).transformMap(i, v, {i: v}) == {}",
        "lists.range(10000).distinct() == []",
        "lists.range(10000).all(x, '%.1000f'.format([1e308]) != '')",
    ] {
        assert_eq!(evaluate(text), Outcome::TooLong, "{text}");
    }
    assert_eq!(evaluate("size(lists.range(1000).transformMap(i, v, v)) == 1000"), Outcome::True);
}

/// A list that has itself twice, fifty times over, is small as long as nothing visits all of its parts.
#[test]
fn shared_parts_are_charged_when_they_are_visited() {
    let shared = |end: &str| format!("[[1]]{}{end}", ".map(x, [x, x])".repeat(50));
    let compile = |text: &str| Expression::compile(text, &[]).unwrap();
    assert_eq!(compile(&shared(".size() == 1")).evaluate(&[]), Outcome::True);
    for end in ["[0].flatten(100) == []", ".exists(x, '%s'.format([x]) == '')"] {
        assert_eq!(compile(&shared(end)).evaluate(&[]), Outcome::TooLong, "{end}");
    }
    assert_eq!(compile(&shared("")).compute(&[]), Err(NoValue::TooLong));
    let compared =
        format!("[[[1]]{}].all(x, x == [[1]]{})", ".map(x, [x, x])".repeat(50), ".map(x, [x, x])".repeat(50));
    assert_eq!(compile(&compared).evaluate(&[]), Outcome::TooLong);
}

/// Forms that make values larger, over variables of loops. `{}` stands for a part.
const GROWING: [&str; 14] = [
    "({} + {})",
    "[{}, {}]",
    "{}.map(x, {})",
    "{}.filter(x, {} == x)",
    "{}.transformList(i, x, {})",
    "{}.transformMap(x, y, {})",
    "{'a': {}, 'b': {}}",
    "'%s|%s'.format([{}, {}])",
    "{}.join({})",
    "{}.replace('', {})",
    "{}.split({})",
    "cel.bind(x, {}, {})",
    "{}.all(x, {} == {})",
    "{}.flatten({})",
];

fn growing() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec!["o.s", "o.l", "o.m", "x", "1", "'ab'", "[1, 2]", "lists.range(50)"]);
    leaf.prop_map(str::to_owned).prop_recursive(8, 64, 3, |part| {
        (prop::sample::select(GROWING.to_vec()), prop::collection::vec(part, 3))
            .prop_map(|(form, parts)| parts.iter().fold(form.to_owned(), |text, part| text.replacen("{}", part, 1)))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn random_expressions_end_within_the_limit(text in growing()) {
        let data = json!({"s": "abc".repeat(20), "l": (0..200).collect::<Vec<_>>(), "m": {"a": [1, 2], "b": "x"}});
        if let Ok(expression) = Expression::compile(&text, &["o", "x"]) {
            let outcome = expression.evaluate(&[&data, &json!("x")]);
            if let Outcome::Failed(error) = &outcome {
                prop_assert!(text.get(error.span.clone()).is_some_and(|part| !part.is_empty()), "{error:?}");
            }
            prop_assert_eq!(outcome, expression.evaluate(&[&data, &json!("x")]), "the same steps each time");
            let _ = expression.compute(&[&data, &json!("x")]);
        }
    }
}
