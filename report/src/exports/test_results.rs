//! The evaluation as test results, for the exports of JUnit and CTRF. The results fail exactly if the gate fails. One suite has a
//! test for each gate rule, the other one for each case: a case that a violated rule counts is a failed test.

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, GateOutcome, GateRule, UsageCode, Verdict};
use counterproof_evaluator::{AddedCase, RankedCase, Standing, evaluation_text, messages, text, worst_first};

use crate::view::{display, verdict};

const LONGEST_MESSAGE: usize = 400;

const REASONS_LISTED: usize = 20;

/// The suite of the rules, and the prefix of its tests.
pub const GATE_SUITE: &str = "counterproof.gate";

/// The suite of the cases, and the prefix of its tests.
pub const CASES_SUITE: &str = "counterproof.cases";

/// Tests with a common name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestSuite {
    pub name: String,
    /// Facts about all of its tests: name and value.
    pub properties: Vec<(String, String)>,
    pub tests: Vec<TestResult>,
}

/// The result of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestResult {
    pub name: String,
    pub outcome: Outcome,
    /// Lines about the result; may be empty.
    pub details: String,
    /// Facts about the result: name and value.
    pub properties: Vec<(String, String)>,
    pub duration_ms: u64,
}

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Skipped {
        message: String,
    },
    Failed {
        /// The kind of the failure.
        code: String,
        message: String,
    },
    /// The test could not be run.
    Error {
        code: String,
        message: String,
    },
}

pub(crate) fn suites(evaluation: &Evaluation) -> [TestSuite; 2] {
    let properties = [
        ("baseline", evaluation.baseline.run_id.as_str()),
        ("new", evaluation.new.run_id.as_str()),
        ("gate", &evaluation_text::outcome(evaluation)),
        ("evaluator", &evaluation.evaluator_version),
    ];
    let limited = evaluation.gate.rules.iter().filter(|rule| rule.is_limited());
    let gate = TestSuite {
        name: GATE_SUITE.to_owned(),
        properties: properties.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        tests: not_judged_test(evaluation).into_iter().chain(limited.map(rule_test)).collect(),
    };
    let cases = TestSuite {
        name: CASES_SUITE.to_owned(),
        properties: Vec::new(),
        tests: worst_first(evaluation).iter().map(|ranked| case_test(evaluation, ranked)).collect(),
    };
    [gate, cases]
}

/// A skipped test for a gate that has nothing to judge by.
fn not_judged_test(evaluation: &Evaluation) -> Option<TestResult> {
    // Without this test, the results would look like a pass.
    (evaluation.gate.outcome == GateOutcome::NotJudged)
        .then(|| test("not judged", Outcome::Skipped { message: evaluation_text::outcome(evaluation) }, String::new()))
}

fn rule_test(rule: &GateRule) -> TestResult {
    let name = evaluation_text::rule(rule);
    let result = format!("{}, {}", rule.actual, evaluation_text::limit(rule));
    let failed = || Outcome::Failed { code: rule.code.clone(), message: format!("{name}: {result}") };
    let outcome = if rule.passed { Outcome::Passed } else { failed() };
    test(&name, outcome, result)
}

fn case_test(evaluation: &Evaluation, ranked: &RankedCase<'_>) -> TestResult {
    let case = ranked.case;
    let duration = case.usage.as_ref().and_then(|usage| usage.new.as_ref()?.get(UsageCode::Duration));
    TestResult {
        properties: properties(ranked),
        duration_ms: duration.map_or(0, whole_milliseconds),
        ..test(case.case_id.as_str(), outcome(evaluation, ranked), description(case))
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates, and NaN becomes 0")]
const fn whole_milliseconds(duration: f64) -> u64 {
    duration.round() as u64
}

fn test(name: &str, outcome: Outcome, details: String) -> TestResult {
    TestResult { name: name.to_owned(), outcome, details, properties: Vec::new(), duration_ms: 0 }
}

/// The result of a case. It fails only if a violated rule counts the case: a regression within the limits of the gate is skipped.
fn outcome(evaluation: &Evaluation, ranked: &RankedCase<'_>) -> Outcome {
    let (case, word) = (ranked.case, ranked.verdict());
    let line = text::one_line(&evaluation_text::case_line(evaluation, ranked), LONGEST_MESSAGE);
    let message = if line.is_empty() { word.clone() } else { format!("{word}: {line}") };
    if let Some(rule) = ranked.violated {
        let code = case.reasons.first().map_or(&rule.code, |reason| &reason.code);
        // An error is a test that could not be run, as a case without an answer.
        let code = code.clone();
        return match case.verdict {
            Verdict::Broken | Verdict::StillBroken => Outcome::Error { code, message },
            Verdict::Added if AddedCase::find(case) == Some(AddedCase::Unanswered) => Outcome::Error { code, message },
            _ => Outcome::Failed { code, message },
        };
    }
    match case.verdict {
        Verdict::Added if AddedCase::find(case) == Some(AddedCase::Good) => Outcome::Passed,
        Verdict::Missing | Verdict::Added => Outcome::Skipped { message: format!("{word}: nothing to compare with") },
        Verdict::NotComparable => Outcome::Skipped { message },
        // CI servers show skipped tests separately, and none fails a build for them.
        Verdict::Regressed | Verdict::Broken | Verdict::StillBroken | Verdict::Invalid => {
            let line = if line.is_empty() { line } else { format!("; {line}") };
            Outcome::Skipped { message: format!("{word}, within the limits of the gate{line}") }
        }
        _ if ranked.standing == Standing::Unconfirmed => Outcome::Skipped { message },
        // Noise passes: some tools read `flakyFailure` and others ignore it.
        _ => Outcome::Passed,
    }
}

fn properties(ranked: &RankedCase<'_>) -> Vec<(String, String)> {
    let case = ranked.case;
    // Most cases are unchanged, and tools rarely show properties.
    if case.verdict == Verdict::Unchanged && case.repeats.is_none() {
        return Vec::new();
    }
    let property = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut properties = vec![property("verdict", &ranked.verdict())];
    properties.extend(verdict::risk(case.risk_level).map(|risk| property("risk", risk)));
    let severity = case.severity.as_ref().map(|severity| display::score(severity.score));
    properties.extend(severity.map(|severity| property("severity", &severity)));
    if let Some(found) = &case.cause {
        let location = text::one_line(&found.place, LONGEST_MESSAGE);
        properties.push(property("cause", &format!("{}: {location}", found.code)));
    }
    for measure in case.repeats.iter().flat_map(|repeats| &repeats.measures) {
        let (old, new) = (&measure.baseline, &measure.new);
        let counts = format!("{} of {}, baseline {} of {}", new.passed, new.runs, old.passed, old.runs);
        let value = format!("{counts}: {}", measure.tier.as_str());
        properties.push(property(messages::measure(measure.code), &value));
    }
    properties
}

/// The title and all reasons, one per line; empty without a reason.
fn description(case: &CaseEvaluation) -> String {
    let reasons = case.reasons.iter().take(REASONS_LISTED);
    let mut lines: Vec<_> = reasons
        .map(|reason| format!("{}: {}", reason.code, text::one_line(&reason.message, LONGEST_MESSAGE)))
        .collect();
    if case.reasons.len() > REASONS_LISTED {
        lines.push(text::count(case.reasons.len() - REASONS_LISTED, "more reason", "more reasons"));
    }
    if let Some(title) = case.title.as_deref().filter(|_| !lines.is_empty()) {
        lines.insert(0, text::one_line(title, LONGEST_MESSAGE));
    }
    lines.join("\n")
}
