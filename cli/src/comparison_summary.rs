//! The terminal summary of a comparison: the gate line, every rule, the verdict counts, and the worst cases.

use std::fmt::Write as _;
use std::{fs, io};

use camino::Utf8Path;
use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, SeverityLevel, Verdict};
use counterproof_evaluator::{evaluation_text, gate_headline, gate_qualifications, review_lines, text};
use counterproof_report::{PageSelection, ReportContext};
use counterproof_store::write;

/// Maximum number of listed cases. The report lists all.
const MAX_CASES_LISTED: usize = 10;

const MAX_REVIEW_LISTED: usize = 10;

const MAX_REASON_CHARS: usize = 180;

/// Minimum width of the column of rule names, in characters.
const MIN_RULE_WIDTH: usize = 13;

/// Minimum width of the column of verdicts, in characters.
const MIN_VERDICT_WIDTH: usize = 12;

pub(crate) fn render(evaluation: &Evaluation) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", gate_headline(&evaluation.gate));
    for sentence in gate_qualifications(evaluation) {
        let _ = writeln!(text, "{sentence}");
    }
    let _ = writeln!(text, "{}", evaluation_text::case_summary(evaluation));
    let _ = writeln!(text, "{}", evaluation_text::compared(evaluation));
    let _ = writeln!(text, "{}", evaluation_text::repeats(evaluation));
    for sentence in evaluation_text::suite(evaluation).into_iter().chain(evaluation_text::usage(evaluation)) {
        let _ = writeln!(text, "{sentence}");
    }
    write_review(&mut text, evaluation);
    let _ = writeln!(text);
    write_rules(&mut text, evaluation);
    write_counts(&mut text, evaluation);
    write_worst_cases(&mut text, evaluation);
    text
}

/// Writes the review items, most urgent first.
fn write_review(text: &mut String, evaluation: &Evaluation) {
    let lines = review_lines(evaluation, MAX_REVIEW_LISTED);
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(text, "\nReview:");
    for line in lines {
        let case = line.case_id.map(|id| format!("{id}  ")).unwrap_or_default();
        let kind = if line.kind.is_empty() { String::new() } else { format!("{}: ", line.kind) };
        let _ = writeln!(text, "  {case}{kind}{}", text::one_line(&line.message, MAX_REASON_CHARS));
    }
}

/// Writes a line for each rule of the gate, and one for each comparison rule without a match.
fn write_rules(text: &mut String, evaluation: &Evaluation) {
    let names: Vec<_> = evaluation.gate.rules.iter().map(evaluation_text::rule).collect();
    let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(MIN_RULE_WIDTH);
    for (rule, name) in evaluation.gate.rules.iter().zip(&names) {
        let sign = match (rule.passed, rule.limit) {
            (false, _) => "✗",
            // A rule without a limit only counts, so it is neither met nor violated.
            (true, None) if rule.test.is_none() => " ",
            (true, _) => "✓",
        };
        let _ = writeln!(text, "  {sign} {name:<widest$}{:>6}   {}", rule.actual, evaluation_text::limit(rule));
    }
    for rule in evaluation.rules.iter().filter(|rule| rule.matched == 0) {
        // With several runs per side, only the displayed pairs of runs are searched for matches.
        let in_what = if evaluation.repeats.is_some() { " in the displayed runs" } else { "" };
        let rule = text::one_line(&rule.rule, MAX_REASON_CHARS);
        let _ = writeln!(text, "  ! comparison rule matched nothing{in_what}: {rule}");
    }
}

fn write_counts(text: &mut String, evaluation: &Evaluation) {
    let counted = Verdict::ALL.into_iter().filter_map(|verdict| {
        let count = evaluation.counts.get(&verdict).copied().filter(|count| *count > 0)?;
        Some(format!("{count} {}{}", name(verdict), evaluation_text::unconfirmed(evaluation, verdict)))
    });
    let counted: Vec<_> = counted.collect();
    let cases = text::count(evaluation.cases.len(), "case", "cases");
    let _ = writeln!(text, "\n{cases}: {}", if counted.is_empty() { "none".to_owned() } else { counted.join(" · ") });
}

/// Writes a line for each of the worst cases: verdict, level of severity, case and reason.
fn write_worst_cases(text: &mut String, evaluation: &Evaluation) {
    let differing: Vec<&CaseEvaluation> =
        evaluation.worst_first().into_iter().filter(|case| case.verdict != Verdict::Unchanged).collect();
    let width = differing.iter().take(MAX_CASES_LISTED).map(|case| case.case_id.as_str().len()).max().unwrap_or(0);
    let verdicts = differing.iter().take(MAX_CASES_LISTED).map(|case| case_verdict(case).chars().count());
    // In characters and not in bytes, which the columns are padded to.
    let names = verdicts.max().unwrap_or(0).max(MIN_VERDICT_WIDTH) + 1;
    let levels = differing.iter().take(MAX_CASES_LISTED).map(|case| level(case).len()).max().unwrap_or(0);
    let levels = if levels == 0 { 0 } else { levels + 2 };
    for case in differing.iter().take(MAX_CASES_LISTED) {
        let reason = case.reasons.first().map_or("", |reason| reason.message.as_str());
        let _ = writeln!(
            text,
            "  {:<names$}{:<levels$}{:<width$}  {}",
            case_verdict(case),
            level(case),
            case.case_id.as_str(),
            text::one_line(reason, MAX_REASON_CHARS)
        );
    }
    if differing.len() > MAX_CASES_LISTED {
        let _ = writeln!(text, "  and {} more", differing.len() - MAX_CASES_LISTED);
    }
}

/// Returns the level of the severity of a case; empty if nothing counts.
fn level(case: &CaseEvaluation) -> &'static str {
    case.severity_level().map_or("", SeverityLevel::as_str)
}

fn case_verdict(case: &CaseEvaluation) -> String {
    let name = name(case.verdict);
    if case.unconfirmed { format!("{name} (unconfirmed)") } else { name }
}

fn name(verdict: Verdict) -> String {
    verdict.as_str().replace('_', " ")
}

/// The environment variable with the path of the step summary.
pub(crate) const VARIABLE: &str = "GITHUB_STEP_SUMMARY";

/// Size limit of a step summary. GitHub drops a larger one.
const MAX_BYTES: u64 = 1024 * 1024;

/// Appends the summary of a comparison to the step summary, shortened to the space that is left.
pub(crate) fn append(
    path: &Utf8Path,
    evaluation: &Evaluation,
    context: &ReportContext,
    pages: PageSelection,
) -> Result<(), String> {
    let length = match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        // A pipe or a device may never take the text.
        Ok(_) => return Err(format!("`{path}` is not a file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(source) => return Err(format!("failed to read `{path}`: {source}")),
    };
    // A heading starts on a separate line, whatever precedes it.
    let separator = if length > 0 { "\n\n" } else { "" };
    let room = MAX_BYTES.saturating_sub(length + separator.len() as u64);
    let room = usize::try_from(room).unwrap_or(usize::MAX).min(counterproof_report::SUMMARY_UP_TO_BYTES);
    let Some(summary) = counterproof_report::summary(evaluation, context, pages, room) else {
        return Err(format!("`{path}` has no space left: GitHub drops step summaries over 1 MiB"));
    };
    write::append(path, format!("{separator}{summary}").as_bytes())
        .map_err(|error| format!("{error}: {}", error.source))
}
