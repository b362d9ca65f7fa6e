//! Golden outputs.

use counterproof_conformance::{ConformanceRun, GoldenMode};

use crate::kit::{Scripts, fixture, problems, tool, vectors};

#[test]
fn a_written_golden_output_equals_the_fixture_and_is_accepted() {
    let folder = Scripts::new();
    let golden = folder.path("golden");
    let (vectors, tools) = (vectors().only(&["run-failure"]), [tool()]);
    let mut run = ConformanceRun::new(&vectors, &golden, &tools);
    let missing = problems(&run.run().unwrap());
    assert!(missing.len() == 1 && missing[0].contains("failed to read the golden output"), "{missing:?}");
    run.golden_mode = GoldenMode::Write;
    assert_eq!(problems(&run.run().unwrap()), Vec::<String>::new());
    let read = |path| std::fs::read_to_string(path).unwrap();
    assert_eq!(read(golden.join("run_failure.json")), read(fixture("expected/run_failure.json")));
    run.golden_mode = GoldenMode::Compare;
    assert_eq!(problems(&run.run().unwrap()), Vec::<String>::new());
}
