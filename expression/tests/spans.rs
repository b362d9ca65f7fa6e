//! The place of a runtime failure in the expression.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use counterproof_expression::{Expression, Outcome};
use serde_json::json;

#[test]
fn a_failure_has_the_range_of_the_failing_part() {
    let data = json!({"total": 50, "none": null, "items": [{"name": "lamp"}], "text": "ä", "a b": {}});
    for (text, part) in [
        ("true && o.missing == 1", "o.missing"),
        ("true && (o.items[3].name == '')", "o.items[3]"),
        ("o.items[ 'a' ].name == ''", "o.items[ 'a' ]"),
        ("1 > 0 && o.text + 1 == ''", "o.text + 1"),
        ("(o.total + 'a') == 1", "o.total + 'a'"),
        ("true && (o.total + 1) * 'a' == 1", "(o.total + 1) * 'a'"),
        ("o.items.all(i, i.name == 'lamp' && i . price > 1)", "i . price"),
        ("o.items.all(i, i.name)", "i.name"),
        ("true && o.total.all(x, true)", "o.total"),
        ("o.total", "o.total"),
        ("  o.total + (1)  ", "o.total + (1)"),
        ("!o.total", "o.total"),
        ("true && !o.total", "o.total"),
        ("o.total && true", "o.total"),
        ("o.total ? true : false", "o.total"),
        ("true && -o.text == 1", "-o.text"),
        ("true && size(o.total) == 1", "size(o.total)"),
        ("true && o.total.size( ) == 1", "o.total.size( )"),
        ("true && math . abs('a') == 1", "math . abs('a')"),
        ("true && o.text.matches('(' + ')(') == true", "o.text.matches('(' + ')(')"),
        ("[1, {'a': 1, 'a': 2}] == []", "{'a': 1, 'a': 2}"),
        ("true && o.`a b`.`c d` == 1", "o.`a b`.`c d`"),
        ("true && o.none.x == 1", "o.none.x"),
        ("o.text != 'ä)' && o.text == \"(\" + 1", "\"(\" + 1"),
        ("o.total == 50 && // (\n o.missing", "o.missing"),
        ("true && cel.bind(x, 1 / 0, x) == 1", "1 / 0"),
        ("o.missing || o.gone", "o.missing"),
        ("true && timestamp('x') == timestamp(0)", "timestamp('x')"),
        ("{'a': 1}.transformMapEntry(k, v, v) == {}", "{'a': 1}.transformMapEntry(k, v, v)"),
    ] {
        match Expression::compile(text, &["o"]).unwrap().evaluate(&[&data]) {
            Outcome::Failed(error) => assert_eq!(&text[error.span.clone()], part, "{text}: {error}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}
