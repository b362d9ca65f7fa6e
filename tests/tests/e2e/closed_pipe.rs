//! A closed standard output, such as after `| head -1`, does not change the exit code.
#![cfg(unix)]

use std::process::Stdio;

use camino::Utf8Path;
use counterproof_tests::Sandbox;

/// Returns the exit code of a command whose standard output is a closed pipe.
fn code_unread(sandbox: &Sandbox, arguments: &[&str]) -> Option<i32> {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = sandbox.command(arguments);
    command.stdout(writer).stderr(Stdio::null()).status().unwrap().code()
}

#[test]
fn findings_and_a_failed_gate_set_the_exit_code_with_a_closed_pipe() {
    let sandbox =
        Sandbox::new().with_file("torn.json", "{").with_file("good.json", "{\"schema_version\": \"failure-meta.v1\"}");
    assert_eq!(code_unread(&sandbox, &["validate", "torn.json"]), Some(1));
    assert_eq!(code_unread(&sandbox, &["validate", "good.json"]), Some(0));
    assert_eq!(code_unread(&sandbox, &["schema", "case.v1"]), Some(0));
    let runs = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../sample-runs/runs");
    let compare = ["compare", "--runs", runs.as_str(), "--out", "report", "--no-write-back"];
    assert_eq!(code_unread(&sandbox, &compare), Some(1));
}
