//! Functions, macros and values of the language, one test per family.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use counterproof_expression::{Computed, Expression, Outcome};
use serde_json::{Value, json};

fn data() -> Value {
    json!({"total": 50, "rate": 1.5, "big": 18_446_744_073_709_551_615_u64, "tags": ["b", "a", "b"], "a-b": {"c": 1}})
}

fn outcome(text: &str) -> Outcome {
    Expression::compile(text, &["o"]).unwrap().evaluate(&[&data()])
}

#[track_caller]
fn all_true(texts: &[&str]) {
    for text in texts {
        assert_eq!(outcome(text), Outcome::True, "{text}");
    }
}

#[track_caller]
fn all_fail(texts: &[(&str, &str)]) {
    for (text, expected) in texts {
        match outcome(text) {
            Outcome::Failed(error) => assert!(error.message.contains(expected), "{text}: {error}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn types_are_values() {
    all_true(&[
        "type(o.total) == int && type(o.rate) == double && type(o.big) == uint && type(o) == map",
        "type(o.tags) == list && type('') == string && type(b'') == bytes && type(null) == null_type",
        "type(type(1)) == type && type(timestamp(0)) == google.protobuf.Timestamp && type(true) == bool",
        "type(duration('1s')) == google.protobuf.Duration",
        "dyn(o.total) == 50 && bool('t') && !bool('False') && uint('3') == 3u && bytes('ä') == b'\\303\\244'",
        "string(b'\\303\\244') == 'ä' && string(1.0) == '1' && string(0.0 / 0.0) == 'NaN' && int(3u) == 3",
        "o.big == 18446744073709551615u && o.big - 1 == 18446744073709551614u && o.big > 9223372036854775807",
        "base64.encode(b'ab') == 'YWI=' && base64.decode('YWI') == b'ab' && 5u + 1 == 6 && [1, 2][1u] == 2",
    ]);
    all_fail(&[
        ("bool('yes')", "“yes” is not a boolean"),
        ("uint(-1) == 1u", "out of range for `uint`"),
        ("uint(-0.5) == 0u", "out of range for `uint`"),
        ("int(1e30) == 1", "out of range for `int`"),
        ("1u - 2u == 0u", "integer overflow in `-`"),
        ("-(1u) == 1", "`-` does not take a number"),
        ("-9223372036854775807 - 2 == 1", "integer overflow"),
        ("string(b'\\377') == ''", "not UTF-8"),
        ("int(null) == 1", "`int` does not take null"),
        ("base64.decode('ä') == b''", "not base64"),
    ]);
}

#[test]
fn strings_are_searched_and_changed_by_characters() {
    all_true(&[
        "'äöü'.charAt(1) == 'ö' && 'ab'.charAt(2) == '' && 'äöü'.substring(1) == 'öü' && 'abc'.substring(1, 2) == 'b'",
        "'aäbäb'.indexOf('äb') == 1 && 'aäbäb'.indexOf('äb', 2) == 3 && 'a'.indexOf('x') == -1 && 'ab'.indexOf('', 2) == 2",
        "'aäbäb'.lastIndexOf('äb') == 3 && 'aäbäb'.lastIndexOf('äb', 2) == 1 && 'aaaa'.lastIndexOf('aa', 1) == 1",
        "'ä€'.lastIndexOf('ä', 1) == 0 && 'abc'.lastIndexOf('', 1) == 1 && 'abc'.lastIndexOf('abcd') == -1",
        "'a-b-c'.split('-') == ['a', 'b', 'c'] && 'a-b-c'.split('-', 2) == ['a', 'b-c'] && 'äb'.split('') == ['ä', 'b']",
        "'abc'.split('', 2) == ['a', 'bc'] && 'a'.split('', 0) == [] && ''.split('') == [''] && ''.split('x') == ['']",
        "o.tags.join(',') == 'b,a,b' && [].join('x') == '' && ' \\t x '.trim() == 'x' && 'äb'.reverse() == 'bä'",
        "'aaa'.replace('a', 'b', 2) == 'bba' && 'aaa'.replace('a', 'b', -1) == 'bbb' && 'ab'.replace('', '-') == '-a-b-'",
        "'aXb'.lowerAscii() == 'axb'",
    ]);
    all_fail(&[
        ("'abc'.charAt(4) == ''", "index 4 is out of range for a string of 3"),
        ("'abc'.substring(2, 1) == ''", "the range from 2 to 1 is reversed"),
        ("'abc'.substring(-1) == ''", "index -1 is out of range"),
        ("[1].join() == ''", "`join` takes a list of strings, not of a number"),
        ("'a'.split(1) == []", "`split` does not take a string and a number"),
    ]);
}

#[test]
fn formats_write_values() {
    all_true(&[
        "'%s %s %s %s'.format(['a', 1, 1.5, null]) == 'a 1 1.5 null' && '%%'.format([]) == '%'",
        "'%s'.format([{'b': [1, 'x'], 'a': true}]) == '{a: true, b: [1, x]}' && '%s'.format([type(1)]) == 'int'",
        "'%d %d %d'.format([5, 5u, 5.0]) == '5 5 5' && '%.2f'.format([o.total]) == '50.00' && '%f'.format([1.5]) == '1.500000'",
        "'%d'.format([1.0 / 0.0]) == 'Infinity'",
    ]);
    all_fail(&[
        ("'%d'.format([1.5]) == ''", "`%d` does not take a number"),
        ("'%d'.format(['a']) == ''", "`%d` does not take a string"),
        ("'%d %d'.format([1]) == ''", "more clauses than the 1 values"),
        ("'%q'.format([1]) == ''", "`%q` is not a format clause"),
        ("'100%'.format([]) == ''", "not complete"),
        ("'%.1001f'.format([1]) == ''", "up to 1000"),
        ("'%.f'.format([1]) == ''", "precision"),
    ]);
}

#[test]
fn numbers_are_rounded_and_compared() {
    all_true(&[
        "math.least(3, 1.5, 2u) == 1.5 && math.greatest([1, 5, 3]) == 5 && math.greatest(o.total) == 50",
        "math.ceil(1.2) == 2 && math.floor(-1.2) == -2 && math.round(-1.5) == -2.0 && math.trunc(1.9) == 1.0",
        "math.ceil(o.total) == 50 && math.abs(-5) == 5 && math.sign(-2.5) == -1.0 && math.sqrt(16) == 4.0",
        "math.isNaN(0.0 / 0.0) && math.isInf(1.0 / 0.0) && math.isFinite(o.total) && !(0.0 / 0.0 == 0.0 / 0.0)",
    ]);
    all_fail(&[
        ("math.least([]) == 1", "an empty list"),
        ("math.least(1, 'a') == 1", "`math.least` does not take a number and a string"),
        ("math.abs(-9223372036854775808) == 1", "integer overflow"),
        ("-9223372036854775808 % -1 == 0", "integer overflow in `%`"),
    ]);
}

#[test]
fn lists_are_sorted_and_cut() {
    all_true(&[
        "o.tags.sort() == ['a', 'b', 'b'] && o.tags.distinct() == ['b', 'a'] && [3, 1.5, 2u].sort() == [1.5, 2, 3]",
        "o.tags.slice(1, 3) == ['a', 'b'] && [1, 2, 3].slice(0, 0) == [] && [1, 2].reverse() == [2, 1]",
        "[1, [2, [3]]].flatten() == [1, 2, [3]] && [1, [2, [3]]].flatten(2) == [1, 2, 3] && lists.range(3) == [0, 1, 2]",
        "o.tags.len() == 3 && o.total * 1.1 > 54 && [1, 1.0, 1u].distinct() == [1]",
    ]);
    all_fail(&[
        ("[1, 'a'].sort() == []", "`sort` cannot order a number and a string"),
        ("[0.0 / 0.0].sort() == []", "`sort` cannot order"),
        ("[null].sort() == []", "`sort` cannot order null"),
        ("[1].slice(0, 2) == []", "out of range for a list of 1"),
        ("lists.range(-1) == []", "cannot have -1 elements"),
    ]);
}

#[test]
fn times_have_parts_and_arithmetic() {
    all_true(&[
        "timestamp('2026-01-31T23:30:00Z') + duration('45m') == timestamp('2026-02-01T00:15:00Z')",
        "timestamp('2026-02-01T00:00:00Z') - timestamp('2026-01-31T00:00:00Z') == duration('24h')",
        "timestamp('2026-01-31T23:30:00Z').getDate('Europe/Berlin') == 1 && timestamp(0).getFullYear() == 1970",
        "timestamp('2026-07-01T12:00:00Z').getHours('Europe/Berlin') == 14 && timestamp(0).getHours('-01:30') == 22",
        "timestamp('2026-03-01T00:00:00Z').getMonth() == 2 && timestamp('2026-03-01T00:00:00Z').getDayOfYear() == 59",
        "timestamp('2026-03-01T00:00:00Z').getDayOfWeek() == 0 && timestamp('2026-03-02T00:00:00Z').getDayOfMonth() == 1",
        "timestamp(0.5 > 0.0 ? 90 : 0).getSeconds() == 30 && int(timestamp('1969-12-31T23:59:59.5Z')) == -1",
        "duration('1h30m1.25s').getMinutes() == 90 && duration('1.25s').getMilliseconds() == 250",
        "string(duration('-90m')) == '-5400s' && string(timestamp('2026-01-31T08:30:00.5+01:00')) == '2026-01-31T07:30:00.5Z'",
        "timestamp('9999-12-31T23:59:59Z').getHours('-05:00') == 18 && duration('-1s') < duration('0s')",
    ]);
    all_fail(&[
        ("timestamp('yesterday') == timestamp(0)", "“yesterday” is not a timestamp"),
        ("duration('1 day') == duration('1s')", "“1 day” is not a duration"),
        ("timestamp(0).getHours('Mars/Olympus') == 0", "“Mars/Olympus” is not a time zone"),
        ("timestamp(0).getHours('../../etc/passwd') == 0", "is not a time zone"),
        ("timestamp('9999-12-31T23:59:59Z').getFullYear('+05:00') == 1", "after the year 9999"),
        ("timestamp('9999-12-31T23:59:59Z') + duration('1s') > timestamp(0)", "out of range"),
        ("timestamp(999999999999) > timestamp(0)", "not within the years 1 to 9999"),
        ("-duration('1s') < duration('0s')", "`-` does not take a duration"),
        ("timestamp(0) + 1 > timestamp(0)", "`+` does not take a timestamp and a number"),
    ]);
}

#[test]
fn macros_take_two_variables() {
    all_true(&[
        "o.tags.all(i, v, i < 3 && v != '') && o.tags.exists(i, v, i == 1 && v == 'a')",
        "o.tags.existsOne(i, v, v == 'a') && {'a': 1}.all(k, v, k == 'a' && v == 1)",
        "o.tags.transformList(i, v, i > 0, v + string(i)) == ['a1', 'b2'] && {'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
        "{'a': 1, 'b': 2}.transformMap(k, v, v > 1, k) == {'b': 'b'} && [5].transformMap(i, v, v) == {0: 5}",
        "{'a': 1}.transformMapEntry(k, v, {v: k}) == {1: 'a'} && cel.bind(x, o.total * 2, x + x) == 200",
        "cel.bind(x, o.missing, true) && cel.bind(x, o.tags.map(t, t + t), o.tags.all(t, t + t in x))",
        "{1: 'a', true: 'b', 2u: 'c'}[1.0] == 'a' && {1: 'a'}[1u] == 'a' && 2 in {2u: 'c'} && !(1.5 in {1: 'a'})",
        "o.`a-b`.c == 1 && has(o.`a-b`) && .o.total == 50 && [1].exists(o, .o.total == 50 && o == 1)",
    ]);
    all_fail(&[
        ("{1: 'a', 1u: 'b'} == {}", "duplicate key `1`"),
        ("null in {1: 'a'}", "`in` does not take null and an object"),
        ("{1.5: 'a'} == {}", "a key is a string, an integer or a boolean"),
        ("{'a': 1}.transformMapEntry(k, v, v) == {}", "takes a map, not a number"),
        ("{'a': 1, 'b': 1}.transformMapEntry(k, v, {v: k}) == {}", "duplicate key `1`"),
    ]);
    for (text, expected) in [
        ("o.tags.all(i, i, true)", "two variables named `i`"),
        ("o.tags.transformMap(i, i)", "takes two variable names"),
        ("o.tags.filter(i, v, true)", "takes a variable name"),
        ("cel.bind(1, 2, true)", "expected a variable name"),
    ] {
        let error = Expression::compile(text, &["o"]).unwrap_err();
        assert!(error.message.contains(expected), "{text}: {error:?}");
    }
}

#[test]
fn a_value_of_any_type_is_computed_and_printed() {
    for (text, printed) in [
        ("o.tags", r#"["b", "a", "b"]"#),
        ("{'a': [1, 2u, 1.0, null, true]}", r#"{"a": [1, 2u, 1.0, null, true]}"#),
        ("[timestamp(0), duration('1.5s')]", "[timestamp('1970-01-01T00:00:00Z'), duration('1.5s')]"),
        ("[type(1), b'a', '\"', 1.0 / 0.0]", r#"[int, b'\x61', "\"", double('Infinity')]"#),
    ] {
        let compute = |text: &str| Expression::compile(text, &["o"]).unwrap().compute(&[&data()]).unwrap();
        assert_eq!(compute(text).to_string(), printed);
        assert_eq!(compute(printed).to_string(), printed, "the text is an expression with the same value");
    }
    let failed = Expression::compile("o.missing", &["o"]).unwrap().compute(&[&data()]).unwrap_err();
    assert_eq!(failed.to_string(), "missing field `missing`");
    assert_eq!(Expression::compile("1", &[]).unwrap().compute(&[]), Ok(Computed::Int(1)));
}
