//! Evaluations of three typical conditions, next to the same checks written by hand over JSON values.

#![allow(clippy::expect_used, reason = "a benchmark may panic")]

use std::sync::LazyLock;

use counterproof_expression::{Expression, Outcome};
use divan::{Bencher, black_box};
use serde_json::{Value, json};

static OUTPUT: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "test_coverage": true,
        "modified_files": ["src/lib.rs", "src/main.rs"],
        "items": (0..1_000).map(|index| json!({"id": index, "price": index * 3, "name": "item"})).collect::<Vec<_>>(),
    })
});

const CONDITIONS: [&str; 3] = [
    "output.test_coverage == true",
    "output.modified_files.len() > 0",
    "output.items.all(i, i.price >= 0 && i.name != '')",
];

fn main() {
    divan::main();
}

#[divan::bench(args = CONDITIONS)]
fn compiled(bencher: Bencher<'_, '_>, condition: &str) {
    let expression = Expression::compile(condition, &["output"]).expect("the condition is valid");
    bencher.bench(|| assert_eq!(expression.evaluate(&[black_box(&*OUTPUT)]), Outcome::True));
}

#[divan::bench(args = CONDITIONS)]
fn by_hand(bencher: Bencher<'_, '_>, condition: &str) {
    let is_valid = |item: &Value| item["price"].as_i64().is_some_and(|price| price >= 0) && item["name"] != "";
    let check: &(dyn Fn(&Value) -> bool + Sync) = match CONDITIONS.iter().position(|known| *known == condition) {
        Some(0) => &|output| output["test_coverage"] == true,
        Some(1) => &|output| output["modified_files"].as_array().is_some_and(|files| !files.is_empty()),
        _ => &|output| output["items"].as_array().is_some_and(|items| items.iter().all(is_valid)),
    };
    bencher.bench(|| assert!(check(black_box(&OUTPUT))));
}

#[divan::bench(args = CONDITIONS)]
fn compile(condition: &str) -> bool {
    Expression::compile(black_box(condition), &["output"]).is_ok()
}
