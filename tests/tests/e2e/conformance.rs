//! `conformance`: runs small vector files against the real safe-run, other programs and wrappers.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
#[cfg(target_os = "linux")]
use std::process::{Command, Stdio};
#[cfg(target_os = "linux")]
use std::time::{Duration, Instant};

use counterproof_tests::{Finished, Sandbox, safe_run};
use serde_json::{Value, json};

/// Vectors in the published format: one that passes, one for another system, and two for tools outside this project.
fn vectors() -> Value {
    json!({
        "version": "1.0",
        "m0_contract_version": "v0.1.0",
        "description": "What is published beside the vectors changes nothing.",
        "templates": {"print_and_exit": "prints both texts and exits"},
        "vectors": {
            "safe_run": [{
                "id": "run-1", "name": "A failure keeps both streams", "m0_spec": ["M0-P1-I1"],
                "command": {"args_template": "print_and_exit", "exit_code": 7, "print_stdout": "OUT", "print_stderr": "ERR"},
                "expected": {"exit_code": 7, "log_content_markers": ["=== STDOUT ===", "OUT", "=== STDERR ===", "ERR"]},
            }],
            "safe_check": [{
                "id": "check-1", "name": "A command of Windows", "m0_spec": [],
                "command": {"check_args": ["cmd"], "platform_filter": "windows"}, "expected": {"exit_code": 0},
            }],
            "preflight_automerge_ruleset": [{"id": "preflight-1", "anything": true}, {"id": "preflight-2"}],
        },
    })
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new().with_file("vectors.json", &vectors().to_string());
    sandbox
        .with_file("wrapper", "#!/bin/sh\n# Contract: M0-v0.1.0\nexec \"$SAFE_RUN_BIN\" run \"$@\"\n")
        .with_file("liar", "#!/bin/sh\n# Contract: M0-v0.1.0\n\"$SAFE_RUN_BIN\" run \"$@\"\nexit 0\n")
}

/// Runs the command over the vectors with safe-run as the tool. Machine-dependent paths are replaced.
fn conformance(sandbox: &Sandbox, arguments: &[&str]) -> Finished {
    for script in ["wrapper", "liar"] {
        fs::set_permissions(sandbox.path(script), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let tool = safe_run().canonicalize().unwrap();
    let tool = tool.to_str().unwrap();
    let root = sandbox.root().canonicalize_utf8().unwrap();
    let finished = sandbox.run(["conformance", "--vectors", "vectors.json", "--tool", tool].iter().chain(arguments));
    finished.redact(tool, "safe-run").redact(root.as_str(), "<folder>")
}

#[test]
fn each_passed_vector_is_listed_and_others_are_out_of_scope() {
    insta::assert_snapshot!(conformance(&sandbox(), &["--wrapper", "wrapper"]), @r"
    exit code: 0
    --- stdout
    tool safe-run
      pass  run-1  A failure keeps both streams
      skip  check-1  A command of Windows (only on windows)
    wrapper <folder>/wrapper
      pass  wrapper-contract  The wrapper declares the contract that it follows
      pass  run-1  A failure keeps both streams
      skip  check-1  A command of Windows (only on windows)
    out of scope: preflight-1 (preflight_automerge_ruleset)
    out of scope: preflight-2 (preflight_automerge_ruleset)
    3 passed, 0 failed, 2 skipped, 2 out of scope
    ");
}

#[test]
fn differences_are_listed_below_their_vector_and_set_the_exit_code() {
    insta::assert_snapshot!(conformance(&sandbox(), &["--wrapper", "liar"]), @r"
    exit code: 1
    --- stdout
    tool safe-run
      pass  run-1  A failure keeps both streams
      skip  check-1  A command of Windows (only on windows)
    wrapper <folder>/liar
      pass  wrapper-contract  The wrapper declares the contract that it follows
      FAIL  run-1  A failure keeps both streams
            exit code: expected 7, found 0
            differs from the tool: exit code: expected 7, found 0
      skip  check-1  A command of Windows (only on windows)
    out of scope: preflight-1 (preflight_automerge_ruleset)
    out of scope: preflight-2 (preflight_automerge_ruleset)
    2 passed, 1 failed, 2 skipped, 2 out of scope
    ");
}

#[test]
fn vectors_of_other_systems_only_are_not_a_pass() {
    let mut vectors = vectors();
    vectors["vectors"]["safe_run"] = json!([]);
    let sandbox = sandbox().with_file("vectors.json", &vectors.to_string());
    insta::assert_snapshot!(conformance(&sandbox, &[]), @r"
    exit code: 1
    --- stdout
    tool safe-run
      skip  check-1  A command of Windows (only on windows)
      FAIL  vectors-here  At least one vector is for this system
            all vectors are for other systems: nothing was checked
    out of scope: preflight-1 (preflight_automerge_ruleset)
    out of scope: preflight-2 (preflight_automerge_ruleset)
    0 passed, 1 failed, 1 skipped, 2 out of scope
    ");
}

#[test]
fn a_second_tool_is_judged_like_the_first() {
    let finished = conformance(&sandbox(), &["/usr/bin/env"]);
    assert_eq!(finished.code, Some(1), "{finished}");
    assert!(finished.stdout.contains("no log contains \"=== STDOUT ===\""), "{finished}");
    assert!(finished.stdout.contains("1 passed, 1 failed, 2 skipped, 2 out of scope"), "{finished}");
}

#[test]
fn json_and_junit_have_the_same_results() {
    let sandbox = sandbox();
    let told = conformance(&sandbox, &["--wrapper", "liar", "--format", "json"]);
    assert_eq!(told.code, Some(1), "{told}");
    let report: Value = serde_json::from_str(&told.stdout).unwrap();
    let wrong = "exit code: expected 7, found 0";
    assert_eq!((&report["passed"], &report["failed"], &report["skipped"]), (&json!(2), &json!(1), &json!(2)));
    assert_eq!(report["subjects"][1]["results"][1]["wrong"][0], wrong);
    assert_eq!(report["out_of_scope"][1], json!({"group": "preflight_automerge_ruleset", "id": "preflight-2"}));

    let told = conformance(&sandbox, &["--wrapper", "liar", "--format", "junit"]);
    assert_eq!(told.code, Some(1), "{told}");
    for part in [
        "<testsuites name=\"conformance\" tests=\"7\" skipped=\"4\" failures=\"1\" errors=\"0\">",
        "<testsuite name=\"tool safe-run\" tests=\"2\" skipped=\"1\" errors=\"0\" failures=\"0\">",
        "<testsuite name=\"wrapper <folder>/liar\" tests=\"3\" skipped=\"1\" errors=\"0\" failures=\"1\">",
        &format!("<failure message=\"{wrong}\">{wrong}\n"),
        "<testcase name=\"preflight-1\" classname=\"preflight_automerge_ruleset\">",
        "<skipped message=\"out of scope\"/>",
    ] {
        assert!(told.stdout.contains(part), "{part}: {told}");
    }
}

#[test]
fn a_variable_reaches_every_vector() {
    let mut vectors = vectors();
    vectors["vectors"]["safe_run"][0]["expected"]["log_file_pattern"] = json!(r"^\d{8}T\d{6}Z-pid\d+-FAIL\.log$");
    let sandbox = sandbox().with_file("vectors.json", &vectors.to_string());
    let finished = conformance(&sandbox, &[]);
    assert!(finished.code == Some(1) && finished.stdout.contains("does not match"), "{finished}");
    let finished = conformance(&sandbox, &["--env", "SAFE_LOG_STYLE=m0"]);
    assert_eq!(finished.code, Some(0), "{finished}");
}

#[test]
fn safe_variables_of_the_caller_do_not_reach_a_vector() {
    let mut vectors = vectors();
    let script = "env | grep '^SAFE_OF' && exit 9; test \"$OF_THE_CALLER\" = kept && exit 7";
    vectors["vectors"]["safe_run"][0]["command"] = json!({"args": ["sh", "-c", script]});
    vectors["vectors"]["safe_run"][0]["expected"] = json!({"exit_code": 7});
    let sandbox = sandbox().with_file("vectors.json", &vectors.to_string());
    let sandbox = sandbox.with_variable("SAFE_OF_THE_CALLER", "1").with_variable("OF_THE_CALLER", "kept");
    let finished = conformance(&sandbox, &[]);
    assert_eq!(finished.code, Some(0), "{finished}");
    let finished = conformance(&sandbox, &["--env", "SAFE_OF_THE_OPTIONS=1"]);
    assert!(finished.code == Some(1) && finished.stdout.contains("expected 7, found 9"), "{finished}");
}

/// Returns true while the process runs.
#[cfg(target_os = "linux")]
fn is_alive(process: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

#[cfg(target_os = "linux")]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_mins(1);
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_signal_kills_running_trials_and_removes_their_folder() {
    let mut vectors = vectors();
    let script = "sleep 600 & echo $! > \"$CHILD.new\"; mv \"$CHILD.new\" \"$CHILD\"; wait";
    vectors["vectors"]["safe_run"][0]["command"] = json!({"args": ["sh", "-c", script]});
    let tool = safe_run().canonicalize().unwrap();
    for (tool, signal) in [(tool.to_str().unwrap(), "-TERM"), ("wrapper", "-INT")] {
        let sandbox = sandbox().with_file("vectors.json", &vectors.to_string()).with_file("temporary/kept", "");
        let sandbox = sandbox.with_file("wrapper", "#!/bin/sh\nshift\n\"$@\"\n");
        fs::set_permissions(sandbox.path("wrapper"), fs::Permissions::from_mode(0o755)).unwrap();
        let child = sandbox.path("child");
        let mut command = sandbox.command(["conformance", "--vectors", "vectors.json", "--tool", tool]);
        command.env("CHILD", &child).env("TMPDIR", sandbox.path("temporary"));
        let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("the trial runs", || child.exists());
        let process = fs::read_to_string(&child).unwrap().trim().to_owned();
        assert!(is_alive(&process), "{tool}");
        assert!(Command::new("kill").args([signal, &running.id().to_string()]).status().unwrap().success());
        let output = running.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(4), 0), "{tool}: {stderr}");
        assert!(stderr.contains("interrupted"), "{tool}: {stderr}");
        wait_until("what the trial started is gone", || !is_alive(&process));
        assert_eq!(fs::read_dir(sandbox.path("temporary")).unwrap().count(), 1, "{tool}: its folder is gone");
    }
}

#[test]
fn golden_outputs_are_updated_and_then_match() {
    let mut vectors = vectors();
    vectors["vectors"]["safe_run"][0]["golden"] = json!("run-1.json");
    let sandbox = sandbox().with_file("vectors.json", &vectors.to_string());
    let missing = conformance(&sandbox, &[]);
    assert!(
        missing.code == Some(1) && missing.stdout.contains("failed to read the golden output `run-1.json`"),
        "{missing}"
    );
    assert_eq!(conformance(&sandbox, &["--write-expected"]).code, Some(0));
    assert_eq!(conformance(&sandbox, &[]).code, Some(0));
    let golden = sandbox.json("expected/run-1.json").to_string();
    let sandbox = sandbox.with_file("expected/run-1.json", &golden.replace("OUT", "OTHER"));
    let differs = conformance(&sandbox, &[]);
    assert!(differs.code == Some(1) && differs.stdout.contains("differs from `run-1.json`"), "{differs}");
}

#[test]
fn an_unusable_vector_is_an_error_with_its_position() {
    let mut unknown = vectors();
    unknown["vectors"]["safe_run"][0]["expected"]["stdout_is_pretty"] = json!(true);
    let mut signal = vectors();
    signal["vectors"]["safe_run"][0]["command"]["interrupt_signal"] = json!("WINCH");
    let mut system = vectors();
    system["vectors"]["safe_check"][0]["command"]["platform_filter"] = json!("amiga");
    let nothing = json!({"m0_contract_version": "v0.1.0", "vectors": {"preflight_automerge_ruleset": []}});
    for (vectors, code, told) in [
        (unknown.to_string(), 2, "invalid vector `run-1` in `vectors.json`"),
        (signal.to_string(), 2, "unknown variant `WINCH`"),
        (system.to_string(), 2, "unknown variant `amiga`"),
        (nothing.to_string(), 2, "`vectors.json`: no vector is in scope"),
        ("[]".to_owned(), 2, "`vectors.json` is not a file of vectors"),
    ] {
        let finished = conformance(&sandbox().with_file("vectors.json", &vectors), &[]);
        assert_eq!(finished.code, Some(code), "{finished}");
        assert!(finished.stderr.contains(told) && finished.stdout.is_empty(), "{finished}");
    }
    let sandbox = sandbox();
    for (arguments, code, told) in [
        (&["--tool", "absent", "--vectors", "vectors.json"][..], 3, "cannot find the program `absent`"),
        (&["--tool", ".", "--vectors", "vectors.json"], 3, "cannot find the program `.`: not a file"),
        (&["--tool", "wrapper", "--vectors", "absent.json"], 3, "failed to read `absent.json`"),
        (&["--tool", "wrapper", "--vectors", "vectors.json", "--env", "NAME"], 2, "expected NAME=VALUE"),
        (&["--vectors", "vectors.json", "--wrapper", "wrapper"], 2, "--tool"),
    ] {
        let finished = sandbox.run(["conformance"].iter().chain(arguments));
        assert_eq!(finished.code, Some(code), "{finished}");
        assert!(finished.stderr.contains(told), "{finished}");
    }
}
