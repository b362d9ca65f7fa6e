//! A comparison in the terminal: what the gate says, every rule, the counts, and the cases to look at first.

use std::fmt::Write as _;

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, Verdict};
use counterproof_evaluator::comparison::evaluation_text;
use counterproof_evaluator::values::text;

/// Cases that are named; the report has the others.
const CASES_NAMED: usize = 10;

/// Characters of a reason; a narrow terminal wraps it.
const REASON_UP_TO: usize = 180;

/// Characters of a rule's name, at least.
const RULE_WIDTH: usize = 13;

/// The comparison in a few lines.
pub(crate) fn render(evaluation: &Evaluation) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", evaluation_text::outcome(evaluation));
    let _ = writeln!(text, "{}", evaluation_text::besides(evaluation));
    let _ = writeln!(text, "{}", evaluation_text::compared(evaluation));
    let _ = writeln!(text, "{}", evaluation_text::repeats(evaluation));
    for sentence in evaluation_text::suite(evaluation) {
        let _ = writeln!(text, "{sentence}");
    }
    let _ = writeln!(text);
    let names: Vec<_> = evaluation.gate.rules.iter().map(evaluation_text::rule).collect();
    let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(RULE_WIDTH);
    for (rule, name) in evaluation.gate.rules.iter().zip(&names) {
        let sign = match (rule.passed, rule.limit) {
            (false, _) => "✗",
            (true, Some(_)) => "✓",
            (true, None) => " ",
        };
        let _ = writeln!(text, "  {sign} {name:<widest$}{:>6}   {}", rule.actual, evaluation_text::limit(rule));
    }
    for rule in evaluation.rules.iter().filter(|rule| rule.matched == 0) {
        // Of several runs a side, the pairs that are shown are looked at.
        let in_what = if evaluation.repeats.is_some() { " in the runs that are shown" } else { "" };
        let rule = text::one_line(&rule.rule, REASON_UP_TO);
        let _ = writeln!(text, "  ! a rule of comparison matched nothing{in_what}: {rule}");
    }
    let counted = Verdict::ALL.into_iter().filter_map(|verdict| {
        let count = evaluation.counts.get(&verdict).copied().unwrap_or(0);
        (count > 0).then(|| format!("{count} {}", name(verdict)))
    });
    let counted: Vec<_> = counted.collect();
    let cases = text::count(evaluation.cases.len(), "case", "cases");
    let _ = writeln!(text, "\n{cases}: {}", if counted.is_empty() { "none".to_owned() } else { counted.join(" · ") });

    let moved: Vec<&CaseEvaluation> =
        evaluation.worst_first().into_iter().filter(|case| case.verdict != Verdict::Unchanged).collect();
    let width = moved.iter().take(CASES_NAMED).map(|case| case.case_id.as_str().len()).max().unwrap_or(0);
    for case in moved.iter().take(CASES_NAMED) {
        let reason = case.reasons.first().map_or("", |reason| reason.message.as_str());
        let _ = writeln!(
            text,
            "  {:<13}{:<width$}  {}",
            name(case.verdict),
            case.case_id.as_str(),
            text::one_line(reason, REASON_UP_TO)
        );
    }
    if moved.len() > CASES_NAMED {
        let _ = writeln!(text, "  and {} more", moved.len() - CASES_NAMED);
    }
    text
}

/// A verdict as a word for people.
fn name(verdict: Verdict) -> String {
    verdict.as_str().replace('_', " ")
}
