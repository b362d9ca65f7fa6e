//! `ctrf.json`: test results in the Common Test Report Format (<https://ctrf.io>), which has fields for what JUnit has no room for.

use counterproof_artifact::evaluation::Evaluation;
use serde_json::{Map, Value, json};

use super::test_results::{Outcome, TestResult, TestSuite};

/// The version of the format. Its published schema has no later one.
const SPEC_VERSION: &str = "0.0.0";

/// What a report states about the tested run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tested {
    /// The start of the run, in milliseconds since 1970.
    pub start_ms: u64,
    pub run_id: Option<String>,
    pub commit: Option<String>,
}

impl Tested {
    /// The new run of a comparison.
    pub(crate) fn of_new(evaluation: &Evaluation) -> Self {
        let start_ms = evaluation.new.started().and_then(|nanoseconds| u64::try_from(nanoseconds / 1_000_000).ok());
        Self {
            start_ms: start_ms.unwrap_or_default(),
            run_id: Some(evaluation.new.run_id.to_string()),
            commit: evaluation.new.repo_commit.clone(),
        }
    }
}

/// Returns one JSON document. The end of the run is its start plus the durations of all tests.
pub fn render(suites: &[TestSuite], tested: &Tested) -> String {
    let all = || suites.iter().flat_map(|suite| &suite.tests);
    let count = |status: &str| all().filter(|test| self::status(&test.outcome) == status).count();
    let duration = all().map(|test| test.duration_ms).fold(0, u64::saturating_add);
    let summary = json!({
        "tests": all().count(), "passed": count(PASSED), "failed": count(FAILED), "skipped": count(SKIPPED),
        "pending": 0, "other": 0, "suites": suites.len(),
        "start": tested.start_ms, "stop": tested.start_ms.saturating_add(duration), "duration": duration,
    });
    let tests: Vec<_> = suites.iter().flat_map(|suite| suite.tests.iter().map(|test| result(suite, test))).collect();
    let mut results = json!({
        "tool": {"name": "counterproof", "version": env!("CARGO_PKG_VERSION")},
        "summary": summary,
        "tests": tests,
    });
    let mut environment = Map::new();
    environment.extend(tested.commit.clone().map(|commit| ("commit".to_owned(), Value::from(commit))));
    environment.insert("healthy".to_owned(), Value::from(count(FAILED) == 0));
    results["environment"] = Value::Object(environment);
    let mut report = json!({"reportFormat": "CTRF", "specVersion": SPEC_VERSION, "generatedBy": "counterproof"});
    if let Some(id) = &tested.run_id {
        report["runId"] = json!(id);
    }
    report["results"] = results;
    report.to_string() + "\n"
}

const PASSED: &str = "passed";
const FAILED: &str = "failed";
const SKIPPED: &str = "skipped";

const fn status(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => PASSED,
        Outcome::Skipped { .. } => SKIPPED,
        Outcome::Failed { .. } | Outcome::Error { .. } => FAILED,
    }
}

fn result(suite: &TestSuite, test: &TestResult) -> Value {
    let mut result = json!({
        "testId": format!("{}/{}", suite.name, test.name),
        "name": test.name,
        "status": status(&test.outcome),
        "duration": test.duration_ms,
        "suite": [suite.name],
    });
    let mut labels: Map<String, Value> =
        test.properties.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
    match &test.outcome {
        Outcome::Passed => {}
        Outcome::Skipped { message } => result["message"] = json!(message),
        Outcome::Failed { code, message } | Outcome::Error { code, message } => {
            result["message"] = json!(message);
            labels.insert("code".to_owned(), json!(code));
        }
    }
    if matches!(test.outcome, Outcome::Error { .. }) {
        result["rawStatus"] = json!("error");
    }
    if !test.details.is_empty() {
        result["trace"] = json!(test.details);
    }
    if !labels.is_empty() {
        result["labels"] = Value::Object(labels);
    }
    result
}
