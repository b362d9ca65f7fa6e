//! Commands of real repositories: detected, run and read.

use std::process::Command;

use camino::Utf8Path;
use counterproof_store::write::write_new;
use counterproof_workflow::suite::{
    Commands, Overrides, Problem, Target, TargetVerdict, TestReport, Verdict, detect, new_failures, target_verdict,
    target_verdict_after, tests_added,
};
use tempfile::TempDir;

use crate::kit::shell;

const CALC: &str = "def add(a, b):\n    return a - b\n";
const TESTS: &str = "import unittest\nfrom calc import add\n\n\nclass TestAdd(unittest.TestCase):\n    def test_add(self):\n        \
                     self.assertEqual(add(1, 2), 3)\n\n    def test_zero(self):\n        self.assertEqual(add(0, 0), 0)\n";

fn put(folder: &TempDir, name: &str, text: &str) {
    let path = Utf8Path::from_path(folder.path()).unwrap().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = std::fs::remove_file(&path);
    write_new(&path, text.as_bytes()).unwrap();
}

fn run(folder: &TempDir, line: &str) -> TestReport {
    shell().run(line, Utf8Path::from_path(folder.path()).unwrap()).unwrap().report
}

fn target_line(folder: &TempDir, commands: &Commands, target: &str) -> (Target, String) {
    let root = Utf8Path::from_path(folder.path()).unwrap();
    let target = Target::parse(target, root).unwrap();
    let line = commands.test_line(&target, root).unwrap();
    (target, line)
}

fn has_python() -> bool {
    Command::new("python3").arg("-c").arg("import unittest").status().is_ok_and(|status| status.success())
}

#[test]
fn a_repository_of_unittest_is_judged_before_and_after_a_fix() {
    if !has_python() {
        return;
    }
    for tests in ["test_calc.py", "tests/test_calc.py"] {
        let folder = tempfile::tempdir().unwrap();
        put(&folder, "calc.py", CALC);
        put(&folder, tests, TESTS);
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let commands = detect(root, &|_| false);
        let id = format!("{tests}::test_add");
        let (target, line) = target_line(&folder, &commands, &id);
        assert_eq!(target.files(root), [tests]);
        assert!(line.ends_with("python3 -m unittest -v test_calc.TestAdd.test_add"), "{line}");
        let red = run(&folder, &line);
        assert_eq!(target_verdict(&red, &target), TargetVerdict::Failed);
        let suite = commands.suite.clone().unwrap();
        let before = run(&folder, &suite);
        assert_eq!((before.ran, before.tests["test_calc.TestAdd.test_add"]), (Some(2), Verdict::Failed));
        put(&folder, "calc.py", &CALC.replace('-', "+"));
        let green = run(&folder, &line);
        assert_eq!(target_verdict_after(&red, &green, &target), TargetVerdict::Passed);
        put(&folder, tests, &format!("{TESTS}\n    def test_new(self):\n        pass\n"));
        let after = run(&folder, &suite);
        assert_eq!((new_failures(&before, &after), tests_added(&before, &after)), (vec![], 1));
        put(&folder, tests, &TESTS.replace("    def test_zero", "    @unittest.skip('x')\n    def test_zero"));
        assert_eq!(new_failures(&before, &run(&folder, &suite)), ["test_calc.TestAdd.test_zero"]);
        for (missing, verdict) in
            [("test_nope.TestAdd.test_a", TargetVerdict::NotFound), ("test_calc.TestAdd.nope", TargetVerdict::NotFound)]
        {
            let (target, line) = target_line(&folder, &commands, missing);
            assert_eq!(target_verdict(&run(&folder, &line), &target), verdict, "{missing}");
        }
        let (file, line) = target_line(&folder, &commands, tests);
        assert_eq!(target_verdict(&run(&folder, &line), &file), TargetVerdict::Passed);
        // Nothing of a run is left in the workspace.
        assert!(!root.join("__pycache__").exists() && !root.join("tests/__pycache__").exists());
    }
}

#[test]
fn a_test_in_a_broken_module_fails_and_does_not_count_as_missing() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    put(&folder, "test_calc.py", TESTS);
    let commands = detect(Utf8Path::from_path(folder.path()).unwrap(), &|_| false);
    let (target, line) = target_line(&folder, &commands, "test_calc.TestAdd.test_add");
    let report = run(&folder, &line);
    assert!(matches!(report.problem, Some(Problem::Broken(_))));
    assert_eq!(target_verdict(&report, &target), TargetVerdict::Failed);
}

#[test]
fn many_megabytes_of_output_before_the_results_are_read_in_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let line = "yes \"$(printf '%01000d' 7)\" | head -c 16000000; echo; echo 1..1; echo 'ok 1 - last'";
    let report = run(&folder, line);
    assert_eq!(report.tests["last"], Verdict::Passed);
    assert!(report.output.len() < 40_000 && report.output.ends_with("ok 1 - last\n"));
}

#[test]
fn the_environment_of_commands_has_no_secrets_and_quotes_hold() {
    let folder = tempfile::tempdir().unwrap();
    let commands = Commands::default()
        .with(Overrides { test: Some("printf '<%s>\\n' {test}".to_owned()), ..Overrides::default() });
    let (_, line) = target_line(&folder, &commands, "a'; env | grep -i token; echo '$(id)");
    assert!(run(&folder, &line).output.starts_with("<a'; env | grep -i token; echo '$(id)>\n"));
    let mut shell = shell();
    shell.environment.insert("SHOWN".into(), Some("yes".into()));
    let root = Utf8Path::from_path(folder.path()).unwrap();
    let report = shell.run("env", root).unwrap().report;
    assert!(report.output.contains("SHOWN=yes") && report.output.contains("PYTHONDONTWRITEBYTECODE=1"));
}

#[test]
fn an_unknown_runner_is_judged_by_its_exit_code_and_its_lines() {
    let folder = tempfile::tempdir().unwrap();
    let before = run(&folder, "echo 'check one: FAILED in 0.12s'; exit 1");
    let same = run(&folder, "echo 'check one: FAILED in 0.34s'; exit 1");
    assert_eq!(new_failures(&before, &same), Vec::<String>::new());
    let worse = run(&folder, "echo 'check one: FAILED in 0.34s'; echo 'check two: FAILED'; exit 1");
    assert_eq!(new_failures(&before, &worse), ["check two: FAILED"]);
    let green = run(&folder, "true");
    assert_eq!(new_failures(&green, &run(&folder, "exit 3")), ["the suite ended with exit code 3"]);
    assert_eq!(target_verdict(&green, &Target::test("check two")), TargetVerdict::Passed);
    assert_eq!(target_verdict(&worse, &Target::test("check two")), TargetVerdict::Failed);
    assert_eq!(target_verdict(&run(&folder, "kill -9 $$"), &Target::test("x")), TargetVerdict::Failed);
}

#[test]
fn the_first_failed_test_of_a_ci_log_is_the_target() {
    let folder = tempfile::tempdir().unwrap();
    let log = "2026-01-02T03:04:05.678Z running 3 tests\n2026-01-02T03:04:05.678Z test tests::z ... FAILED\n2026-01-02T03:04:05.678Z \
               test tests::b ... FAILED\n2026-01-02T03:04:05.678Z test tests::c ... ok\n";
    put(&folder, "a log.txt", log);
    let root = Utf8Path::from_path(folder.path()).unwrap();
    let url = format!("file://{root}/a%20log.txt");
    let target = Target::parse(&url, root).unwrap();
    assert_eq!(target, Target::Test { id: "tests::z".to_owned(), log: Some(url) });
    put(&folder, "green.txt", "ok\n");
    for bad in [
        format!("file://{root}/green.txt"),
        format!("file://{root}/none.txt"),
        "file://host/x".to_owned(),
        "https://x/1".to_owned(),
    ] {
        assert!(Target::parse(&bad, root).is_err(), "{bad}");
    }
}

#[test]
fn a_crate_is_judged_before_and_after_a_fix() {
    let folder = tempfile::tempdir().unwrap();
    let root = Utf8Path::from_path(folder.path()).unwrap();
    let source = "pub fn add(a: u8, b: u8) -> u8 { a - b }\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() { assert_eq!(super::add(2, 1), \
                  3); }\n\n    #[test]\n    fn zero() { assert_eq!(super::add(0, 0), 0); }\n}\n";
    put(&folder, "Cargo.toml", "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n");
    put(&folder, "src/lib.rs", source);
    let commands = detect(root, &|_| false);
    let mut shell = shell();
    shell.environment.insert("CARGO_TARGET_DIR".into(), Some(root.join("target").into_string().into()));
    let run = |line: &str| shell.run(line, root).unwrap().report;
    let (target, line) = target_line(&folder, &commands, "src/lib.rs::tests::adds");
    let red = run(&line);
    assert_eq!(target_verdict(&red, &target), TargetVerdict::Failed, "{}", red.output);
    let suite = commands.suite.clone().unwrap();
    let before = run(&suite);
    put(&folder, "src/lib.rs", &source.replace("a - b", "a + b + nope"));
    assert_eq!(new_failures(&before, &run(&suite)), ["tests::zero"]);
    put(&folder, "src/lib.rs", &source.replace("a - b", "a + b"));
    assert_eq!(target_verdict_after(&red, &run(&line), &target), TargetVerdict::Passed);
    assert_eq!(new_failures(&before, &run(&suite)), Vec::<String>::new());
    let (missing, line) = target_line(&folder, &commands, "tests::nope");
    assert_eq!(target_verdict(&run(&line), &missing), TargetVerdict::NotFound);
}
