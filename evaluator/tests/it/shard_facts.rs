//! The facts of the shards of a comparison: which folders of them are refused, and why. That they give the same evaluation as one
//! process is checked by each comparison of the kit.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::convert::Infallible;

use camino::Utf8Path;
use counterproof_artifact::Side;
use counterproof_artifact::evaluation::Verdict;
use counterproof_cases::Shard;
use counterproof_evaluator::{Request, ShardFacts, write_shard_facts};
use counterproof_store::write::{self, Durability};

use crate::kit::{Pair, answer, answer_with, rules};

const CASES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Six cases, of which `a` asks for more money on new.
fn pair() -> Pair {
    let more = answer_with(|answer| answer["proposed_actions"][0]["params"]["amount"] = 500.into());
    CASES.iter().fold(Pair::empty(), |pair, case| {
        let new = if *case == "a" { more.clone() } else { answer() };
        pair.with(Side::Baseline, case, &answer()).with(Side::New, case, &new)
    })
}

fn shard(index: u32, count: u32) -> Shard {
    Shard::new(index, count).unwrap()
}

fn error(request: &Request<'_>, folder: &Utf8Path) -> String {
    ShardFacts::read(request, folder).unwrap_err().to_string().replace(folder.as_str(), "facts")
}

#[test]
fn a_folder_that_lacks_a_shard_or_has_one_twice_is_refused() {
    let (pair, folder) = (pair(), tempfile::tempdir().unwrap());
    let (request, folder) = (pair.request(), Utf8Path::from_path(folder.path()).unwrap());
    assert_eq!(error(&request, folder), "`facts` has no facts");
    for index in [1, 3] {
        write_shard_facts(&request, shard(index, 4), folder).unwrap();
    }
    assert_eq!(error(&request, folder), "2 of 4 shards have no facts: 2, 4");
    for index in [2, 4] {
        write_shard_facts(&request, shard(index, 4), folder).unwrap();
    }
    // A shard that is written again replaces its file.
    let path = write_shard_facts(&request, shard(2, 4), folder).unwrap();
    assert!(ShardFacts::read(&request, folder).is_ok());
    write::copy(&path, &folder.join("copy.jsonl"), Durability::Cached).unwrap();
    let doubled = "`facts/copy.jsonl` and `facts/shard-2-of-4.jsonl` both have the facts of shard 2/4";
    assert_eq!(error(&request, folder), doubled);
    write::remove(&folder.join("copy.jsonl")).unwrap();
    write_shard_facts(&request, shard(1, 2), folder).unwrap();
    assert_eq!(
        error(&request, folder),
        "`facts/shard-1-of-4.jsonl` has the facts of shard 1/4, but other files are of 2 shards"
    );
}

#[test]
fn facts_of_another_comparison_and_damaged_ones_are_refused() {
    let (pair, folder) = (pair(), tempfile::tempdir().unwrap());
    let (request, folder) = (pair.request(), Utf8Path::from_path(folder.path()).unwrap());
    let path = write_shard_facts(&request, shard(1, 1), folder).unwrap();
    let foreign = "`facts/shard-1-of-1.jsonl` has the facts of another comparison: of other runs, cases or rules";
    let ruled = Request { rules: rules("[[rule]]\npath = \"/events/*/ts\"\nignore = true\n"), ..pair.request() };
    assert_eq!(error(&ruled, folder), foreign);
    let swapped = Request { baseline: request.new.clone(), new: request.baseline.clone(), ..pair.request() };
    assert_eq!(error(&swapped, folder), foreign);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let damaged = |text: &str| {
        write::write(&path, text.as_bytes(), Durability::Cached).unwrap();
        error(&request, folder)
    };
    let name = "`facts/shard-1-of-1.jsonl`";
    assert_eq!(damaged(""), format!("{name} is not a file of facts, or is damaged: line 1"));
    assert_eq!(damaged("\u{0}\u{1}"), format!("{name} is not a file of facts, or is damaged: line 1"));
    for cut in [&text[..text.len() - 9], &lines[..8].join("\n")] {
        assert_eq!(damaged(cut), format!("{name} is not a file of facts, or is damaged: line 9"));
    }
    assert_eq!(damaged(&lines[..7].join("\n")), format!("{name} is not a file of facts, or is damaged: line 8"));
    let twice = [&lines[..7], &lines[6..7]].concat().join("\n");
    assert_eq!(damaged(&twice), format!("{name} is damaged: line 8 has a case that is known"));
    let edited = text.replacen("refund_order", "refund_other", 1);
    assert_eq!(damaged(&edited), format!("{name} is damaged: it was changed after it was written"));
    let beyond = text.replace("\"index\":5", "\"index\":500");
    assert_eq!(damaged(&beyond), format!("{name} is damaged: line 8 has a case that no run has"));
    let other = text.replacen("counterproof ", "counterproof 9.", 1);
    let version = format!("counterproof {}", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        damaged(&other),
        format!("{name} was written by {}, and this is {version}", version.replace(' ', " 9."))
    );
    // No cut is read as a whole.
    for end in (0..text.len() - 1).step_by(19).filter(|end| text.is_char_boundary(*end)) {
        damaged(&text[..end]);
    }
}

#[test]
fn the_sink_receives_the_cases_that_have_a_page() {
    let (pair, folder) = (pair(), tempfile::tempdir().unwrap());
    let (request, folder) = (pair.request(), Utf8Path::from_path(folder.path()).unwrap());
    for index in 1..=2 {
        write_shard_facts(&request, shard(index, 2), folder).unwrap();
    }
    let shown = std::sync::Mutex::new(Vec::new());
    let facts = ShardFacts::read(&request, folder).unwrap();
    assert_eq!(facts.verdicts().len(), CASES.len());
    let evaluation = facts.compare::<Infallible>(
        |verdict| verdict != Verdict::Unchanged,
        |case| {
            shown.lock().unwrap().push(case.row.clone());
            Ok(())
        },
    );
    let evaluation = evaluation.unwrap();
    assert_eq!(shown.into_inner().unwrap(), [evaluation.cases[0].clone()]);
}
