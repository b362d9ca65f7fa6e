//! The tool and the wrappers against all vectors, and broken wrappers, each of which has to be caught.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_conformance::{Kind, Request, Stop, Subject, Vectors, conform};
use serde_json::json;

use crate::kit::Sandbox;

fn conformance() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance").canonicalize_utf8().unwrap()
}

fn vectors() -> Vectors {
    Vectors::read(&conformance().join("vectors.json")).unwrap()
}

fn tool() -> Subject {
    Subject::new(Kind::Tool, Utf8Path::new(env!("CARGO_BIN_EXE_safe-run"))).unwrap()
}

/// The wrappers whose language is there, with the program that runs them.
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

/// Everything that is wrong with these programs.
fn wrong(vectors: &Vectors, subjects: &[Subject]) -> Vec<String> {
    let expected = conformance().join("expected");
    let environment = BTreeMap::new();
    let request =
        Request { vectors, expected: &expected, subjects, environment, writes_golden: false, stop: Stop::default() };
    let told = |verdict: counterproof_conformance::Verdict| {
        let Subject { path, .. } = &subjects[verdict.subject];
        verdict.wrong.into_iter().map(move |wrong| format!("{path} {}: {wrong}", verdict.id)).collect::<Vec<_>>()
    };
    conform(&request).unwrap().into_iter().flat_map(told).collect()
}

#[test]
fn the_tool_and_every_wrapper_pass_every_vector() {
    let wrappers = wrappers();
    assert!(wrappers.iter().any(|(language, _)| *language == "bash"), "{wrappers:?}");
    let paths = wrappers.iter().map(|(_, path)| conformance().join("wrappers").join(path));
    let wrappers = paths.map(|path| Subject::new(Kind::Wrapper, &path).unwrap());
    let subjects: Vec<Subject> = std::iter::once(tool()).chain(wrappers).collect();
    assert_eq!(wrong(&vectors(), &subjects), Vec::<String>::new());
}

/// What is wrong with a wrapper that does this after the tool, with the exit code in `$code` and the path of the log in `$log`.
fn broken(after: &str) -> Vec<String> {
    let sandbox = Sandbox::new();
    let script = format!(
        "#!/usr/bin/env bash\n# Contract: M0-v0.1.0\nset -o pipefail\n\"$SAFE_RUN_BIN\" \"$@\" {after}\nexit $code\n"
    );
    sandbox.put("wrapper", &script);
    fs::set_permissions(sandbox.path("wrapper"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = Utf8PathBuf::from_path_buf(sandbox.path("wrapper")).unwrap();
    let subjects = [tool(), Subject::new(Kind::Wrapper, &path).unwrap()];
    wrong(&vectors().only(&["safe-run-004"]), &subjects)
}

#[test]
fn a_wrapper_that_changes_nothing_passes() {
    assert_eq!(broken("; code=$?"), Vec::<String>::new());
}

#[test]
fn every_prohibited_drift_of_a_wrapper_is_caught() {
    let log = "; code=$?; log=$(echo .agent/FAIL-LOGS/*.log)";
    let cases = [
        ("; code=$(($? + 1))", "exit code: expected 7, found 8"),
        ("; code=0", "exit code: expected 7, found 0"),
        ("| tr O 0; code=$?", "data content of stdout differs"),
        ("; code=$?; echo noise", "data content of stdout differs"),
        ("; code=$?; echo noise >&2", "data content of stderr differs"),
        ("| sed 's/$/\\r/'; code=$?", "data content of stdout differs"),
        ("; code=$?; rm -r .agent", "is missing"),
        ("; code=$?; : > more", "artifact `more` should not be there"),
        (
            "; code=$?; \"$SAFE_RUN_BIN\" \"$@\" > /dev/null 2>&1",
            "artifact `.agent/FAIL-LOGS/safe-run-<time>-<random>.log (2)` should not be there",
        ),
        ("; code=$?; mkfifo pipe", "artifact `pipe` should not be there"),
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
        let wrong = broken(after);
        let caught = |wrong: &String| wrong.contains("differs from the tool: ") && wrong.contains(expected);
        assert!(wrong.iter().any(caught), "{after}: {wrong:#?}");
    }
}

#[test]
fn a_wrapper_that_changes_a_byte_that_is_no_text_is_caught() {
    let sandbox = Sandbox::new();
    let command = json!({"args": ["sh", "-c", r"printf '\377\n' >&2; exit 1"]});
    let vector = json!({"id": "bytes", "name": "No text", "command": command, "expected": {"exit_code": 1}});
    let document = json!({"m0_contract_version": "v0.1.0", "vectors": {"safe_run": [vector]}});
    sandbox.put("vectors.json", &document.to_string());
    let told = |script: &str| {
        sandbox.put("wrapper", &format!("#!/bin/bash\n# Contract: M0-v0.1.0\n{script}\n"));
        fs::set_permissions(sandbox.path("wrapper"), fs::Permissions::from_mode(0o755)).unwrap();
        let path = |name| Utf8PathBuf::from_path_buf(sandbox.path(name)).unwrap();
        let vectors = Vectors::read(&path("vectors.json")).unwrap();
        wrong(&vectors, &[tool(), Subject::new(Kind::Wrapper, &path("wrapper")).unwrap()])
    };
    assert_eq!(told(r#"exec "$SAFE_RUN_BIN" "$@""#), Vec::<String>::new());
    let wrong = told(r#""$SAFE_RUN_BIN" "$@" 2> >(LC_ALL=C sed 's/\xff/\xfe/' >&2); code=$?; wait $!; exit $code"#);
    assert!(wrong.len() == 1 && wrong[0].contains("data content of stderr differs"), "{wrong:#?}");
}

#[test]
fn a_wrapper_that_does_not_declare_its_contract_is_caught() {
    let sandbox = Sandbox::new();
    sandbox.put("wrapper", "#!/bin/sh\nexec \"$SAFE_RUN_BIN\" \"$@\"\n");
    fs::set_permissions(sandbox.path("wrapper"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = Utf8PathBuf::from_path_buf(sandbox.path("wrapper")).unwrap();
    let subjects = [tool(), Subject::new(Kind::Wrapper, &path).unwrap()];
    let wrong = wrong(&vectors().only(&["safe-run-001"]), &subjects);
    assert_eq!(
        wrong,
        [format!("{} wrapper-contract: the header does not declare the contract M0-v0.1.0", subjects[1].path)]
    );
}

#[test]
fn an_implementation_that_does_something_else_is_caught() {
    let tools = [tool(), Subject::new(Kind::Tool, Utf8Path::new("/usr/bin/env")).unwrap()];
    let wrong = wrong(&vectors().only(&["safe-run-001", "safe-run-002"]), &tools);
    assert!(wrong.len() >= 4 && wrong.iter().all(|wrong| wrong.starts_with("/usr/bin/")), "{wrong:#?}");
}

/// The program that runs a language, whatever the search path will be.
fn interpreter(language: &str) -> String {
    let script = match language {
        "python3" => "python3 -c 'import sys; print(sys.executable)'".to_owned(),
        _ => format!("command -v {language}"),
    };
    let found = Command::new("sh").args(["-c", &script]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().trim().to_owned()
}

#[test]
fn wrappers_look_for_the_tool_in_the_documented_order() {
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
        let told = ["SAFE_RUN_BIN"].into_iter().chain(locations[1..4].iter().map(String::as_str)).chain(["PATH"]);
        let found: Vec<_> = told.map(|sandbox| stderr.find(sandbox)).collect();
        assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{language}: {stderr}");
        command.env("SAFE_RUN_BIN", root.join("gone"));
        assert_eq!(command.output().unwrap().status.code(), Some(127), "{language}: what is named is taken as it is");
        sandbox.put("gone", "no program");
        assert_eq!(command.output().unwrap().status.code(), Some(126), "{language}");
    }
}
