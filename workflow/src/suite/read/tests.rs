//! Recorded outputs of runners, made with small projects of ours. The files are in `recorded/`.

use super::*;

/// Passed, failed and skipped ids, each joined by a bar.
fn lists(report: &TestReport) -> [String; 3] {
    [Verdict::Passed, Verdict::Failed, Verdict::Skipped].map(|wanted| {
        let ids = report.tests.iter().filter(|(_, verdict)| **verdict == wanted).map(|(id, _)| id.as_str());
        ids.collect::<Vec<_>>().join(" | ")
    })
}

macro_rules! recorded {
    ($name:literal) => {
        read(Some(1), include_str!(concat!("recorded/", $name, ".txt")), "")
    };
}

const CARGO: [&str; 3] = [
    "good | other | src/lib.rs - add (line 2) | src/lib.rs - add (line 5) - compile fail | tests::good | tests::panics",
    "tests::bad",
    "tests::slow",
];

#[test]
fn cargo_test_is_read_in_all_of_its_forms() {
    for report in [recorded!("cargo"), recorded!("cargo-interleaved")] {
        assert_eq!(lists(&report), CARGO);
        assert_eq!((report.ran, report.skipped), (Some(8), 1));
        assert_eq!(report.first_failed.as_deref(), Some("tests::bad"));
    }
    let quiet = recorded!("cargo-quiet");
    assert_eq!(lists(&quiet), ["", "tests::bad", ""]);
    assert_eq!(quiet.ran, Some(8));
    let none = recorded!("cargo-no-name");
    assert_eq!((none.ran, none.tests.len(), none.formats), (Some(0), 0, vec![Format::Libtest]));
    let broken = recorded!("cargo-compile-error");
    assert!(matches!(&broken.problem, Some(Problem::Broken(line)) if line.starts_with("error: could not compile")));
    let nextest = recorded!("nextest");
    assert_eq!(lists(&nextest), ["ct tests::good | ct::it good | ct::it other", "ct tests::bad", ""]);
    assert_eq!(nextest.ran, Some(4));
}

#[test]
fn tests_of_one_name_in_two_binaries_are_two_tests() {
    let binary = |verdict: &str, passed| {
        format!("\nrunning 1 test\ntest tests::works ... {verdict}\n\ntest result: x. {passed} passed\n")
            .replace("x. 1 passed", "ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out")
            .replace("x. 0 passed", "FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out")
    };
    let report = read(Some(101), &(binary("ok", 1) + &binary("FAILED", 0)), "");
    assert_eq!(lists(&report), ["tests::works", "tests::works (2)", ""]);
}

const UNITTEST_FAILED: &str = "test_x.S.setUpClass | test_x.T.test_bad | test_x.T.test_err | test_x.T.test_sub | test_x.T.test_xpass | \
                               unittest.loader._FailedTest.test_imp";

#[test]
fn unittest_is_read_with_and_without_the_list_of_tests() {
    let verbose = recorded!("unittest-verbose");
    assert_eq!(
        lists(&verbose),
        [
            "test_x.T.test_doc | test_x.T.test_ok | test_x.T.test_print",
            UNITTEST_FAILED,
            "test_x.T.test_skip | test_x.T.test_xf"
        ]
    );
    let short = recorded!("unittest");
    assert_eq!(lists(&short), ["", UNITTEST_FAILED, ""]);
    for report in [verbose, short] {
        assert_eq!((report.ran, report.skipped), (Some(10), 2));
        assert!(matches!(&report.problem, Some(Problem::Broken(line)) if line.contains("No module named 'nope'")));
    }
    for missing in [recorded!("unittest-no-module"), recorded!("unittest-no-name")] {
        assert!(matches!(missing.problem, Some(Problem::NotFound(_))), "{:?}", missing.problem);
        assert_eq!(missing.tests.len(), 0);
    }
    let broken = recorded!("unittest-import-error");
    assert!(matches!(broken.problem, Some(Problem::Broken(_))), "{:?}", broken.problem);
    let old = read(Some(0), "test_a (m.C) ... ok\n\n----\nRan 1 test in 0.000s\n\nOK\n", "");
    assert_eq!(lists(&old), ["m.C.test_a", "", ""]);
    let none = read(Some(0), "", "\n----\nRan 0 tests in 0.000s\n\nOK\n");
    assert_eq!(none.ran, Some(0));
}

const PYTEST_FAILED: &str =
    "test_y.py::test_bad | test_y.py::test_err | test_y.py::test_par[x y] | test_y.py::test_td | test_y.py::test_xps";

#[test]
fn pytest_is_read_in_all_of_its_forms() {
    let passed = "test_y.py::TestC::test_m | test_y.py::test_ok | test_y.py::test_par[2] | test_y.py::test_xp";
    for report in [recorded!("pytest-verbose-colour"), recorded!("pytest-interleaved")] {
        assert_eq!(lists(&report), [passed, PYTEST_FAILED, "test_y.py::test_skip | test_y.py::test_xf"]);
    }
    assert_eq!(lists(&recorded!("pytest-all")), [passed, PYTEST_FAILED, "test_y.py::test_xf"]);
    for report in [recorded!("pytest"), recorded!("pytest-quiet")] {
        assert_eq!(lists(&report), ["", PYTEST_FAILED, ""]);
        assert_eq!((report.ran, report.skipped), (Some(10), 2));
    }
    let missing = recorded!("pytest-no-name");
    assert!(matches!(missing.problem, Some(Problem::NotFound(_))));
    assert_eq!(missing.ran, Some(0));
    for broken in [recorded!("pytest-collection-error"), recorded!("pytest-broken-target")] {
        assert!(matches!(broken.problem, Some(Problem::Broken(_))));
        assert_eq!(lists(&broken)[1], "test_z.py");
    }
    let workers = read(Some(1), "[gw0] [ 50%] PASSED a.py::test_a \n[gw1] [100%] FAILED a.py::test_b \n", "");
    assert_eq!(lists(&workers), ["a.py::test_a", "a.py::test_b", ""]);
}

#[test]
fn runners_of_javascript_are_read() {
    let jest = recorded!("jest-verbose");
    let passed = "j.test.js › math › adds | j.test.js › top | k.test.js › solo";
    let skipped = "j.test.js › math › later | j.test.js › math › todo it";
    assert_eq!(lists(&jest), [passed, "j.test.js › math › bad sum | z.test.js", skipped]);
    assert_eq!((jest.ran, jest.skipped), (Some(6), 2));
    assert!(matches!(jest.problem, Some(Problem::Broken(_))));
    assert_eq!(lists(&recorded!("jest")), ["", "j.test.js › math › bad sum | z.test.js", ""]);
    assert_eq!(lists(&recorded!("jest-colour"))[1], "j.test.js › math › bad sum");
    assert!(matches!(recorded!("jest-no-file").problem, Some(Problem::NotFound(_))));
    let none = recorded!("jest-no-name");
    assert_eq!((none.ran, none.skipped), (Some(5), 5));

    let vitest = recorded!("vitest-verbose");
    let passed = "vt/v.test.js > math > adds | vt/v.test.js > top | vt/w.test.js > solo";
    assert_eq!(lists(&vitest), [passed, "vt/v.test.js > math > bad sum | vt/x.test.js", "vt/v.test.js > math > later"]);
    assert_eq!((vitest.ran, vitest.skipped), (Some(5), 1));
    assert_eq!(lists(&recorded!("vitest")), ["", "vt/v.test.js > math > bad sum | vt/x.test.js", ""]);

    let mocha = recorded!("mocha");
    let failed = "math › bad sum | math › inner › \"before all\" hook for \"leaf\"";
    assert_eq!(lists(&mocha), ["math › adds | top", failed, "math › later"]);
    assert_eq!((mocha.ran, mocha.skipped), (Some(5), 1));
    assert_eq!(recorded!("mocha-dot").ran, Some(5));
    assert_eq!(recorded!("mocha-no-name").ran, Some(0));
}

#[test]
fn the_test_runner_of_node_is_read_in_both_forms() {
    for report in [recorded!("node-tap"), recorded!("node-spec")] {
        let passed = "adds | group › deep › leaf | group › inner ok";
        assert_eq!(lists(&report), [passed, "bad sum | group › inner bad", "skipped one | todo one"]);
        assert_eq!((report.ran, report.skipped), (Some(7), 2));
        assert_eq!(report.formats, [Format::NodeTest]);
    }
    let none = recorded!("node-no-name");
    assert_eq!((none.ran, none.skipped), (Some(7), 7));
}

#[test]
fn go_test_is_read_in_all_of_its_forms() {
    let verbose = recorded!("go-verbose");
    let passed = "example.com/m/sum.TestSum/one | example.com/m/text.TestSum";
    let failed = "example.com/m/sum.TestSum | example.com/m/sum.TestSum/two";
    assert_eq!(lists(&verbose), [passed, failed, "example.com/m/sum.TestLater"]);
    assert_eq!(lists(&recorded!("go")), ["", failed, ""]);
    assert_eq!(recorded!("go").ran, None);
    let json = recorded!("go-json");
    let skipped = "example.com/m/sum.TestLater";
    assert_eq!(lists(&json), ["example.com/m/sum.TestOther", "example.com/m/sum.TestSum", skipped]);
    assert!(matches!(recorded!("go-build-error").problem, Some(Problem::Broken(_))));
    assert_eq!(recorded!("go-no-name").ran, Some(0));
}

#[test]
fn tap_and_unknown_output_are_read() {
    let tap = recorded!("tap");
    assert_eq!(lists(&tap), ["reads the file", "writes the file", "later | some day"]);
    let make = recorded!("make");
    assert_eq!((make.formats.len(), make.tests.len(), make.ran), (0, 0, None));
    assert_eq!(make.failed_lines, ["two: FAILED in 0.013s", "make: *** [Makefile:3: test] Error 1"]);
}

#[test]
fn a_wrapper_may_run_several_runners() {
    let output = format!("{}{}", include_str!("recorded/cargo.txt"), include_str!("recorded/unittest-verbose.txt"));
    let report = read(Some(1), &output, "");
    assert_eq!(report.formats, [Format::Libtest, Format::Unittest]);
    assert_eq!((report.ran, report.tests.len()), (Some(18), 19));
}

#[test]
fn memory_and_time_are_bounded_for_any_output() {
    let mut reader = Reader::default();
    let long = vec![b'x'; 1 << 20];
    for number in 0..20_000 {
        reader.line(format!("test tests::{number} ... FAILED").as_bytes());
        reader.line(b"test a ... test b ... ");
        if number % 1000 == 0 {
            reader.line(&long);
        }
    }
    reader.line(b"\xff\xfe test result: ok.");
    let report = reader.finish(None, true);
    assert!(report.output.len() <= MAX_OUTPUT_BYTES + 100 && report.output.starts_with("[earlier output omitted]"));
    assert_eq!(report.failed_lines.len(), MAX_FAILED_LINES);
}

proptest::proptest! {
    #[test]
    fn no_lines_make_a_reader_fail(text in "(?s)(test |ok|not ok|FAIL|:: |\\(|\\)| \\.\\.\\. |✓ |▶ |● |\\[|\\]|1\\.\\.2|---|\n| |[a-z0-9éü])*") {
        let report = read(Some(1), &text, &text);
        proptest::prop_assert!(report.tests.len() <= text.lines().count() * 2);
    }
}
