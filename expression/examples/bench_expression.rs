//! Measures evaluations per second of three typical conditions, and of the same checks written by hand over JSON values.
//!
//! Usage: `cargo run --release -p counterproof-expression --example bench_expression`.

#![allow(clippy::print_stdout, clippy::expect_used, reason = "a program for developers")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use counterproof_expression::{Expression, Outcome};
use serde_json::{Value, json};

/// Time for one measurement.
const MEASURED: Duration = Duration::from_secs(1);

/// Calls between two looks at the clock.
const BATCH: u32 = 100;

/// A check written by hand.
type Check = fn(&Value) -> bool;

fn main() {
    let output = json!({
        "test_coverage": true,
        "modified_files": ["src/lib.rs", "src/main.rs"],
        "items": (0..1_000).map(|index| json!({"id": index, "price": index * 3, "name": "item"})).collect::<Vec<_>>(),
    });
    let conditions: [(&str, Check); 3] = [
        ("output.test_coverage == true", |output| output["test_coverage"] == true),
        ("output.modified_files.len() > 0", |output| {
            output["modified_files"].as_array().is_some_and(|files| !files.is_empty())
        }),
        ("output.items.all(i, i.price >= 0 && i.name != '')", |output| {
            let valid = |item: &Value| item["price"].as_i64().is_some_and(|price| price >= 0) && item["name"] != "";
            output["items"].as_array().is_some_and(|items| items.iter().all(valid))
        }),
    ];
    println!("{:52} {:>14} {:>14} {:>7}", "condition", "expression/s", "by hand/s", "ratio");
    for (text, by_hand) in conditions {
        let expression = Expression::compile(text, &["output"]).expect("the condition is valid");
        let evaluated = per_second(|| expression.evaluate(&[black_box(&output)]) == Outcome::True);
        let floor = per_second(|| by_hand(black_box(&output)));
        println!("{text:52} {evaluated:14.0} {floor:14.0} {:7.1}", floor / evaluated);
    }
    let compiled =
        per_second(|| Expression::compile(black_box("output.modified_files.len() > 0"), &["output"]).is_ok());
    println!("{:52} {compiled:14.0}", "compile output.modified_files.len() > 0");
}

/// Returns how often a check that must be true runs in a second.
fn per_second(mut check: impl FnMut() -> bool) -> f64 {
    let start = Instant::now();
    let mut calls = 0_u32;
    while start.elapsed() < MEASURED {
        for _ in 0..BATCH {
            assert!(check(), "the condition is true");
        }
        calls += BATCH;
    }
    f64::from(calls) / start.elapsed().as_secs_f64()
}
