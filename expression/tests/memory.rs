//! The memory of hostile expressions. A process of its own, because the peak of a process never falls.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::fs;

use counterproof_expression::{Expression, Outcome};
use serde_json::json;

/// Memory that the expressions may add. Computed values have 16 MB, and the allocator rounds up and grows by doubling.
const MAX_ADDED_KIB: u64 = 96 * 1024;

fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn the_memory_of_an_evaluation_stays_flat() {
    let data = json!({"s": "x".repeat(1_000), "l": (0..1_000_000).collect::<Vec<_>>()});
    let chain = |start: &str, step: &str| format!("{start}{} == []", step.repeat(60));
    let texts = [
        chain("[o.s]", ".map(x, x + x)"),
        chain("[o.s]", ".map(x, x.replace('x', 'xxxxxxxxxxxxxxxx'))"),
        chain("[o.s]", ".map(x, [x, x, x, x, x].join('---'))"),
        chain("[o.l]", ".map(x, x + x)"),
        chain("[[0]]", ".map(x, x + x)"),
        "o.l.map(x, [x]) == []".to_owned(),
        "o.l.map(x, {}) == []".to_owned(),
        "o.l.map(x, {x: x}) == []".to_owned(),
        "o.l.transformMap(i, v, v) == {}".to_owned(),
        "o.l.map(x, string(x)) == []".to_owned(),
        "o.l.sort() == [] || o.l.filter(x, true) == []".to_owned(),
        "o.s.split('').map(x, o.s.split('').map(y, x + y)) == []".to_owned(),
    ];
    let expressions: Vec<_> = texts.iter().map(|text| Expression::compile(text, &["o"]).unwrap()).collect();
    let before = peak_kib();
    for expression in &expressions {
        assert_eq!(expression.evaluate(&[&data]), Outcome::TooLong, "{}", expression.source());
        let added = peak_kib() - before;
        assert!(added <= MAX_ADDED_KIB, "{added} KiB after {}", expression.source());
    }
}
