//! `junit.xml`: the evaluation as JUnit test results. The results fail exactly if the gate fails: each gate rule is a test, and
//! each case that a violated rule counts is a failed test.

use std::time::Duration;

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, GateOutcome, GateRule, UsageCode, Verdict};
use counterproof_evaluator::{ViolatedRules, evaluation_text, messages, text};
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use crate::view::{display, verdict};

const LONGEST_MESSAGE: usize = 400;

const REASONS_LISTED: usize = 20;

pub(crate) fn render(evaluation: &Evaluation) -> String {
    let mut suite = TestSuite::new("counterproof");
    suite.add_properties([
        property("baseline", evaluation.baseline.run_id.as_str()),
        property("new", evaluation.new.run_id.as_str()),
        property("gate", &evaluation_text::outcome(evaluation)),
        property("evaluator", &evaluation.evaluator_version),
    ]);
    suite.add_test_cases(not_judged_test(evaluation));
    suite.add_test_cases(evaluation.gate.rules.iter().filter(|rule| rule.is_limited()).map(rule_test));
    let violated = ViolatedRules::new(&evaluation.gate);
    suite.add_test_cases(evaluation.cases.iter().map(|case| case_test(case, violated.first(case))));
    let mut report = Report::unnamed();
    report.add_test_suite(suite);
    // Writing into memory cannot fail, and every text is valid XML.
    report.to_string().unwrap_or_default()
}

/// A skipped test for a gate that has nothing to judge by.
fn not_judged_test(evaluation: &Evaluation) -> Option<TestCase> {
    // Without this test, the results would look like a pass.
    (evaluation.gate.outcome == GateOutcome::NotJudged)
        .then(|| test("counterproof.gate", "not judged", skipped(&evaluation_text::outcome(evaluation)), ""))
}

fn rule_test(rule: &GateRule) -> TestCase {
    let name = evaluation_text::rule(rule);
    let result = format!("{}, {}", rule.actual, evaluation_text::limit(rule));
    let status = if rule.passed {
        TestCaseStatus::success()
    } else {
        problem(NonSuccessKind::Failure, &rule.code, &format!("{name}: {result}"))
    };
    test("counterproof.gate", &name, status, &result)
}

fn case_test(case: &CaseEvaluation, violated: Option<&GateRule>) -> TestCase {
    let mut test = test("counterproof.cases", case.case_id.as_str(), status(case, violated), &description(case));
    test.add_properties(properties(case));
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
fn status(case: &CaseEvaluation, violated: Option<&GateRule>) -> TestCaseStatus {
    let word = verdict::of_case(case).word;
    let reason = case.reasons.first();
    let message = reason.map(|reason| text::one_line(&reason.message, LONGEST_MESSAGE)).or_else(|| unmet(case));
    if let Some(rule) = violated {
        let code = reason.map_or(&rule.code, |reason| &reason.code);
        let message = message.map_or_else(|| word.to_owned(), |message| format!("{word}: {message}"));
        // An error is a test that could not be run, as a case without an answer.
        let kind = match case.verdict {
            Verdict::Broken | Verdict::StillBroken => NonSuccessKind::Error,
            _ => NonSuccessKind::Failure,
        };
        return problem(kind, code, &message);
    }
    match case.verdict {
        Verdict::Missing | Verdict::Added => skipped(&format!("{word}: nothing to compare with")),
        // CI servers show skipped tests separately, and none fails a build for them.
        Verdict::Regressed | Verdict::Broken | Verdict::StillBroken | Verdict::Invalid => {
            let message = message.map(|message| format!("; {message}")).unwrap_or_default();
            skipped(&format!("{word}, within the limits of the gate{message}"))
        }
        // Noise passes: some tools read `flakyFailure` and others ignore it.
        _ => TestCaseStatus::success(),
    }
}

/// The first expectation that new does not meet.
fn unmet(case: &CaseEvaluation) -> Option<String> {
    let unmet = case.unmet_on_new();
    let first = unmet.first()?;
    let found = first.new.as_ref().map(|new| text::one_line(new.found(), LONGEST_MESSAGE)).unwrap_or_default();
    Some(format!("{} not met: {found}", first.code))
}

fn properties(case: &CaseEvaluation) -> Vec<Property> {
    // Most cases are unchanged, and tools rarely show properties.
    if case.verdict == Verdict::Unchanged && case.repeats.is_none() {
        return Vec::new();
    }
    let mut properties = vec![property("verdict", verdict::of_case(case).word)];
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
