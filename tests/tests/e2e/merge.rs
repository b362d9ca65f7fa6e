//! `run --shard`, `run --repeat` and `merge`: shards of a run are merged, or refused if they do not fit.

use camino::Utf8Path;
use counterproof_tests::{Agent, Finished, Reply, Sandbox, files_below, minimal_answer};
use insta::assert_snapshot;
use serde_json::{Value, json};

fn agent() -> Agent {
    Agent::start(|id| match id {
        "c3" => Reply::text(400, "text/plain", "no"),
        _ => Reply::json(&minimal_answer()),
    })
}

fn sandbox() -> Sandbox {
    let cases: Vec<_> = (0..12).map(|index| json!({"id": format!("c{index}"), "input": {"user": "go"}})).collect();
    Sandbox::new().with_file("cases.json", &Value::from(cases).to_string())
}

fn run(sandbox: &Sandbox, agent: &Agent, more: &[&str]) -> Finished {
    let url = agent.base_url();
    sandbox.run(["run", "--cases", "cases.json", "--side", "new", "--base-url", &url].iter().chain(more))
}

#[track_caller]
fn assert_done(finished: &Finished) {
    assert_eq!(finished.code, Some(0), "{finished}");
}

#[test]
fn merged_shards_equal_the_run_of_one_machine() {
    let (sandbox, agent) = (sandbox(), agent());
    for shard in ["1/3", "2/3"] {
        assert_done(&run(&sandbox, &agent, &["--run-id", "n", "--shard", shard]));
    }
    let third = sandbox.with_variable("BUILDKITE_PARALLEL_JOB", "2").with_variable("BUILDKITE_PARALLEL_JOB_COUNT", "3");
    assert_done(&run(&third, &agent, &["--run-id", "n", "--shard", "auto"]));
    assert_eq!(agent.requests().len(), 12);
    let shards = ["runs/new/n-s3of3", "runs/new/n-s1of3", "runs/new/n-s2of3"];
    assert_snapshot!(third.run(["merge"].iter().chain(&shards).chain(&["--out", "runs/new/n"])), @r"
    exit code: 0
    --- stdout
    run folder: runs/new/n
    --- stderr
    3 shards, 12 cases: 1 failed
    next: counterproof validate runs/new/n
    ");
    assert_done(&third.run(["validate", "runs/new/n"]));

    assert_done(&run(&third, &agent, &["--run-id", "whole"]));
    let (merged, whole) = (third.json("runs/new/n/run.json"), third.json("runs/new/whole/run.json"));
    for field in ["selected_case_ids", "case_digests", "cases_digest", "cases_path", "out_dir", "limits"] {
        assert_eq!(merged[field], whole[field], "{field}");
    }
    assert_eq!(merged["stats"]["attempts_total"], whole["stats"]["attempts_total"]);
    assert!(merged.get("shard").is_none() && merged["merged_from"].as_array().unwrap().len() == 3);
    let names =
        |folder: &str| -> Vec<_> { files_below(&third.path(folder)).into_iter().map(|(path, _)| path).collect() };
    assert_eq!(names("runs/new/n"), names("runs/new/whole"));
    // The stored requests name their run, so only the answers of the agent are equal.
    let bodies = |folder: &str| -> Vec<Value> {
        let manifest = third.json(&format!("{folder}/assets/manifest.json"));
        let items = manifest["items"].as_array().unwrap().iter();
        items.filter(|item| item["kind"] == "full_body").cloned().collect()
    };
    assert_eq!((bodies("runs/new/n"), bodies("runs/new/n").len()), (bodies("runs/new/whole"), 1));
}

#[test]
fn shards_that_are_not_one_complete_run_are_refused() {
    let (sandbox, agent) = (sandbox(), agent());
    for (id, shard, more) in [
        ("n", "1/2", &[][..]),
        ("n", "2/2", &[]),
        ("m", "2/2", &[]),
        ("n", "2/3", &[]),
        ("t", "1/2", &["--timeout", "9s"]),
    ] {
        assert_done(&run(&sandbox, &agent, &[&["--run-id", id, "--shard", shard], more].concat()));
    }
    assert_done(&run(&sandbox, &agent, &["--run-id", "whole"]));
    let refused = |shards: &[&str], out: &str| {
        let shards: Vec<_> = shards.iter().map(|shard| format!("runs/new/{shard}")).collect();
        let line: Vec<_> =
            ["merge".to_owned()].into_iter().chain(shards).chain(["--out".to_owned(), out.to_owned()]).collect();
        let finished = sandbox.run(line);
        assert_eq!(finished.code, Some(2), "{finished}");
        finished.stderr.lines().next().unwrap_or_default().to_owned()
    };
    let out = "runs/new/joined";
    for (shards, out, said) in [
        (&["n-s1of2"][..], out, "shards are missing: 2/2"),
        (&["n-s1of2", "n-s1of2"], out, "are both shard 1"),
        (&["n-s1of2", "m-s2of2"], out, "`shard.run_id` changed from \"n\" to \"m\""),
        (&["n-s1of2", "n-s2of3"], out, "`shard.count` changed from 2 to 3"),
        (&["t-s1of2", "n-s2of2"], out, "`timeout_ms` changed from 9000 to 120000"),
        (&["n-s1of2", "whole"], out, "is not a shard"),
        (&["n-s1of2", "n-s2of2"], "runs/baseline/joined", "side `baseline`"),
        (&["n-s1of2", "n-s2of2"], "runs/new/whole", "already exists"),
    ] {
        let message = refused(shards, out);
        assert!(message.contains(said), "{shards:?}: {message}");
    }
    let lost = first_artifact(&sandbox.path("runs/new/n-s2of2"));
    std::fs::remove_file(&lost).unwrap();
    assert!(refused(&["n-s1of2", "n-s2of2"], out).contains("is not complete"));
    assert!(!sandbox.path(out).exists());
    let left = files_below(&sandbox.path("runs/new")).into_iter().any(|(path, _)| path.as_str().contains(".tmp-"));
    assert!(!left, "a merge that was refused leaves nothing");
}

fn first_artifact(folder: &Utf8Path) -> camino::Utf8PathBuf {
    let files = files_below(folder);
    let name = files.iter().map(|(path, _)| path).find(|path| path.as_str().starts_with('c')).unwrap();
    folder.join(name)
}

#[test]
fn repeats_are_runs_of_one_group() {
    let (sandbox, agent) = (sandbox(), agent());
    assert_done(&run(&sandbox, &agent, &["--run-id", "n", "--repeat", "3", "--only", "c1"]));
    for number in 1..=3 {
        let document = sandbox.json(&format!("runs/new/n-r{number}/run.json"));
        let group = (&document["group_id"], &document["repeat"], &document["repeats"]);
        assert_eq!(group, (&json!("n"), &json!(number), &json!(3)));
        assert_done(&sandbox.run(["validate", &format!("runs/new/n-r{number}")]));
    }
    // Stopped during the second of three repeats: the resumed run completes it and adds the third.
    std::fs::remove_file(sandbox.path("runs/new/n-r2/c1.json")).unwrap();
    std::fs::remove_dir_all(sandbox.path("runs/new/n-r3")).unwrap();
    assert_done(&run(&sandbox, &agent, &["--resume", "n", "--repeat", "3", "--only", "c1"]));
    assert_eq!(agent.requests().len(), 5);
}
