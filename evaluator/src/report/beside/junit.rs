//! `junit.xml`: the evaluation as test results, for CI systems that show those. A build fails by it exactly where the gate fails:
//! each rule of the gate is a test, and each case that a broken rule counts is one that failed.

use std::fmt::Write as _;

use counterproof_artifact::evaluation::{Bound, CaseEvaluation, Evaluation, GateRule, Verdict};

use super::xml::{attribute, content};
use crate::comparison::evaluation_text;
use crate::gate::{self, GateCase};
use crate::messages;
use crate::report::{cause, verdicts};
use crate::values::text;

/// Characters of a message.
const MESSAGE: usize = 400;

/// Reasons that are listed with a case.
const REASONS_LISTED: usize = 20;

/// How a test went.
enum Went {
    Passed,
    /// What the gate fails for.
    Failed(Trouble),
    /// The runner got no answer, and the gate fails for it.
    Error(Trouble),
    /// What could not be compared, or is worse and within what the gate allows.
    Skipped(String),
}

struct Trouble {
    kind: String,
    message: String,
}

/// A test, ready to be written.
struct Test {
    class: &'static str,
    name: String,
    went: Went,
    properties: Vec<(&'static str, String)>,
    /// What is said of it besides; empty where there is nothing to say.
    said: String,
}

/// The document.
pub(super) fn render(evaluation: &Evaluation) -> String {
    let rules = evaluation.gate.rules.iter().filter(|rule| rule.limit.is_some()).map(of_rule);
    let tests: Vec<_> = rules.chain(evaluation.cases.iter().map(|case| of_case(case, evaluation))).collect();
    let count = |is: fn(&Went) -> bool| tests.iter().filter(|test| is(&test.went)).count();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    let _ = writeln!(
        xml,
        "<testsuite name=\"counterproof\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">",
        tests.len(),
        count(|went| matches!(went, Went::Failed(_))),
        count(|went| matches!(went, Went::Error(_))),
        count(|went| matches!(went, Went::Skipped(_))),
    );
    let about = [
        ("baseline", evaluation.baseline.run_id.to_string()),
        ("new", evaluation.new.run_id.to_string()),
        ("gate", evaluation_text::outcome(evaluation)),
        ("evaluator", evaluation.evaluator_version.clone()),
    ];
    properties(&mut xml, &about);
    for test in &tests {
        write_test(&mut xml, test);
    }
    xml.push_str("</testsuite>\n</testsuites>\n");
    xml
}

fn write_test(xml: &mut String, test: &Test) {
    let _ = write!(xml, "<testcase classname=\"counterproof.{}\" name=\"{}\"", test.class, attribute(&test.name));
    if test.properties.is_empty() && test.said.is_empty() && matches!(test.went, Went::Passed) {
        xml.push_str("/>\n");
        return;
    }
    xml.push_str(">\n");
    properties(xml, &test.properties);
    let trouble = |xml: &mut String, element: &str, trouble: &Trouble| {
        let (kind, message, said) = (attribute(&trouble.kind), attribute(&trouble.message), content(&test.said));
        let _ = writeln!(xml, "<{element} type=\"{kind}\" message=\"{message}\">{said}</{element}>");
    };
    match &test.went {
        Went::Failed(why) => trouble(xml, "failure", why),
        Went::Error(why) => trouble(xml, "error", why),
        Went::Skipped(message) => {
            let _ = writeln!(xml, "<skipped message=\"{}\"/>", attribute(message));
        }
        Went::Passed => {}
    }
    if !test.said.is_empty() && !matches!(test.went, Went::Failed(_) | Went::Error(_)) {
        let _ = writeln!(xml, "<system-out>{}</system-out>", content(&test.said));
    }
    xml.push_str("</testcase>\n");
}

fn properties(xml: &mut String, properties: &[(&str, String)]) {
    if properties.is_empty() {
        return;
    }
    xml.push_str("<properties>");
    for (name, value) in properties {
        let _ = write!(xml, "<property name=\"{name}\" value=\"{}\"/>", attribute(value));
    }
    xml.push_str("</properties>\n");
}

fn of_rule(rule: &GateRule) -> Test {
    let said = format!("{}, {}", rule.actual, evaluation_text::limit(rule));
    let name = evaluation_text::rule(rule);
    let went = if rule.passed {
        Went::Passed
    } else {
        Went::Failed(Trouble { kind: rule.code.clone(), message: format!("{name}: {said}") })
    };
    Test { class: "gate", name, went, properties: Vec::new(), said }
}

fn of_case(case: &CaseEvaluation, evaluation: &Evaluation) -> Test {
    Test {
        class: "cases",
        name: case.case_id.to_string(),
        went: went(case, evaluation),
        properties: facts(case),
        said: said(case),
    }
}

/// How the case went for the gate.
fn went(case: &CaseEvaluation, evaluation: &Evaluation) -> Went {
    let judged = GateCase::of(case, None);
    let counting = |rule: &&GateRule| rule.bound == Bound::AtMost && gate::counts(rule, &judged);
    let broken: Vec<_> = evaluation.gate.rules.iter().filter(|rule| !rule.passed).filter(counting).collect();
    let word = verdicts::show(case.verdict).word;
    let reason = case.reasons.first();
    let message = reason.map(|reason| text::one_line(&reason.message, MESSAGE)).or_else(|| unmet(case));
    if !broken.is_empty() {
        let kind = reason.map_or_else(|| broken[0].code.clone(), |reason| reason.code.clone());
        let message = message.map_or_else(|| word.to_owned(), |message| format!("{word}: {message}"));
        let trouble = Trouble { kind, message };
        return match case.verdict {
            Verdict::Broken | Verdict::StillBroken => Went::Error(trouble),
            _ => Went::Failed(trouble),
        };
    }
    match case.verdict {
        Verdict::Missing | Verdict::Added => Went::Skipped(format!("{word}: there is nothing to compare it with")),
        Verdict::Regressed | Verdict::Broken | Verdict::StillBroken | Verdict::Invalid => {
            let message = message.map(|message| format!("; {message}")).unwrap_or_default();
            Went::Skipped(format!("{word}, which the gate lets pass{message}"))
        }
        _ => Went::Passed,
    }
}

/// The first expectation that new does not meet.
fn unmet(case: &CaseEvaluation) -> Option<String> {
    let unmet = case.unmet_on_new();
    let first = unmet.first()?;
    let found = first.new.as_ref().map(|new| text::one_line(new.found(), MESSAGE)).unwrap_or_default();
    Some(format!("{} not met: {found}", first.code))
}

fn facts(case: &CaseEvaluation) -> Vec<(&'static str, String)> {
    if case.verdict == Verdict::Unchanged && case.repeats.is_none() {
        return Vec::new();
    }
    let mut facts = vec![("verdict", verdicts::show(case.verdict).word.to_owned())];
    facts.extend(verdicts::risk(case.risk_level).map(|risk| ("risk", risk.to_owned())));
    facts.extend(case.severity.as_ref().map(|severity| ("severity", cause::score(severity.score))));
    facts.extend(
        case.cause
            .as_ref()
            .map(|cause| ("cause", format!("{}: {}", cause.code, text::one_line(&cause.place, MESSAGE)))),
    );
    for measure in case.repeats.iter().flat_map(|repeats| &repeats.measures) {
        let (old, new) = (&measure.baseline, &measure.new);
        let counts = format!("{} of {}, baseline {} of {}", new.passed, new.runs, old.passed, old.runs);
        facts.push((messages::measure(measure.code), format!("{counts}: {}", measure.tier.as_str())));
    }
    facts
}

/// The title and all reasons, a line each.
fn said(case: &CaseEvaluation) -> String {
    let mut lines: Vec<_> = case
        .reasons
        .iter()
        .take(REASONS_LISTED)
        .map(|reason| format!("{}: {}", reason.code, text::one_line(&reason.message, MESSAGE)))
        .collect();
    if case.reasons.len() > REASONS_LISTED {
        lines.push(text::count(case.reasons.len() - REASONS_LISTED, "more reason", "more reasons"));
    }
    if let Some(title) = case.title.as_deref().filter(|_| !lines.is_empty()) {
        lines.insert(0, text::one_line(title, MESSAGE));
    }
    lines.join("\n")
}
