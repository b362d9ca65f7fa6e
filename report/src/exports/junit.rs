//! `junit.xml`: the evaluation as JUnit test results. The results fail exactly if the gate fails. One suite has a test for each gate
//! rule, the other one for each case: a case that a violated rule counts is a failed test.

use std::time::Duration;

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, GateOutcome, GateRule, UsageCode, Verdict};
use counterproof_evaluator::{RankedCase, Standing, evaluation_text, messages, text, worst_first};
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use crate::view::{display, verdict};

const LONGEST_MESSAGE: usize = 400;

const REASONS_LISTED: usize = 20;

/// The suite of the rules, and the prefix of its tests.
const GATE: &str = "counterproof.gate";

/// The suite of the cases, and the prefix of its tests.
const CASES: &str = "counterproof.cases";

pub(crate) fn render(evaluation: &Evaluation) -> String {
    let mut gate = TestSuite::new(GATE);
    gate.add_properties([
        property("baseline", evaluation.baseline.run_id.as_str()),
        property("new", evaluation.new.run_id.as_str()),
        property("gate", &evaluation_text::outcome(evaluation)),
        property("evaluator", &evaluation.evaluator_version),
    ]);
    gate.add_test_cases(not_judged_test(evaluation));
    gate.add_test_cases(evaluation.gate.rules.iter().filter(|rule| rule.is_limited()).map(rule_test));
    let mut cases = TestSuite::new(CASES);
    cases.add_test_cases(worst_first(evaluation).iter().map(|ranked| case_test(evaluation, ranked)));
    let mut report = Report::unnamed();
    report.add_test_suites([gate, cases]);
    // Writing into memory cannot fail, and every text is valid XML.
    report.to_string().unwrap_or_default()
}

/// A skipped test for a gate that has nothing to judge by.
fn not_judged_test(evaluation: &Evaluation) -> Option<TestCase> {
    // Without this test, the results would look like a pass.
    (evaluation.gate.outcome == GateOutcome::NotJudged)
        .then(|| test(GATE, "not judged", skipped(&evaluation_text::outcome(evaluation)), ""))
}

fn rule_test(rule: &GateRule) -> TestCase {
    let name = evaluation_text::rule(rule);
    let result = format!("{}, {}", rule.actual, evaluation_text::limit(rule));
    let status = if rule.passed {
        TestCaseStatus::success()
    } else {
        problem(NonSuccessKind::Failure, &rule.code, &format!("{name}: {result}"))
    };
    test(GATE, &name, status, &result)
}

fn case_test(evaluation: &Evaluation, ranked: &RankedCase<'_>) -> TestCase {
    let case = ranked.case;
    let mut test = test(CASES, case.case_id.as_str(), status(evaluation, ranked), &description(case));
    test.add_properties(properties(ranked));
    let duration = case.usage.as_ref().and_then(|usage| usage.new.as_ref()?.get(UsageCode::Duration));
    // `from_secs_f64` panics on a value that is out of range.
    if let Some(duration) = duration.and_then(|millis| Duration::try_from_secs_f64(millis / 1000.0).ok()) {
        test.set_time(duration);
    }
    test
}

fn test(class: &str, name: &str, mut status: TestCaseStatus, description: &str) -> TestCase {
    let is_problem = matches!(&status, TestCaseStatus::NonSuccess { .. });
    if is_problem {
        status.set_description(visible(description));
    }
    let mut test = TestCase::new(visible(name), status);
    test.set_classname(class);
    if !description.is_empty() && !is_problem {
        test.set_system_out(visible(description));
    }
    test
}

fn problem(kind: NonSuccessKind, code: &str, message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(visible(code)).set_message(visible(message));
    status
}

fn skipped(message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(visible(message));
    status
}

fn property(name: &str, value: &str) -> Property {
    Property::new(name, visible(value))
}

/// Escapes characters that XML does not allow. The JUnit writer would drop them.
fn visible(text: &str) -> String {
    let is_noncharacter = |c: char| matches!(c, '\u{fffe}' | '\u{ffff}');
    let mut visible = String::with_capacity(text.len());
    for c in display::visible(text).chars() {
        if is_noncharacter(c) { visible.extend(c.escape_unicode()) } else { visible.push(c) }
    }
    visible
}

/// The result of a case. It fails only if a violated rule counts the case: a regression within the limits of the gate is skipped.
fn status(evaluation: &Evaluation, ranked: &RankedCase<'_>) -> TestCaseStatus {
    let (case, word) = (ranked.case, ranked.verdict());
    let line = text::one_line(&evaluation_text::case_line(evaluation, ranked), LONGEST_MESSAGE);
    let message = if line.is_empty() { word.clone() } else { format!("{word}: {line}") };
    if let Some(rule) = ranked.violated {
        let code = case.reasons.first().map_or(&rule.code, |reason| &reason.code);
        // An error is a test that could not be run, as a case without an answer.
        let kind = match case.verdict {
            Verdict::Broken | Verdict::StillBroken => NonSuccessKind::Error,
            _ => NonSuccessKind::Failure,
        };
        return problem(kind, code, &message);
    }
    match case.verdict {
        Verdict::Missing | Verdict::Added => skipped(&format!("{word}: nothing to compare with")),
        Verdict::NotComparable => skipped(&message),
        // CI servers show skipped tests separately, and none fails a build for them.
        Verdict::Regressed | Verdict::Broken | Verdict::StillBroken | Verdict::Invalid => {
            let line = if line.is_empty() { line } else { format!("; {line}") };
            skipped(&format!("{word}, within the limits of the gate{line}"))
        }
        _ if ranked.standing == Standing::Unconfirmed => skipped(&message),
        // Noise passes: some tools read `flakyFailure` and others ignore it.
        _ => TestCaseStatus::success(),
    }
}

fn properties(ranked: &RankedCase<'_>) -> Vec<Property> {
    let case = ranked.case;
    // Most cases are unchanged, and tools rarely show properties.
    if case.verdict == Verdict::Unchanged && case.repeats.is_none() {
        return Vec::new();
    }
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
