//! Runs all vectors with the tool and the wrappers, and checks that broken wrappers are detected.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_conformance::{ConformanceRun, Subject, SubjectKind, VectorResult, Vectors};
use serde_json::json;

use crate::kit::Sandbox;

fn conformance() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance").canonicalize_utf8().unwrap()
}

fn vectors() -> Vectors {
    Vectors::read(&conformance().join("vectors.json")).unwrap()
}

fn tool() -> Subject {
    Subject::new(SubjectKind::Tool, Utf8Path::new(env!("CARGO_BIN_EXE_safe-run"))).unwrap()
}

/// Returns the wrappers whose language is installed, with its interpreter.
fn wrappers() -> Vec<(&'static str, &'static str)> {
    let all = [
        ("bash", "bash/safe-run.sh"),
        ("python3", "python3/safe_run.py"),
        ("perl", "perl/safe_run.pl"),
        ("pwsh", "powershell/safe-run.ps1"),
    ];
    let is_there = |language: &str| {
        let found = Command::new(language).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        found.is_ok_and(|status| status.success())
    };
    all.into_iter().filter(|(language, _)| is_there(language)).collect()
}

/// Returns every problem of these programs.
fn problems(vectors: &Vectors, subjects: &[Subject]) -> Vec<String> {
    let expected = conformance().join("expected");
    let of_result = |result: VectorResult| {
        let Subject { path, .. } = &subjects[result.subject];
        result.problems().iter().map(|problem| format!("{path} {}: {problem}", result.id)).collect::<Vec<_>>()
    };
    ConformanceRun::new(vectors, &expected, subjects).run().unwrap().into_iter().flat_map(of_result).collect()
}

#[test]
fn the_tool_and_every_wrapper_pass_every_vector() {
    let wrappers = wrappers();
    assert!(wrappers.iter().any(|(language, _)| *language == "bash"), "{wrappers:?}");
    let paths = wrappers.iter().map(|(_, path)| conformance().join("wrappers").join(path));
    let wrappers = paths.map(|path| Subject::new(SubjectKind::Wrapper, &path).unwrap());
    let subjects: Vec<Subject> = std::iter::once(tool()).chain(wrappers).collect();
    assert_eq!(problems(&vectors(), &subjects), Vec::<String>::new());
}

/// Returns the problems of a wrapper that runs a script after the tool. The script sets `$code` and can use the path in `$log`.
fn broken(after: &str) -> Vec<String> {
    let sandbox = Sandbox::new();
    let script = format!(
        "#!/usr/bin/env bash\n# Contract: M0-v0.1.0\nset -o pipefail\n\"$SAFE_RUN_BIN\" \"$@\" {after}\nexit $code\n"
    );
    sandbox.put("wrapper", &script);
    fs::set_permissions(sandbox.path("wrapper"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = Utf8PathBuf::from_path_buf(sandbox.path("wrapper")).unwrap();
    let subjects = [tool(), Subject::new(SubjectKind::Wrapper, &path).unwrap()];
    problems(&vectors().only(&["safe-run-004"]), &subjects)
}

#[test]
fn a_wrapper_that_changes_nothing_passes() {
    assert_eq!(broken("; code=$?"), Vec::<String>::new());
}

#[test]
fn every_prohibited_drift_of_a_wrapper_is_detected() {
    let log = "; code=$?; log=$(echo .agent/FAIL-LOGS/*.log)";
    let cases = [
        ("; code=$(($? + 1))", "exit code: expected 7, found 8"),
        ("; code=0", "exit code: expected 7, found 0"),
        ("| tr O 0; code=$?", "data content of stdout differs"),
        ("; code=$?; echo noise", "data content of stdout differs"),
        ("; code=$?; echo noise >&2", "data content of stderr differs"),
        ("| sed 's/$/\\r/'; code=$?", "data content of stdout differs"),
        ("; code=$?; rm -r .agent", "is missing"),
        ("; code=$?; : > more", "artifact `more` is unexpected"),
        (
            "; code=$?; \"$SAFE_RUN_BIN\" \"$@\" > /dev/null 2>&1",
            "artifact `.agent/FAIL-LOGS/safe-run-<time>-<random>.log (2)` is unexpected",
        ),
        ("; code=$?; mkfifo pipe", "artifact `pipe` is unexpected"),
        (&format!("{log}; mv $log ${{log%.log}}.txt"), "is missing"),
        (&format!("{log}; mv $log kept; ln -s ../../kept $log"), "expected Contents("),
        (&format!("{log}; sed -i 's/SEQ=3/SEQ=4/' $log"), "sequence number: expected 3, found 4"),
        (&format!("{log}; sed -i '/SEQ=3/d' $log"), "events: expected 4, found 3"),
        (
            &format!("{log}; sed -i 's/STDERR. ERR/STDOUT] ERR/' $log"),
            "event type of event 3: expected STDERR, found STDOUT",
        ),
        (&format!("{log}; sed -i 's/OUT_TEXT$/OUT_TEXT /' $log"), "data content of event 2 differs"),
        (&format!("{log}; sed -i '1,/OUT_TEXT/s/OUT_TEXT/other/' $log"), "data content differs"),
        (&format!("{log}; sed -i 's/$/\\r/' $log"), "the ledger is missing"),
        (&format!("{log}; sed -i '/END EVENTS/d' $log"), "malformed: the ledger has no end"),
        (&format!("{log}; sed -i 's/^.SEQ=2./2: /' $log"), "malformed: "),
        (&format!("{log}; : > $log"), "the ledger is missing"),
    ];
    for (after, expected) in cases {
        let problems = broken(after);
        let is_detected = |problem: &String| problem.contains("differs from the tool: ") && problem.contains(expected);
        assert!(problems.iter().any(is_detected), "{after}: {problems:#?}");
    }
}

#[test]
fn a_wrapper_that_changes_a_byte_outside_utf8_is_detected() {
    let sandbox = Sandbox::new();
    let command = json!({"args": ["sh", "-c", r"printf '\377\n' >&2; exit 1"]});
    let vector = json!({"id": "bytes", "name": "No text", "command": command, "expected": {"exit_code": 1}});
    let document = json!({"m0_contract_version": "v0.1.0", "vectors": {"safe_run": [vector]}});
    sandbox.put("vectors.json", &document.to_string());
    let problems_of = |script: &str| {
        sandbox.put("wrapper", &format!("#!/bin/bash\n# Contract: M0-v0.1.0\n{script}\n"));
        fs::set_permissions(sandbox.path("wrapper"), fs::Permissions::from_mode(0o755)).unwrap();
        let path = |name| Utf8PathBuf::from_path_buf(sandbox.path(name)).unwrap();
        let vectors = Vectors::read(&path("vectors.json")).unwrap();
        problems(&vectors, &[tool(), Subject::new(SubjectKind::Wrapper, &path("wrapper")).unwrap()])
    };
    assert_eq!(problems_of(r#"exec "$SAFE_RUN_BIN" "$@""#), Vec::<String>::new());
    let problems =
        problems_of(r#""$SAFE_RUN_BIN" "$@" 2> >(LC_ALL=C sed 's/\xff/\xfe/' >&2); code=$?; wait $!; exit $code"#);
    assert!(problems.len() == 1 && problems[0].contains("data content of stderr differs"), "{problems:#?}");
}

#[test]
fn a_wrapper_that_does_not_declare_its_contract_is_detected() {
    let sandbox = Sandbox::new();
    sandbox.put("wrapper", "#!/bin/sh\nexec \"$SAFE_RUN_BIN\" \"$@\"\n");
    fs::set_permissions(sandbox.path("wrapper"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = Utf8PathBuf::from_path_buf(sandbox.path("wrapper")).unwrap();
    let subjects = [tool(), Subject::new(SubjectKind::Wrapper, &path).unwrap()];
    let problems = problems(&vectors().only(&["safe-run-001"]), &subjects);
    assert_eq!(
        problems,
        [format!("{} wrapper-contract: the header does not declare the contract M0-v0.1.0", subjects[1].path)]
    );
}

#[test]
fn a_program_that_is_not_safe_run_is_detected() {
    let tools = [tool(), Subject::new(SubjectKind::Tool, Utf8Path::new("/usr/bin/env")).unwrap()];
    let problems = problems(&vectors().only(&["safe-run-001", "safe-run-002"]), &tools);
    assert!(problems.len() >= 4 && problems.iter().all(|problem| problem.starts_with("/usr/bin/")), "{problems:#?}");
}

/// Returns the absolute path of an interpreter, so that it is found with any `PATH`.
fn interpreter(language: &str) -> String {
    let script = match language {
        "python3" => "python3 -c 'import sys; print(sys.executable)'".to_owned(),
        _ => format!("command -v {language}"),
    };
    let found = Command::new("sh").args(["-c", &script]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().trim().to_owned()
}

#[test]
fn wrappers_search_for_the_tool_in_the_documented_order() {
    for (language, path) in wrappers() {
        let sandbox = Sandbox::new();
        let root = sandbox.path("").canonicalize().unwrap();
        let name = Utf8Path::new(path).file_name().unwrap();
        sandbox.folder(".git");
        sandbox.folder("deep/er");
        fs::read_to_string(conformance().join("wrappers").join(path))
            .map(|text| sandbox.put(&format!("deep/er/{name}"), &text))
            .unwrap();
        let architecture = std::env::consts::ARCH;
        let locations = [
            "named".to_owned(),
            "rust/target/release/safe-run".to_owned(),
            "target/release/safe-run".to_owned(),
            format!("dist/linux/{architecture}/safe-run"),
            "path/safe-run".to_owned(),
        ];
        for path in &locations {
            sandbox.folder(Utf8Path::new(path).parent().unwrap().as_str());
            sandbox.put(path, &format!("#!/bin/sh\necho \"{path}|$1|$2\"\nexit 33\n"));
            fs::set_permissions(sandbox.path(path), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut command = Command::new(interpreter(language));
        if language == "pwsh" {
            command.args(["-NoProfile", "-File"]);
        }
        command.arg(root.join("deep/er").join(name)).args(["a b", "--x"]).current_dir("/");
        command.env("PATH", root.join("path")).env("SAFE_RUN_BIN", root.join("named"));
        for path in &locations {
            let output = command.output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{path}|a b|--x\n"), "{language}: {stderr}");
            assert_eq!(output.status.code(), Some(33), "{language}");
            fs::remove_file(sandbox.path(path)).unwrap();
            command.env_remove("SAFE_RUN_BIN");
        }
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(127), "{language}: {stderr}");
        assert!(stderr.starts_with("ERROR: Rust canonical tool not found.\n"), "{language}: {stderr}");
        let listed = ["SAFE_RUN_BIN"].into_iter().chain(locations[1..4].iter().map(String::as_str)).chain(["PATH"]);
        let found: Vec<_> = listed.map(|sandbox| stderr.find(sandbox)).collect();
        assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{language}: {stderr}");
        command.env("SAFE_RUN_BIN", root.join("gone"));
        assert_eq!(
            command.output().unwrap().status.code(),
            Some(127),
            "{language}: SAFE_RUN_BIN is used without a check"
        );
        sandbox.put("gone", "no program");
        assert_eq!(command.output().unwrap().status.code(), Some(126), "{language}");
    }
}
