//! Evaluates random expressions over random JSON here and with Google's implementation, and reports differences.
//!
//! Usage: `differential PYTHON COUNT SEED`. The Python has the package `cel-expr-python`. `cargo xtask interop` installs it and
//! runs this program.

#![allow(clippy::print_stdout, clippy::expect_used, reason = "a program for developers")]

mod compare;
mod data;
mod generate;
mod oracle;
mod templates;
mod tokens;

use std::collections::BTreeMap;
use std::process::ExitCode;

use compare::{Verdict, compare};
use fastrand::Rng;
use generate::{Generator, Tree};
use oracle::Oracle;
use serde_json::Value as Json;
use tokens::tokens;

/// Maximum nesting of an expression.
const MAX_DEPTH: usize = 5;

/// One of so many texts is a sequence of tokens.
const TOKENS_EVERY: usize = 4;

/// The program stops after this many differences.
const MAX_DIFFERENCES: usize = 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [python, count, seed] = arguments.as_slice() else {
        println!("usage: differential PYTHON COUNT SEED");
        return ExitCode::FAILURE;
    };
    let count: usize = count.parse().expect("COUNT is a number");
    let seed: u64 = seed.parse().expect("SEED is a number");
    let mut oracle = Oracle::start(python).expect("the other implementation starts");
    let mut rng = Rng::with_seed(seed);
    let mut same = 0_usize;
    let mut values = 0_usize;
    let mut expected = BTreeMap::<&str, usize>::new();
    let mut differences = 0;
    for index in 0..count {
        let output = data::document(&mut rng);
        let tree = if index % TOKENS_EVERY == 0 { tokens(&mut rng) } else { expression(&mut rng) };
        let text = tree.text();
        let answer = oracle.evaluate(&text, &output).expect("the other implementation answers");
        values += usize::from(matches!(answer, oracle::Answer::Value(_)));
        match compare(&text, &output, &answer) {
            Verdict::Same => same += 1,
            Verdict::Expected(reason) => *expected.entry(reason).or_default() += 1,
            Verdict::Different(_) => {
                let tree = smallest(tree, &output, &mut oracle);
                let answer = oracle.evaluate(&tree.text(), &output).expect("the other implementation answers");
                println!("error: expression {index} of seed {seed}: {}", tree.text());
                println!("  {:?}", compare(&tree.text(), &output, &answer));
                println!("  output = {output}");
                differences += 1;
            }
        }
        if differences == MAX_DIFFERENCES {
            println!("error: stopped after {MAX_DIFFERENCES} differences");
            break;
        }
    }
    println!("{count} random expressions with seed {seed}: {same} agree, {values} of all have a value");
    println!("expected differences: {}", expected.values().sum::<usize>());
    for (reason, count) in expected {
        println!("  {count:5} {reason}");
    }
    if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns a random expression.
fn expression(rng: &mut Rng) -> Tree {
    let depth = rng.usize(1..=MAX_DEPTH);
    let mut generator = Generator::new(rng);
    let wanted = generator.any_type();
    generator.tree(wanted, depth, false)
}

/// Replaces parts by smaller ones for as long as the results still differ.
fn smallest(mut tree: Tree, output: &Json, oracle: &mut Oracle) -> Tree {
    'smaller: loop {
        for candidate in tree.smaller() {
            let text = candidate.text();
            let answer = oracle.evaluate(&text, output).expect("the other implementation answers");
            if text.len() < tree.text().len() && matches!(compare(&text, output, &answer), Verdict::Different(_)) {
                tree = candidate;
                continue 'smaller;
            }
        }
        return tree;
    }
}
