//! Results of tools and wrappers.

use counterproof_conformance::{ConformanceRun, RunError, Subject, SubjectKind, VectorStatus};

use crate::kit::{Scripts, fixture, problems, run, tool, vectors};

#[test]
fn a_conforming_tool_and_wrapper_pass() {
    let wrapper = Subject::new(SubjectKind::Wrapper, &fixture("wrapper.sh")).unwrap();
    let vectors = vectors().only(&["run-success", "run-failure", "run-input"]);
    let results = run(&vectors, &[tool(), wrapper]);
    assert_eq!(problems(&results), Vec::<String>::new());
    let ids: Vec<_> = results.iter().map(|result| (result.subject, &*result.id)).collect();
    let expected = [
        (0, "run-success"),
        (0, "run-failure"),
        (0, "run-input"),
        (1, "wrapper-contract"),
        (1, "run-success"),
        (1, "run-failure"),
        (1, "run-input"),
    ];
    assert_eq!(ids, expected);
}

#[test]
fn variants_and_archives_are_checked() {
    let results = run(&vectors().only(&["archive-files"]), &[tool()]);
    assert_eq!(problems(&results), Vec::<String>::new());
    let scripts = Scripts::new();
    let broken = scripts.subject(SubjectKind::Tool, "rm \"$2/a\"; tar -czf \"$3\" -C \"$2\" .");
    let results = run(&vectors().only(&["archive-files"]), &[broken]);
    // A variant's command has no archive of its own name, so both the entry and the original file are reported.
    let problems = problems(&results);
    assert!(problems.contains(&"archive-files: `out.tar.gz` does not contain `a`".to_owned()), "{problems:?}");
    assert!(problems.contains(&"archive-files: `folder/a` was changed".to_owned()), "{problems:?}");
}

#[test]
fn a_vector_for_another_system_is_skipped() {
    let results = run(&vectors(), &[tool()]);
    let skipped: Vec<_> = results.iter().filter(|result| result.is_skipped()).collect();
    assert_eq!(skipped.len(), 1);
    assert_eq!(skipped[0].status, VectorStatus::Skipped("only on windows".to_owned()));
}

#[test]
fn a_program_for_which_every_vector_is_skipped_fails() {
    let results = run(&vectors().only(&["check-windows"]), &[tool()]);
    assert_eq!(problems(&results), ["vectors-here: all vectors are for other systems: nothing was checked"]);
}

#[test]
fn drift_of_a_wrapper_is_reported() {
    let scripts = Scripts::new();
    let wrapper = scripts.subject(SubjectKind::Wrapper, "\"$SAFE_RUN_BIN\" run \"$@\"; echo noise; exit 0");
    let results = run(&vectors().only(&["run-failure"]), &[tool(), wrapper]);
    let expected = [
        "run-failure: exit code: expected 7, found 0",
        "run-failure: differs from the tool: exit code: expected 7, found 0",
        "run-failure: differs from the tool: data content of stdout differs\n+ \"noise\\n\"",
    ];
    assert_eq!(problems(&results), expected);
}

#[test]
fn a_ledger_that_violates_the_rules_is_reported() {
    let scripts = Scripts::new();
    let tool = tool().path;
    let script = format!("shift; {tool} run \"$@\"; code=$?; sed -i 's/SEQ=3/SEQ=9/' logs/*.log; exit $code");
    let broken = scripts.subject(SubjectKind::Tool, &script);
    let results = run(&vectors().only(&["run-failure"]), &[broken]);
    let problems = problems(&results);
    assert!(problems.contains(&"run-failure: sequence number: expected 3, found 9".to_owned()), "{problems:?}");
    assert!(problems.iter().any(|problem| problem.contains("differs from `run_failure.json`")), "{problems:?}");
}

#[test]
fn a_run_without_tool_or_vectors_or_after_a_cancellation_is_an_error() {
    let (vectors, expected) = (vectors(), fixture("expected"));
    let tools = [tool()];
    assert!(matches!(ConformanceRun::new(&vectors, &expected, &[]).run(), Err(RunError::NoTool)));
    let none = vectors.clone().only(&[]);
    assert!(matches!(ConformanceRun::new(&none, &expected, &tools).run(), Err(RunError::NoVectors)));
    let run = ConformanceRun::new(&vectors, &expected, &tools);
    run.cancellation.cancel();
    assert!(matches!(run.run(), Err(RunError::Interrupted)));
}

#[test]
fn variables_of_the_run_reach_the_program() {
    let scripts = Scripts::new();
    let tool = scripts.subject(SubjectKind::Tool, "test \"$EXTRA\" = set && echo ok");
    let tools = [tool];
    let (vectors, expected) = (vectors().only(&["run-success"]), fixture("expected"));
    let mut run = ConformanceRun::new(&vectors, &expected, &tools);
    assert_eq!(problems(&run.run().unwrap()).len(), 2, "without the variable the script prints nothing and fails");
    run.environment.insert("EXTRA".to_owned(), "set".to_owned());
    assert_eq!(problems(&run.run().unwrap()), Vec::<String>::new());
}
