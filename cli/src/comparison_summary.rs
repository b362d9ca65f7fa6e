//! The terminal summary of a comparison. What decides comes first: the verdict with its reason, a line for each convicted case, and
//! the unconfirmed ones with the command that would decide. Rules that are met are one line.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::{fs, io, iter};

use camino::Utf8Path;
use counterproof_artifact::CaseId;
use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, GateRule, Verdict};
use counterproof_evaluator::{
    AddedCase, RankedCase, Standing, evaluation_text, gate_headline, gate_qualifications, is_alone, review_lines, text,
    worst_first,
};
use counterproof_report::{PageSelection, ReportContext};
use counterproof_store::write;

/// Maximum number of convicted cases with a line. All others are named.
const MAX_CONVICTED_LISTED: usize = 50;

/// Maximum number of convicted cases that are named in one line after the last one with a line.
const MAX_CONVICTED_NAMED: usize = 500;

const MAX_UNCONFIRMED_LISTED: usize = 10;

/// The lines that a person reads first. They name the unconfirmed cases after any number of convicted ones.
const FIRST_LINES: usize = 10;

/// Maximum number of convicted cases with a line before the names of the unconfirmed cases, which fit into the first lines then.
const MAX_CONVICTED_FIRST: usize = 6;

/// Maximum number of unconfirmed cases that are named in one line.
const MAX_UNCONFIRMED_NAMED: usize = 50;

const MAX_REVIEW_LISTED: usize = 10;

/// Maximum number of other changes, the most severe first. The report lists all.
const MAX_CHANGES_LISTED: usize = 5;

const MAX_REASON_CHARS: usize = 180;

/// The number of cases that the verdict names if a notice stands above it.
const CASES_NAMED: usize = 4;

/// How much the summary prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// What a person needs to decide.
    Brief,
    /// All rules and the numbers of the tests, too.
    Full,
}

/// Renders the summary. `decide` is the command that would decide the unconfirmed cases.
pub(crate) fn render(evaluation: &Evaluation, detail: Detail, decide: Option<&str>) -> String {
    let ranked = worst_first(evaluation);
    let of = |standing| ranked.iter().filter(move |case| case.standing == standing).copied().collect::<Vec<_>>();
    let convicted = of(Standing::Convicted);
    let mut text = String::new();
    write_verdict(&mut text, evaluation, &convicted);
    let unconfirmed = of(Standing::Unconfirmed);
    write_convicted(&mut text, evaluation, &convicted, &unconfirmed);
    write_unconfirmed(&mut text, evaluation, &unconfirmed, decide);
    for sentence in gate_qualifications(evaluation) {
        let _ = writeln!(text, "{sentence}");
    }
    let reviewed = write_review(&mut text, evaluation);
    let others = of(Standing::Other);
    write_changes(&mut text, evaluation, others.iter().filter(|other| !reviewed.contains(&other.case.case_id)));
    if is_alone(evaluation) {
        write_counts_alone(&mut text, evaluation);
        return text;
    }
    write_table(&mut text, evaluation);
    write_counts(&mut text, evaluation);
    if detail == Detail::Full {
        for sentence in evaluation_text::suite(evaluation) {
            let _ = writeln!(text, "{sentence}");
        }
    }
    write_rules(&mut text, evaluation, detail);
    text
}

/// Writes the notice that stands over everything, if there is one, and the verdict with its reason.
fn write_verdict(text: &mut String, evaluation: &Evaluation, convicted: &[RankedCase<'_>]) {
    let notices: Vec<_> = evaluation.notices.iter().map(|notice| notice.message.as_str()).collect();
    let headline = gate_headline(evaluation);
    if notices.is_empty() {
        let _ = writeln!(text, "{headline}");
        return;
    }
    // One line, so that the verdict is always the second. The verdict names the first cases, because their lines come later.
    let _ = writeln!(text, "{}", notices.join("; "));
    let ids: Vec<_> = convicted.iter().take(CASES_NAMED).map(|ranked| ranked.case.case_id.as_str()).collect();
    let named = if ids.is_empty() { String::new() } else { format!(" ({})", ids.join(", ")) };
    let _ = writeln!(text, "{headline}{named}");
}

/// Writes the convicted cases. If the unconfirmed cases would come after the first lines, these name them as well.
fn write_convicted(
    text: &mut String,
    evaluation: &Evaluation,
    convicted: &[RankedCase<'_>],
    unconfirmed: &[RankedCase<'_>],
) {
    let (listed, named) = convicted.split_at(convicted.len().min(MAX_CONVICTED_LISTED));
    // A notice, the verdict, and the title of the list.
    let is_late = !convicted.is_empty() && 3 + convicted.len() + unconfirmed.len() > FIRST_LINES;
    let (first, others) = listed.split_at(listed.len().min(MAX_CONVICTED_FIRST));
    let width = width_of(listed.iter());
    write_cases_padded(text, evaluation, first.iter(), width);
    if is_late && !unconfirmed.is_empty() {
        let ids: Vec<_> = unconfirmed.iter().take(MAX_UNCONFIRMED_NAMED).map(|it| it.case.case_id.as_str()).collect();
        let more = match unconfirmed.len() - ids.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let _ = writeln!(text, "  unconfirmed, see below: {}{more}", ids.join(", "));
    }
    write_cases_padded(text, evaluation, others.iter(), width);
    if named.is_empty() {
        return;
    }
    let ids: Vec<_> = named.iter().take(MAX_CONVICTED_NAMED).map(|ranked| ranked.case.case_id.as_str()).collect();
    let more = if named.len() > ids.len() { ", …" } else { "" };
    let _ = writeln!(text, "  and {} more: {}{more}", named.len(), ids.join(", "));
}

/// Writes the cases that are worse but may be so by chance, and how to find out.
fn write_unconfirmed(text: &mut String, evaluation: &Evaluation, unconfirmed: &[RankedCase<'_>], decide: Option<&str>) {
    if unconfirmed.is_empty() {
        return;
    }
    let _ = writeln!(text, "Unconfirmed, which may be chance:");
    write_cases(text, evaluation, unconfirmed.iter().take(MAX_UNCONFIRMED_LISTED));
    if unconfirmed.len() > MAX_UNCONFIRMED_LISTED {
        let _ = writeln!(text, "  and {} more unconfirmed", unconfirmed.len() - MAX_UNCONFIRMED_LISTED);
    }
    if let Some(decide) = decide {
        let _ = writeln!(text, "  {decide}");
    }
}

/// Writes a line for each case: its id, its verdict, and what happened on how many runs.
fn write_cases<'a>(
    text: &mut String,
    evaluation: &Evaluation,
    cases: impl Iterator<Item = &'a RankedCase<'a>> + Clone,
) {
    write_cases_padded(text, evaluation, cases.clone(), width_of(cases));
}

/// The length of the longest id.
fn width_of<'a>(cases: impl Iterator<Item = &'a RankedCase<'a>>) -> usize {
    cases.map(|ranked| ranked.case.case_id.as_str().len()).max().unwrap_or(0)
}

/// Writes the lines with ids padded to a width.
fn write_cases_padded<'a>(
    text: &mut String,
    evaluation: &Evaluation,
    cases: impl Iterator<Item = &'a RankedCase<'a>>,
    width: usize,
) {
    for ranked in cases {
        let (id, verdict) = (ranked.case.case_id.as_str(), ranked.verdict());
        let line = text::one_line(&evaluation_text::case_line(evaluation, ranked), MAX_REASON_CHARS);
        let _ = writeln!(text, "  {id:<width$}  {verdict}: {line}");
    }
}

/// Writes the review items, the most harmful case first. Returns the listed cases.
fn write_review<'a>(text: &mut String, evaluation: &'a Evaluation) -> HashSet<&'a CaseId> {
    let lines = review_lines(evaluation, MAX_REVIEW_LISTED);
    if !lines.is_empty() {
        let _ = writeln!(text, "\nReview:");
    }
    for line in &lines {
        let case = line.case_id.as_ref().map(|id| format!("{id}  ")).unwrap_or_default();
        let kind = if line.kind.is_empty() { String::new() } else { format!("{}: ", line.kind) };
        let _ = writeln!(text, "  {case}{kind}{}", text::one_line(&line.message, MAX_REASON_CHARS));
    }
    evaluation.gate.review.iter().filter_map(|item| item.case_id.as_ref()).collect()
}

/// Writes the most severe cases that differ and that no other list has.
fn write_changes<'a>(text: &mut String, evaluation: &Evaluation, others: impl Iterator<Item = &'a RankedCase<'a>>) {
    // An added case is not a change of another one. The counts name it.
    let is_quiet = |case: &CaseEvaluation| {
        matches!(case.verdict, Verdict::Unchanged | Verdict::Noisy) || AddedCase::find(case).is_some()
    };
    let changes: Vec<_> = others.filter(|other| !is_quiet(other.case)).collect();
    if changes.is_empty() {
        return;
    }
    let _ = writeln!(text, "\nOther changes:");
    write_cases(text, evaluation, changes.iter().copied().take(MAX_CHANGES_LISTED));
    if changes.len() > MAX_CHANGES_LISTED {
        let _ = writeln!(text, "  and {} more", changes.len() - MAX_CHANGES_LISTED);
    }
}

fn write_table(text: &mut String, evaluation: &Evaluation) {
    let rows = evaluation_text::table(evaluation);
    if rows.is_empty() {
        return;
    }
    let head = ["", "baseline", "new", "change"].map(str::to_owned);
    let rows: Vec<[String; 4]> =
        iter::once(head).chain(rows.into_iter().map(|row| [row.name, row.baseline, row.new, row.change])).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    let _ = writeln!(text);
    for [name, baseline, new, change] in &rows {
        let [w0, w1, w2] = widths;
        let _ = writeln!(text, "  {name:<w0$}  {baseline:<w1$}  {new:<w2$}  {change}");
    }
}

fn write_counts(text: &mut String, evaluation: &Evaluation) {
    let counted = Verdict::WORST_FIRST.into_iter().filter_map(|verdict| {
        let count = evaluation.counts.get(&verdict).copied().filter(|count| *count > 0)?;
        let name = verdict.as_str().replace('_', " ");
        Some(format!("{count} {name}{}", evaluation_text::unconfirmed(&evaluation.cases, verdict)))
    });
    let counted: Vec<_> = counted.collect();
    let cases = text::count(evaluation.cases.len(), "case", "cases");
    let _ = writeln!(text, "\n{cases}: {}", if counted.is_empty() { "none".to_owned() } else { counted.join(" · ") });
    let _ = writeln!(text, "{}", evaluation_text::case_summary(evaluation));
    let _ = writeln!(text, "{}; {}", evaluation_text::compared(evaluation), evaluation_text::repeats(evaluation));
}

/// Writes how many cases met their expectations, in a run without a baseline.
fn write_counts_alone(text: &mut String, evaluation: &Evaluation) {
    let count = |is: &dyn Fn(&CaseEvaluation) -> bool| evaluation.cases.iter().filter(|case| is(case)).count();
    let is_answered = |case: &CaseEvaluation| case.verdict == Verdict::Unchanged;
    let counts = [
        (count(&|case| !is_answered(case)), "without an answer"),
        (count(&|case| is_answered(case) && case.is_judged_on_new() && case.is_unmet_on_new()), "unmet"),
        (count(&|case| is_answered(case) && case.is_judged_on_new() && !case.is_unmet_on_new()), "met"),
        (count(&|case| is_answered(case) && !case.is_judged_on_new()), "without expectations"),
    ];
    let counted: Vec<_> =
        counts.iter().filter(|(number, _)| *number > 0).map(|(number, what)| format!("{number} {what}")).collect();
    let _ = writeln!(text, "\n{}: {}", text::count(evaluation.cases.len(), "case", "cases"), counted.join(" · "));
}

/// Writes the violated rules and how many others are met, or all of them; then each comparison rule without a match.
fn write_rules(text: &mut String, evaluation: &Evaluation, detail: Detail) {
    let _ = writeln!(text);
    let is_shown = |rule: &&GateRule| detail == Detail::Full || !rule.passed;
    let rules: Vec<_> = evaluation.gate.rules.iter().filter(is_shown).collect();
    let names: Vec<_> = rules.iter().map(|rule| evaluation_text::rule(rule)).collect();
    let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    for (rule, name) in rules.iter().zip(&names) {
        let sign = match (rule.passed, rule.is_limited()) {
            (false, _) => "✗",
            // A rule without a limit only counts, so it is neither met nor violated.
            (true, false) => " ",
            (true, true) => "✓",
        };
        let limit = if detail == Detail::Full {
            evaluation_text::tested(rule, evaluation)
        } else {
            evaluation_text::limit(rule)
        };
        let _ = writeln!(text, "  {sign} {name:<widest$}{:>6}   {limit}", rule.actual);
    }
    if let (Some(met), Detail::Brief) = (evaluation_text::met_rules(&evaluation.gate), detail) {
        let _ = writeln!(text, "  {met}");
    }
    for rule in evaluation.rules.iter().filter(|rule| rule.matched == 0) {
        // With several runs per side, only the displayed pairs of runs are searched for matches.
        let in_what = if evaluation.repeats.is_some() { " in the displayed runs" } else { "" };
        let rule = text::one_line(&rule.rule, MAX_REASON_CHARS);
        let _ = writeln!(text, "  ! comparison rule matched nothing{in_what}: {rule}");
    }
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn case(id: &str, verdict: &str, message: &str, passed: [u64; 2]) -> Value {
        let rate = |passed: u64| json!({"passed": passed, "runs": 5});
        let measure = |code: &str| {
            json!({
                "code": code, "baseline": rate(passed[0]), "new": rate(passed[1]), "p": 0.016, "corrected": 0.1,
                "tier": if verdict == "regressed" { "regression" } else { "watch" }, "more_runs": 4,
            })
        };
        json!({
            "case_id": id, "verdict": verdict, "repeats": {"shown": {"baseline": 0, "new": 0}, "measures": [measure("solved"), measure("expectations")]},
            "reasons": [{"code": "expectation-failed", "message": message, "pointers": []}],
        })
    }

    /// Two cases always fail, one fails sometimes, and one is as before.
    fn evaluation(notices: &Value) -> Evaluation {
        let run = |id: &str| json!({"run_id": id, "generated_at": "2026-01-01T00:00:00Z", "runner_version": "v", "cases_selected": 4});
        let rule = |code: &str, actual: u64, passed: bool| json!({"code": code, "bound": "at_most", "limit": 0, "actual": actual, "of": 4, "passed": passed});
        let mut lost = rule("lost", 2, false);
        lost["test"] = json!({"p": 0.001, "level": 0.02, "fell": 2, "rose": 0, "expected": 0.1});
        let review = json!([
            {"case_id": "same", "code": "high-risk-changed", "message": "cancel_reservation 4XGCCM newly proposed"},
            {"case_id": "sometimes", "code": "unconfirmed", "message": "expectations met in 2 of 5 runs"},
        ]);
        let missing = "must_include no longer met: no “50 EUR”";
        serde_json::from_value(json!({
            "schema_version": "evaluation.v1", "evaluator_version": "v", "baseline": run("old"), "new": run("build"),
            "repeats": {"baseline": vec![run("old"); 5], "new": vec![run("build"); 5]}, "notices": notices,
            "counts": {"regressed": 2, "undecided": 1, "unchanged": 1},
            "gate": {
                "passed": false, "outcome": "failed", "review": review,
                "rules": [rule("regressed", 2, false), rule("broken", 0, true), rule("must", 0, true), lost],
            },
            "cases": [
                case("same", "unchanged", "", [5, 5]), case("sometimes", "undecided", missing, [5, 2]),
                case("refund", "regressed", missing, [5, 0]), case("cancel_all", "regressed", missing, [5, 0]),
            ],
        }))
        .unwrap()
    }

    #[test]
    fn the_verdict_and_the_convicted_cases_come_first_and_met_rules_are_one_line() {
        let text = render(&evaluation(&json!([])), Detail::Brief, Some("to decide: counterproof run --repeat 9"));
        insta::assert_snapshot!(text, @"
        Gate failed: 2 cases always fail
          refund      regressed: must_include no longer met: no “50 EUR”; expectations met in 0 of 5 runs, baseline in 5 of 5
          cancel_all  regressed: must_include no longer met: no “50 EUR”; expectations met in 0 of 5 runs, baseline in 5 of 5
        Unconfirmed, which may be chance:
          sometimes  undecided (unconfirmed): must_include no longer met: no “50 EUR”; expectations met in 2 of 5 runs, baseline in 5 of 5
          to decide: counterproof run --repeat 9

        Review:
          same  high-risk action: cancel_reservation 4XGCCM newly proposed

        4 cases: 2 regressed · 1 undecided · 1 unchanged
        2 of 4 cases differ, 1 undecided; new does not meet the expectations of 3 of 4 judged cases
        new build and 4 more compared with baseline old and 4 more; 5 runs of baseline and 5 runs of new

          ✗ regressed     2   at most 0
          ✗ lost          2   at most 0.1 of these 2 by chance
          2 other rules are met
        ");
    }

    #[test]
    fn the_first_lines_name_an_unconfirmed_case_after_any_number_of_convicted_ones() {
        for convicted in [0, 1, 5, 6, 7, 8, 30] {
            let mut found = evaluation(&json!([]));
            let [unconfirmed, other] = [&found.cases[1], &found.cases[2]].map(Clone::clone);
            found.cases = vec![unconfirmed];
            found.cases.extend((0..convicted).map(|number| {
                let mut case = other.clone();
                case.case_id = format!("fell_{number}").parse().unwrap();
                case
            }));
            let text = render(&found, Detail::Brief, None);
            let first: Vec<_> = text.lines().filter(|line| !line.is_empty()).take(10).collect();
            let names_it = |line: &&&str| line.contains("unconfirmed") && line.contains("sometimes");
            assert_eq!(first.iter().filter(names_it).count(), 1, "{text}");
            let of_convicted = first[1..].iter().take(4).filter(|line| line.starts_with("  fell_")).count();
            assert_eq!(of_convicted, convicted.min(4), "{text}");
        }
    }

    #[test]
    fn verbose_output_has_every_rule_and_the_numbers_of_its_test() {
        let text = render(&evaluation(&json!([])), Detail::Full, None);
        assert!(text.contains("  ✓ must          0   at most 0\n"), "{text}");
        assert!(
            text.contains("  ✗ lost          2   at most 0.1 of these 2 by chance; p 0.001, level 0.02\n"),
            "{text}"
        );
        assert!(!text.contains("rules are met"), "{text}");
    }

    #[test]
    fn a_notice_is_the_first_line_and_the_second_one_names_the_convicted_cases() {
        let notice = |message: &str| json!({"code": "x", "message": message});
        let notices = json!([notice("different records in 44 of 45 cases"), notice("input changed in 1 case")]);
        let text = render(&evaluation(&notices), Detail::Brief, None);
        let first: Vec<_> = text.lines().take(2).collect();
        assert_eq!(
            first,
            [
                "different records in 44 of 45 cases; input changed in 1 case",
                "Gate failed: 2 cases always fail (refund, cancel_all)"
            ]
        );
    }
}
