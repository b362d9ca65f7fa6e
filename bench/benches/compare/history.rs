//! The history of many nights from their facts: `compare history [NIGHTS [CASES]]`.

use std::time::Instant;

use camino::Utf8Path;
use counterproof_artifact::evaluation::Evaluation;
use counterproof_bench::{Outcome, peak_memory, target_folder};
use counterproof_report::facts::{self, Facts, FactsFile, RunFolders};
use counterproof_report::history::{History, HistoryFolder};
use counterproof_store::write;
use serde_json::{Value, json};

use crate::{print_line, run_stage};

const NIGHTS: &str = "1000";

const CASES: &str = "1000";

/// Writes facts of generated nights, and the history from them, each in a process of its own.
pub(crate) fn measure(sizes: &[&str]) -> Outcome {
    let nights = sizes.first().copied().unwrap_or(NIGHTS);
    let cases = sizes.get(1).copied().unwrap_or(CASES);
    let scratch = target_folder().join("bench-history");
    write::create_folder(&scratch)?;
    let folder = tempfile::tempdir_in(&scratch)?;
    let root = Utf8Path::from_path(folder.path()).ok_or("the path of the temporary folder is not UTF-8")?;
    print_line(&format!("{nights} nights of {cases} cases"))?;
    print_line(run_stage(&["write-facts", root.as_str(), nights, cases])?.trim())?;
    print_line(run_stage(&["read-facts", root.as_str()])?.trim())
}

/// Writes the facts of each night.
pub(crate) fn write_facts(root: &Utf8Path, seed: u64, nights: u64, cases: u64) -> Outcome {
    let out = root.join("facts");
    write::create_folder(&out)?;
    let folders = RunFolders { evaluation: root.join("report"), runs: root.join("runs") };
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut bytes, mut seconds) = (0, 0.0);
    for night in 0..nights {
        let evaluation = evaluation(&mut random, night, cases)?;
        let started = Instant::now();
        let path = Facts::new(&evaluation, &folders).write(&out, Some(root))?;
        seconds += started.elapsed().as_secs_f64();
        bytes += path.metadata()?.len();
    }
    let mebibytes = bytes as f64 / 1024.0 / 1024.0;
    let each = seconds * 1000.0 / nights.max(1) as f64;
    print_line(&format!("facts: {nights} files, {mebibytes:.1} MiB; {each:.1} ms to write one"))
}

/// Writes the history of all facts.
pub(crate) fn read_facts(root: &Utf8Path) -> Outcome {
    let started = Instant::now();
    let mut history = History::default();
    for file in facts::find(&root.join("facts")).map_err(|skipped| skipped.to_string())? {
        FactsFile::read(&file)?.add_to(&mut history, None)?;
    }
    let page = HistoryFolder::begin(&root.join("history"))?.write(&history, &[])?;
    let (seconds, nights) = (started.elapsed().as_secs_f64(), history.len());
    let kibibytes = page.metadata()?.len() / 1024;
    let peak = peak_memory().unwrap_or(f64::NAN);
    print_line(&format!("history of {nights}: {seconds:.1} s, {peak:.0} MiB of memory, a page of {kibibytes} KiB"))
}

/// A night: 3 % of its cases got worse, 5 % differ.
fn evaluation(random: &mut fastrand::Rng, night: u64, cases: u64) -> Outcome<Evaluation> {
    let started = jiff::Timestamp::from_second(1_700_000_000 + i64::try_from(night)? * 86_400)?.to_string();
    let run = |id: String| {
        json!({"run_id": id, "generated_at": started, "runner_version": "x", "cases_selected": cases,
               "repo_commit": format!("{night:040x}")})
    };
    let evaluation = json!({
        "schema_version": "evaluation.v1", "evaluator_version": "counterproof/0.1.0", "baseline": run("good".to_owned()),
        "new": run(format!("night-{night}")), "counts": {},
        "gate": {"passed": true, "outcome": "passed", "rules": []},
        "cases": (0..cases).map(|number| case(random, number)).collect::<Vec<_>>(),
    });
    Ok(serde_json::from_value(evaluation)?)
}

fn case(random: &mut fastrand::Rng, number: u64) -> Value {
    let (verdict, code) = match random.u32(..100) {
        0..3 => ("regressed", Some("expectation-lost")),
        3..8 => ("changed", Some("output-changed")),
        _ => ("unchanged", None),
    };
    let reasons: Vec<_> = code
        .map(|code| {
            let message = format!("refund_order amount {} → {}", random.u32(1..999), random.u32(1..999));
            json!({"code": code, "message": message, "pointers": []})
        })
        .into_iter()
        .collect();
    let mut side = || {
        json!({"duration_ms": random.u32(200..9000), "steps": random.u32(1..9), "tool_ms": random.u32(20..900),
               "input_tokens": random.u32(500..5000), "output_tokens": random.u32(50..500),
               "cost": f64::from(random.u32(1..900)) / 10_000.0, "currency": "USD"})
    };
    json!({"case_id": format!("case_{number:05}"), "title": format!("Case number {number}"), "verdict": verdict,
           "reasons": reasons, "tags": ["orders", "nightly"], "suite": "shop", "usage": {"baseline": side(), "new": side()}})
}
