//! Addresses of buckets that are refused before a request is made, and packed runs. `tests/cluster/s3.sh` has a server.

use camino::Utf8Path;
use counterproof_tests::{Agent, Reply, Sandbox, files_below, minimal_answer};
use serde_json::{Value, json};

fn sandbox() -> Sandbox {
    let cases: Vec<_> = (0..12).map(|index| json!({"id": format!("c{index}"), "input": {"user": "go"}})).collect();
    Sandbox::new().with_file("cases.json", &Value::from(cases).to_string())
}

#[test]
fn an_address_with_credentials_is_refused_and_not_quoted() {
    let sandbox = sandbox();
    let address = "s3://key:s3cret@agents/runs";
    for line in [
        &["run", "--cases", "cases.json", "--side", "new", "--out", address][..],
        &["compare", address, "runs/new/n"],
        &["compare", "--runs", address],
        &["validate", address],
        &["accept", address, "--reason", "r"],
        &["accept", "--runs", address, "--reason", "r"],
        &["merge", address, "--out", "runs/new/n"],
        &["merge", "--shards", "2", "--out", address],
        &["history", address],
        &["report", address],
        &["report", "evaluation.json", "--publish", address],
        &["run", "--cases", "cases.json", "--side", "new", "--out", "gs://agents/runs?token=s3cret"],
        &["run", "--cases", "cases.json", "--side", "new", "--out", "az://"],
        &["check", "--cases", "cases.json", "--out", "s3://agents/runs"],
        // No bucket, although it looks like one: it must not become a folder of this machine.
        &["run", "--cases", "cases.json", "--side", "new", "--out", "S3://key:s3cret@agents/runs"],
        &["run", "--cases", "cases.json", "--side", "new", "--out", "s3:/agents/s3cret"],
        &["run", "--cases", "cases.json", "--side", "new", "--out", "https://key:s3cret@s3.example/runs"],
        &["run", "--cases", address, "--side", "new"],
        &["batch", "slurm", "--shards", "2", "--out", address],
        &["merge", "--shards", "2", "--out", "s3://agents"],
        &["compare", "--out", "s3://agents/report", "--single-file"],
    ] {
        let finished = sandbox.run(line.iter().copied());
        assert_eq!(
            finished.code,
            Some(if line[0] == "report" && line.len() > 2 { 3 } else { 2 }),
            "{line:?}: {finished}"
        );
        assert!(!finished.stderr.contains("s3cret"), "{finished}");
    }
    for folder in ["s3:", "S3:", "https:", "runs"] {
        assert!(!sandbox.path(folder).exists(), "{folder}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a torn archive is what the test needs")]
fn a_packed_run_has_two_files_and_is_read_like_the_run_that_it_packs() {
    let sandbox = sandbox();
    let agent = Agent::start(|_| Reply::json(&minimal_answer()));
    let url = agent.base_url();
    let run = |more: &[&str]| sandbox.run(["run", "--cases", "cases.json", "--base-url", &url].iter().chain(more));
    let done = |line: &[&str]| {
        let finished = sandbox.run(line.iter().copied());
        assert_eq!(finished.code, Some(0), "{finished}");
        finished
    };
    for shard in ["1/2", "2/2"] {
        assert_eq!(run(&["--side", "new", "--run-id", "n", "--shard", shard]).code, Some(0));
    }
    assert_eq!(run(&["--side", "baseline", "--run-id", "b"]).code, Some(0));
    done(&["merge", "--shards", "2", "--out", "runs/new/n"]);
    done(&["merge", "runs/new/n-s1of2", "runs/new/n-s2of2", "--pack", "--out", "runs/new/packed"]);
    let names = |folder: &str| -> Vec<String> {
        files_below(&sandbox.path(folder)).into_iter().map(|(path, _)| path.to_string()).collect()
    };
    assert_eq!(names("runs/new/packed"), ["run.json", "run.zip"]);
    let valid = done(&["validate", "runs/new/packed"]);
    assert_eq!(valid.stdout, done(&["validate", "runs/new/n"]).stdout);

    // Both named, and as the latest run.
    let compared = |run: &str| {
        let finished = done(&["compare", "runs/baseline/b", run, "--cases", "cases.json", "--out", "report"]);
        assert!(!finished.stderr.contains("-copy") && !finished.stdout.contains("-copy"), "{finished}");
        sandbox.json("report/evaluation.json")["cases"].clone()
    };
    assert_eq!(compared("runs/new/packed"), compared("runs/new/n"));
    assert!(sandbox.path("runs/new/packed/evaluation.json").is_file());
    for folder in ["n", "n-s1of2", "n-s2of2"] {
        std::fs::remove_dir_all(sandbox.path(&format!("runs/new/{folder}"))).unwrap();
    }
    done(&["compare", "--cases", "cases.json"]);
    done(&["accept", "--reason", "better", "--run-id", "accepted"]);
    done(&["validate", "runs/baseline/accepted"]);

    // Nothing of it can go on, or is read if it is damaged.
    let resumed = run(&["--side", "new", "--resume", "packed"]);
    assert_eq!(resumed.code, Some(2), "{resumed}");
    assert!(resumed.stderr.contains("is packed"), "{resumed}");
    let archive = sandbox.path("runs/new/packed/run.zip");
    let bytes = std::fs::read(&archive).unwrap();
    std::fs::write(&archive, &bytes[..bytes.len() / 2]).unwrap();
    let damaged = sandbox.run(["validate", "runs/new/packed"]);
    assert_eq!(damaged.code, Some(3), "{damaged}");
    assert!(damaged.stderr.contains("runs/new/packed/run.zip"), "{damaged}");
    assert!(Utf8Path::new(&archive).exists());
}
